// The list: one row, and those rows alone that are near the screen.

const SPARE = 12; // rows that are kept above and below the screen

/** Return a small bar from the middle: right is better than a random pick, left is worse. */
function gainBar(gain, most) {
  const width = most > 0 ? (22 * Math.abs(gain)) / most : 0;
  return svg(
    "svg",
    { class: "gainbar", viewBox: "0 0 48 8", width: 48, height: 8, "aria-hidden": "true" },
    svg("path", { class: "axis", d: "M24 0v8" }),
    svg("rect", {
      class: gain < 0 ? "minus" : "plus",
      x: gain < 0 ? 24 - width : 24,
      y: 1.5,
      width,
      height: 5,
      rx: 1,
    }),
  );
}

/** Return a label that is seen at phone width and always said. */
const label = (text) => el("span", { class: "label" }, `${text} `);

/** Return a chip for a flag. */
const flagChip = (kind) => el("span", { class: "chip flag" }, el("span", { "aria-hidden": "true" }, "⚑ "), kind);

/** Return the name of a draft; people count from 1. */
const draftLabel = (at) => `Draft ${at + 1}`;

/** Return what a selector picked in a study, in words. */
function pickWords(row, choice, star) {
  if (choice.selected === null)
    return el("span", { class: "chip none" }, `abstained: ${choice.abstained ?? "no reason given"}`);
  return el(
    "span",
    {},
    overview.beside ? el("span", { class: "star", "aria-hidden": "true" }, `${star} `) : null,
    `draft ${choice.selected + 1} of ${row.drafts}`,
    choice.tied ? el("span", { class: "chip" }, "tied") : null,
  );
}

/** Return a text with the words that were searched set off. */
function highlighted(text) {
  const words = (state.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const low = text.toLowerCase();
  const spans = words.flatMap((word) => {
    const at = low.indexOf(word);
    return at < 0 || low.length !== text.length ? [] : [[at, at + word.length]];
  });
  const found = [];
  let end = 0;
  for (const [from, to] of spans.sort((a, b) => a[0] - b[0])) {
    if (from < end) continue;
    found.push(text.slice(end, from), el("mark", {}, text.slice(from, to)));
    end = to;
  }
  return [...found, text.slice(end)];
}

/** Return the first words of the pick, or the sentence in which the search found its words. */
function previewOf(row) {
  const hit = hitsOf === searchKey() ? hits?.get(row.number) : null;
  if (!hit) return el("span", { class: "preview" }, row.preview);
  const where = typeof hit.where === "number" ? draftLabel(hit.where).toLowerCase() : hit.where;
  return el("span", { class: "preview" }, el("span", { class: "where" }, `${where}: `), highlighted(hit.sentence));
}

/** Return one line of the list. */
function studyRow(row, at, most) {
  const missing = () => el("span", { class: "faint" }, "–", said("not measured"));
  const value = (found, text) => (isNumber(found) ? text : missing());
  const link = el(
    "a",
    { class: "row", href: hashWith({ ...toStudy, study: row.number }), "data-number": row.number },
    el("span", { class: "no" }, said("Study "), String(row.number + 1)),
    el(
      "span",
      { class: "id" },
      el("b", {}, row.id),
      el(
        "small",
        {},
        row.patient === null ? "patient not named" : said("patient "),
        row.patient,
        row.has_image ? " · image" : null,
      ),
      previewOf(row),
    ),
    el("span", { class: "pick" }, pickWords(row, row, "★"), row.beside ? pickWords(row, row.beside, "☆") : null),
    el("span", { class: "num" }, label("margin"), value(row.margin, difference(row.margin))),
    el(
      "span",
      { class: "num gain" },
      label("gain"),
      isNumber(row.gain) ? [gainBar(row.gain, most), el("span", {}, signed(row.gain))] : missing(),
    ),
    el("span", { class: "num" }, label("p"), value(row.p, number(row.p, "", 2))),
    el(
      "span",
      { class: "chips" },
      row.flags.length
        ? row.flags.map(flagChip)
        : el("span", { class: "faint" }, row.selected === null ? "no pick" : "no flag"),
    ),
  );
  return el("li", { "aria-setsize": shown.length, "aria-posinset": at + 1, "data-at": at }, link);
}

const rows = { height: 0, from: 0, to: 0, most: 0 }; // the drawn part of `shown`

/** Return an empty item as high as some rows. */
const space = (many) =>
  el(
    "li",
    { class: "space", "aria-hidden": "true" },
    svg("svg", { width: 1, height: Math.max(0, many) * rows.height }),
  );

/** Draw the rows that are near the screen; those that are drawn already stay in place, and keep the focus. */
function drawRows({ anew = false } = {}) {
  const list = byId("studies");
  if (byId("list").hidden) return;
  if (!rows.height || anew) measureRow(list);
  const top = -list.getBoundingClientRect().top;
  const first = Math.floor(top / rows.height / SPARE) * SPARE - SPARE;
  const from = Math.max(0, Math.min(first, shown.length - SPARE));
  const to = Math.min(shown.length, from + Math.ceil(window.innerHeight / rows.height) + 3 * SPARE);
  if (!anew && from === rows.from && to === rows.to) return;
  const drawn = (start_, end) => shown.slice(start_, end).map((row, at) => studyRow(row, start_ + at, rows.most));
  if (anew || from >= rows.to || to <= rows.from) {
    list.replaceChildren(space(from), ...drawn(from, to), space(shown.length - to));
  } else {
    const items = [...list.children].slice(1, -1);
    for (const item of items) if (item.dataset.at < from || item.dataset.at >= to) item.remove();
    list.firstChild.replaceWith(space(from), ...drawn(from, Math.max(from, rows.from)));
    list.lastChild.replaceWith(...drawn(Math.min(to, rows.to), to), space(shown.length - to));
  }
  [rows.from, rows.to] = [from, to];
}

/** Learn how high a row is: all are, at one width of the page. */
function measureRow(list) {
  if (!shown.length) {
    rows.height = 1;
    return;
  }
  list.replaceChildren(studyRow(shown[0], 0, rows.most));
  rows.height = list.firstElementChild.getBoundingClientRect().height || 1;
}

/** Move the focus to a study in the list, wherever it stands. */
function focusRow(wanted) {
  const at = Math.min(shown.length - 1, Math.max(0, wanted));
  const row = shown[at];
  if (!row) return;
  cursor = row.number;
  const top = byId("studies").getBoundingClientRect().top + window.scrollY + at * rows.height;
  const seen = [window.scrollY + window.innerHeight * 0.12, window.scrollY + window.innerHeight - rows.height];
  if (top < seen[0] || top > seen[1])
    window.scrollTo({ top: top - window.innerHeight * (top < seen[0] ? 0.15 : 0.7), behavior: "instant" });
  drawRows();
  byId("studies").querySelector(`[data-number="${row.number}"]`)?.focus({ preventScroll: true });
}

/** Return where the focus stands in the list; -1 for nowhere. */
function place() {
  const at = document.activeElement?.dataset?.number ?? cursor;
  return at === null ? -1 : shown.findIndex((row) => row.number === Number(at));
}
