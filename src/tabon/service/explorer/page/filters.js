// The list: filters, what each would leave, and the search in reports.

let hits = null; // studies with the words that are searched: number → {where, sentence}
let hitsOf = ""; // the search that they answer
let searching = false;

/** Return whether a number lies in a range; what is missing lies in none. */
function within(value, low, high) {
  if (!low && !high) return true;
  return isNumber(value) && (!low || value >= Number(low)) && (!high || value <= Number(high));
}

/** Return the sign of a gain as the filter names it. */
const signOf = (gain) => (isNumber(gain) ? (gain > 0 ? "plus" : gain < 0 ? "minus" : "zero") : "none");

/** Return how two selectors agree on a study: same, or differ, and which pick has the higher score. */
function agreement(row) {
  if (!row.beside) return [];
  if (row.selected === row.beside.selected) return ["same"];
  const lead = isNumber(row.score) && isNumber(row.beside.score) ? row.score - row.beside.score : null;
  return ["differ", ...(lead > 0 ? ["first"] : lead < 0 ? ["second"] : [])];
}

const FACETS = {
  flags: (row) => row.flags,
  abstained: (row) => [row.abstained === null ? "no" : "yes"],
  tied: (row) => [row.tied ? "yes" : "no"],
  sign: (row) => [signOf(row.gain)],
  selectors: agreement,
};

const searchKey = () => `${state.get("within") || "any"} ${(state.get("q") || "").trim().toLowerCase()}`;

/** Return whether a study has the words: in its number, id or patient, or in the reports that are searched. */
function hasWords(row, words) {
  if (!words.length) return true;
  const name = `${row.number + 1} ${row.id} ${row.patient ?? ""}`.toLowerCase();
  if (["", "any", "names"].includes(state.get("within") || "") && words.every((word) => name.includes(word))) return true;
  return hitsOf === searchKey() && Boolean(hits?.has(row.number));
}

/** Return a test of one row, made from the filters of the state; one facet may be left out. */
function filterOf(but = null) {
  const get = (key) => state.get(key) || "";
  const words = get("q").toLowerCase().split(/\s+/).filter(Boolean);
  const facets = Object.entries(FACETS)
    .map(([key, values]) => ({ key, values, asked: get(key).split(",").filter(Boolean) }))
    .filter(({ key, asked }) => key !== but && asked.length);
  return (row) =>
    hasWords(row, words) &&
    facets.every(({ values, asked }) => values(row).some((value) => asked.includes(value))) &&
    ["margin", "gain", "score"].every((key) => within(row[key], get(`${key}_min`), get(`${key}_max`)));
}

/** Return an order of rows by a column; what is missing comes last either way, equals by number. */
function orderOf(column, descending) {
  return (left, right) => {
    const [a, b] = [left[column], right[column]];
    if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1;
    const apart = isNumber(a) ? (descending ? b - a : a - b) : 0;
    return apart || left.number - right.number;
  };
}

const sortColumn = () => (SORTS.has(state.get("sort")) ? state.get("sort") : "number");

/** Find the studies that the state asks for. */
function findShown() {
  shown = overview.studies.filter(filterOf()).sort(orderOf(sortColumn(), state.has("desc")));
  searchReports(searchKey());
}

/** Look for words in the reports, once they were not searched yet; what arrives late and is no longer asked for is dropped. */
async function searchReports(key) {
  const [asked, ...words] = key.split(" ");
  const wanted = words.join(" ").trim();
  if (key === hitsOf) searching = false; // what is still on its way is no longer asked for
  if (key === hitsOf || key === searching) return;
  if (!wanted || asked === "names") {
    [hits, hitsOf, searching] = [null, key, false];
    return;
  }
  searching = key;
  await wait(embedded ? 0 : 0.15); // for the next key
  if (searchKey() !== key) return;
  try {
    const found = await searchTexts(wanted.slice(0, LONGEST_SEARCH), asked);
    if (searchKey() !== key) return;
    [hits, hitsOf, searching] = [found, key, false];
    if (!inStudy()) show();
  } catch (error) {
    searching = false;
    fail(error);
  }
}

/** Return how many studies each value of a facet would leave, the other filters as they are. */
function facetCounts(key) {
  const counts = new Map();
  for (const row of overview.studies.filter(filterOf(key))) {
    for (const value of FACETS[key](row)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return counts;
}

/** Put the state into the filter form, except where someone is typing, and count what each choice would leave. */
function fillForm() {
  const kinds = (state.get("flags") || "").split(",");
  for (const field of byId("filter").elements) {
    if (field.type === "checkbox") field.checked = kinds.includes(field.value);
    else if (field.name && field !== document.activeElement) field.value = state.get(field.name) || "";
  }
  for (const key of Object.keys(FACETS)) countChoices(key, facetCounts(key));
  const on = FILTERS.filter((key) => state.has(key) && key !== "within").length;
  byId("filters-on").textContent = on ? `(${on} on)` : "";
  byId("reset").disabled = !on;
  byId("sort").value = sortColumn();
  byId("order").textContent = state.has("desc") ? "descending ↓" : "ascending ↑";
}

/** Write the counts of a facet beside its choices. */
function countChoices(key, counts) {
  if (key === "flags") {
    for (const box of byId("kinds").querySelectorAll("label")) {
      const many = counts.get(box.querySelector("input").value) ?? 0;
      box.classList.toggle("faint", many === 0);
      box.querySelector("small").replaceChildren(many.toLocaleString("en"), said(" studies"));
    }
    return;
  }
  for (const option of byId("filter").elements[key].options) {
    option.dataset.name ??= option.textContent;
    if (option.value) option.textContent = `${option.dataset.name} (${(counts.get(option.value) ?? 0).toLocaleString("en")})`;
  }
}

/** Read the filter form into the state. */
function readForm() {
  const changes = {};
  const kinds = [];
  for (const field of byId("filter").elements) {
    if (field.type === "checkbox") kinds.push(...(field.checked ? [field.value] : []));
    else if (field.name) changes[field.name] = field.value.trim();
  }
  go({ ...changes, flags: kinds.join(",") });
}

/** Make the checkboxes of the flag kinds, and hide what nothing was measured for. */
function drawKinds() {
  const box = (kind) =>
    el(
      "label",
      {},
      el("input", { type: "checkbox", name: "", value: kind }),
      el("span", {}, kind),
      el("small", {}, ""),
    );
  byId("kinds").replaceChildren(...overview.flag_kinds.map(box));
  byId("gain-filter").hidden = byId("score-filter").hidden = overview.score === null;
  byId("selectors-filter").hidden = overview.beside === null;
}
