// The list: how a number is spread over the studies.

const BINS = 24;
const SPREAD = { width: 480, height: 64 };
const NAMES = { __proto__: null, score: "score", gain: "gain", margin: "margin", p: "p" };

/** Return the numbers that can be counted, the first one first. */
const countable = () => Object.keys(NAMES).filter((key) => overview.studies.some((row) => isNumber(row[key])));

/** Return {low, high, all, some}: how many of all studies, and of the shown ones, each bin has. */
function binned(key) {
  const known = (found) => found.map((row) => row[key]).filter(isNumber);
  const [all, some] = [known(overview.studies), known(shown)];
  const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
  const bin = (value) => Math.min(BINS - 1, Math.floor((BINS * (value - low)) / (high - low || 1)));
  const counts = (values) => {
    const found = Array.from({ length: BINS }, () => 0);
    for (const value of values) found[bin(value)] += 1;
    return found;
  };
  return { low, high, all: counts(all), some: counts(some), shown: some };
}

/** Return the middle of some numbers. */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length % 2
    ? sorted[(sorted.length - 1) / 2]
    : (sorted[sorted.length / 2 - 1] + sorted[sorted.length / 2]) / 2;
}

/** Draw how the chosen number is spread: over all studies, and darker over the shown ones. */
function drawHistogram() {
  const keys = countable();
  byId("spread").hidden = !keys.length;
  if (!keys.length) return;
  const key = keys.includes(state.get("spread")) ? state.get("spread") : keys[0];
  const { low, high, all, some, shown: values } = binned(key);
  const most = Math.max(1, ...all);
  const width = SPREAD.width / BINS;
  const column = (many, at, kind) =>
    svg("rect", {
      class: kind,
      x: at * width + 1,
      y: SPREAD.height - (SPREAD.height * many) / most,
      width: width - 2,
      height: (SPREAD.height * many) / most,
    });
  const [least, greatest] = extremes(values);
  const words = values.length
    ? `${title(NAMES[key])} of ${count(values.length, "pick")}: from ${number(least)} to ${number(greatest)}, median ${number(median(values))}, mean ${number(mean(values))}`
    : `No shown study has a ${NAMES[key]}.`;
  const choices = keys.map((one) => el("option", { value: one, selected: one === key }, NAMES[one]));
  byId("spread-of").replaceChildren(...choices);
  byId("spread-picture").replaceChildren(
    svg(
      "svg",
      { class: "histogram", viewBox: `0 0 ${SPREAD.width} ${SPREAD.height}`, preserveAspectRatio: "none", role: "img", "aria-label": words },
      all.map((many, at) => column(many, at, "all")),
      some.map((many, at) => column(many, at, "some")),
    ),
    el("p", { class: "ends", "aria-hidden": "true" }, el("span", {}, number(low)), el("span", {}, number(high))),
  );
  byId("spread-words").textContent = words;
}

/** Return the least and the greatest of some numbers. */
const extremes = (values) =>
  values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
