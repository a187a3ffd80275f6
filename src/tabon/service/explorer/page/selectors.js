// The list: two selectors side by side.

/** Return the cells of one selector: picks, mean score, mean gain, abstained. */
function selectorRow(name, mark, choices) {
  const cell = (text) => el("td", {}, text);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("span", { class: "star", "aria-hidden": "true" }, `${mark} `), name),
    cell(choices.filter((one) => one.selected !== null).length.toLocaleString("en")),
    overview.score ? cell(number(mean(choices.map((one) => one.score)))) : null,
    overview.score ? cell(signed(mean(choices.map((one) => one.gain)))) : null,
  );
}

/** Return a button that shows the studies where the selectors stand so to each other. */
function agreementButton(value, many, words) {
  const on = state.get("selectors") === value;
  return el(
    "button",
    { type: "button", id: `agree-${value}`, "aria-pressed": on, click: () => go({ selectors: on ? null : value }) },
    el("b", {}, many.toLocaleString("en")),
    ` ${words}`,
  );
}

/** Draw where the two selectors differ and whose picks have the higher scores, over the studies that pass the other filters. */
function drawSelectors() {
  const { beside, score, selector } = overview;
  byId("selectors").hidden = !beside;
  if (!beside) return;
  const found = overview.studies.filter(filterOf("selectors"));
  const counts = facetCounts("selectors");
  const many = (value) => counts.get(value) ?? 0;
  const scored = found.filter((row) => isNumber(row.score) && isNumber(row.beside.score));
  const apart = mean(scored.map((row) => row.score - row.beside.score));
  const head = (text, name) => el("th", { scope: "col", ...(name ? meaning(name) : {}) }, text);
  byId("selectors-words").textContent =
    `They pick another draft in ${count(many("differ"), "study", "studies")} of ${found.length.toLocaleString("en")}.` +
    (isNumber(apart)
      ? ` Where there is a reference, the picks of ${selector} have ${score} ${signed(apart)} on average beside those of ${beside.selector}.`
      : " There is no reference, so whose pick is better stays open.");
  byId("selectors-table").replaceChildren(
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        head("Selector"),
        head("picks", "pick"),
        score ? head(`mean ${score}`, "score") : null,
        score ? head("mean gain", "gain") : null,
      ),
    ),
    el(
      "tbody",
      {},
      selectorRow(selector, "★", found),
      selectorRow(beside.selector, "☆", found.map((row) => row.beside)),
    ),
  );
  byId("selectors-choice").replaceChildren(
    agreementButton("differ", many("differ"), "differ"),
    agreementButton("same", many("same"), "same pick"),
    ...(score
      ? [
          agreementButton("first", many("first"), `${selector} picked better`),
          agreementButton("second", many("second"), `${beside.selector} picked better`),
        ]
      : []),
  );
}
