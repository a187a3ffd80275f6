// Numbers as text, with no more digits than mean something.

const DIGITS = 3; // of a distance or a score
const MOST_DIGITS = 4; // where fewer would make two drafts look equal

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Return a number with a fixed number of digits, or the word for one that is missing. */
const number = (value, missing = "not measured", digits = DIGITS) =>
  isNumber(value) ? value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−") : missing;

/** Return a number with its sign. */
const signed = (value, missing, digits = DIGITS) => {
  const text = number(value, missing, digits);
  return isNumber(value) && /[1-9]/.test(text) && value > 0 ? `+${text}` : text;
};

/** Return a difference: what rounds to nothing, and is something, is called less. */
const difference = (value, missing) =>
  isNumber(value) && value !== 0 && Math.abs(value) < 0.5 * 10 ** -DIGITS
    ? `< ${10 ** -DIGITS}`
    : number(value, missing);

/** Return how many digits tell numbers apart: `DIGITS`, or one more where two would look equal. */
function digitsFor(values) {
  const known = [...new Set(values.filter(isNumber))];
  const looks = (digits) => new Set(known.map((value) => value.toFixed(digits))).size;
  return looks(DIGITS) < known.length ? MOST_DIGITS : DIGITS;
}

/** Return a share in percent with a true minus. */
const percent = (value) => `${Math.round(100 * value)} %`.replace("-", "−");

/** Return a name with a capital letter. */
const title = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Return the mean of the numbers in a list, null where there are none. */
function mean(values) {
  const known = values.filter(isNumber);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}
