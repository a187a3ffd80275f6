// Numbers as text.

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Return a number with four decimals, or the word for one that is missing. */
const number = (value, missing = "not measured") => (isNumber(value) ? value.toFixed(4).replace("-", "−") : missing);

/** Return a number with its sign. */
const signed = (value, missing) => (isNumber(value) && value > 0 ? "+" : "") + number(value, missing);

/** Return a share in percent with a true minus. */
const percent = (value) => `${Math.round(100 * value)} %`.replace("-", "−");

/** Return a count with its noun. */
const count = (many, one, more = `${one}s`) => `${many.toLocaleString("en")} ${many === 1 ? one : more}`;

/** Return a name with a capital letter. */
const title = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Return the mean of the numbers in a list, null where there are none. */
function mean(values) {
  const known = values.filter(isNumber);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}
