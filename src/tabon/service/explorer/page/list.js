// The list of studies: what stands over its rows, and the whole of it.

/** Draw the heads of the columns; those that sort are buttons. */
function drawHead() {
  const column = sortColumn();
  const heads = COLUMNS.map(([key, name, means]) => {
    if (!key) return means ? el("span", meaning(means), name) : el("span", {}, name);
    const on = key === column;
    const arrow = on ? (state.has("desc") ? " ↓" : " ↑") : "";
    return el(
      "button",
      {
        type: "button",
        id: `head-${key}`,
        "aria-pressed": on,
        "aria-label": `Sort by ${key}`,
        ...(means ? meaning(means) : {}),
        click: () => sortBy(key),
      },
      name + arrow,
    );
  });
  byId("head").replaceChildren(...heads);
}

/** Sort by a column; asked again, turn the order round. */
function sortBy(key) {
  const same = key === sortColumn();
  go({ sort: key === "number" ? null : key, desc: same && !state.has("desc") ? "1" : null });
  byId(`head-${key}`)?.focus();
}

/** Return the sentence over the list: what the shown studies have in common. */
function summaryWords() {
  const many = (test) => shown.filter(test).length.toLocaleString("en");
  const facts = [
    `${many((row) => row.abstained !== null)} abstained`,
    `${many((row) => row.tied)} tied`,
    `${many((row) => row.flags.length > 0)} with flags`,
  ];
  const gains = shown.map((row) => row.gain).filter(isNumber);
  if (gains.length)
    facts.push(
      `mean gain ${signed(mean(gains))} ${overview.score ?? ""} over ${count(gains.length, "study", "studies")}`,
    );
  return facts.join(" · ");
}

/** Return what is said over the list. */
function listWords() {
  if (searching) return "The reports are being searched.";
  return shown.length ? summaryWords() : "No study passes the filters; clear some of them.";
}

/** Draw the list. */
function drawList() {
  byId("list").hidden = false;
  byId("study").hidden = true;
  opened = null;
  fillForm();
  drawHead();
  byId("count").textContent =
    shown.length === overview.studies.length
      ? count(shown.length, "study", "studies")
      : `${shown.length.toLocaleString("en")} of ${count(overview.studies.length, "study", "studies")}`;
  byId("summary").textContent = listWords();
  drawHistogram();
  drawSelectors();
  rows.most = overview.studies.reduce((most, row) => Math.max(most, Math.abs(row.gain ?? 0)), 0);
  drawRows({ anew: true });
  document.title = `Studies · ${overview.title}`;
}
