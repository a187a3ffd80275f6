// A study: a report beside one or two others, sentence by sentence or as they were written.
//
// A column is {key, name, report, alignment, draft}: a draft, or the reference, aligned with the base.

const draftName = (study, draft) => {
  const second = study.beside?.selected === draft.number ? " ☆" : "";
  return `${draftLabel(draft.number)}${draft.number === study.selected ? " ★" : ""}${second}`;
};

/** Return the column of a draft beside the prior. */
const draftColumn = (study, draft) => ({
  key: draft.number,
  name: draftName(study, draft),
  plain: draftLabel(draft.number),
  report: draft.report,
  alignment: draft.alignment,
  draft,
});

/** Return the column of the reference beside the prior. */
const referenceColumn = (study) => ({
  key: "reference",
  name: "Reference",
  plain: "Reference",
  report: study.reference,
  alignment: study.reference.alignment,
  draft: null,
});

/** Return what the columns are compared with: the prior. */
const priorBase = (study) => ({
  key: "prior",
  plain: "Prior",
  report: study.prior,
  note: study.older_priors ? `and ${count(study.older_priors, "older one")} not shown` : "the report before",
  kinds: KINDS,
  place: "at",
  gone: "not in this report",
  absent: "not in the prior",
});

const placeId = (base, who, section, at) => `${base.place}-${who}-${section}-${at}`;

/** Return one sentence of a report with its words set off, and those that differ. */
const sentence = (report, section, at, spans, tag) =>
  wording(report[section][at] ?? "", report.marks?.[section]?.[at], spans, tag);

/** Return the chips of the flags that concern a sentence of a draft. */
function flagsAt(draft, section, at) {
  return (draft?.flags ?? [])
    .filter((flag) => flag.section === section && flag.sentences.includes(at))
    .map((flag) => flagChip(flag.kind));
}

/** Return the chips of the flags of some columns that concern a sentence of the prior. */
function flagsAtPrior(columns, section, at) {
  const about = ({ draft }) =>
    (draft?.flags ?? []).filter((flag) => flag.prior_section === section && flag.prior_sentences.includes(at));
  return columns.flatMap((column) =>
    about(column).map((flag) => flagChip(columns.length > 1 ? `${flag.kind} (${column.plain.toLowerCase()})` : flag.kind)),
  );
}

/** Return what a sentence adds to the change, as a bar and in words. */
function shareMark(share) {
  if (!isNumber(share)) return null;
  const width = Math.min(1, Math.abs(share)) * 40;
  return el(
    "span",
    { class: "share", ...meaning("share") },
    svg(
      "svg",
      { viewBox: "0 0 40 6", width: 40, height: 6, "aria-hidden": "true" },
      svg("rect", { class: "track", width: 40, height: 6, rx: 2 }),
      svg("rect", { class: share < 0 ? "minus" : "plus", width, height: 6, rx: 2 }),
    ),
    `share ${percent(share)}`,
  );
}

/** Return the symbol and word of a kind of line. */
function kindMark(kind, kinds) {
  const [symbol, word] = kinds[kind] ?? ["·", "not compared"];
  return el(
    "span",
    { class: `kind ${kinds[kind] ? kind : "plain"}` },
    el("span", { class: "symbol", "aria-hidden": "true" }, symbol),
    ` ${word}`,
  );
}

/** Return the name of a cell's report: seen where columns are stacked, and always said. */
const cellName = (name) => el("span", { class: "cellname" }, name);

/** Return how far a sentence is from its partner, or from the nearest one. */
function distanceMark(line) {
  if (line.kind === "same" || !isNumber(line.distance)) return null;
  const name = line.kind === "reworded" ? "distance" : "nearest";
  return el("span", { class: "faint", ...meaning(name) }, `${name} ${number(line.distance, "", 2)}`);
}

/** Return the cell of a column in a row. */
function columnCell(base, column, section, line) {
  if (!line || (line.kind === null && line.current === null)) return el("div", { class: "cell empty" });
  const kind = base.kinds[line.kind] ? line.kind : "plain";
  const gone = line.current === null;
  const words = gone
    ? el("p", { class: "words faint" }, base.gone)
    : el("p", { class: "words" }, sentence(column.report, section, line.current, line.added, "ins"));
  const turned = line.turned?.length ? flagChip(`says otherwise of ${line.turned.join(", ")}`) : null;
  const flags = gone || base.place !== "at" ? null : flagsAt(column.draft, section, line.current);
  return el(
    "div",
    {
      class: `cell ${kind}${gone ? " gone" : ""}`,
      id: gone ? null : placeId(base, column.key, section, line.current),
      tabindex: gone ? null : -1,
    },
    cellName(column.plain),
    words,
    el(
      "p",
      { class: "marks" },
      kindMark(line.kind, base.kinds),
      shareMark(line.share),
      distanceMark(line),
      turnChips(line.turns),
      turned,
      flags,
    ),
  );
}

/** Return the cell of the base in a row. */
function baseCell(base, columns, section, row) {
  if (row.prior === null)
    return el("div", { class: "cell empty" }, el("p", { class: "words faint" }, base.absent));
  const kind = columns.length === 1 && base.kinds[row.cells[0]?.kind] ? row.cells[0].kind : "plain";
  const lost = row.cells.flatMap((line) => line?.lost ?? []);
  const chips = base.place === "at" ? flagsAtPrior(columns, section, row.prior) : [];
  return el(
    "div",
    { class: `cell prior ${kind}`, id: placeId(base, base.key, section, row.prior), tabindex: -1 },
    cellName(base.plain),
    el("p", { class: "words" }, sentence(base.report, section, row.prior, lost, "del")),
    chips.length ? el("p", { class: "marks" }, chips) : null,
  );
}

/** Return a sentence for each report that lacks a section. */
function lackWords(base, columns, section) {
  const notes = [];
  if (!base.report[section].length)
    notes.push(
      base.key === "prior"
        ? `The prior has no ${section}; this section is left out for all drafts.`
        : `The reference has no ${section}.`,
    );
  for (const { report, plain } of columns) {
    if (!report[section].length) notes.push(`${plain} has no ${section}.`);
  }
  return notes.map((note) => el("p", { class: "note" }, note));
}

/** Return one section of some reports, sentence by sentence. */
function sectionRows(base, columns, section) {
  const items = rowsOf(base, columns, section).map((row) =>
    el(
      "li",
      { class: "line" },
      baseCell(base, columns, section, row),
      columns.map((column, at) => columnCell(base, column, section, row.cells[at])),
    ),
  );
  return el(
    "section",
    { class: "part" },
    el("h4", {}, title(section)),
    lackWords(base, columns, section),
    items.length ? el("ol", {}, items) : null,
  );
}

/** Return one section of some reports as they were written, lines and all. */
function sectionAsWritten(base, columns, section) {
  const cell = ({ plain, report }) => {
    const words = report.written?.[section] ?? report[section].join(" ");
    return el(
      "div",
      { class: "cell plain" },
      cellName(plain),
      words ? el("p", { class: "words" }, words) : el("p", { class: "note" }, `no ${section}`),
    );
  };
  return el(
    "section",
    { class: "part" },
    el("h4", {}, title(section)),
    el("div", { class: "line" }, [base, ...columns].map(cell)),
  );
}

/** Return the switch between aligned sentences and the reports as they were written. */
function viewSwitch(written) {
  const choice = (id, name, on, view) =>
    el("button", { type: "button", id, "aria-pressed": on, click: () => go({ view }) }, name);
  return el(
    "div",
    { class: "switch", role: "group", "aria-label": "How the reports are shown" },
    choice("view-aligned", "Sentence by sentence", !written, null),
    choice("view-written", "As written", written, "written"),
  );
}

/** Return what stands outside the two sections, where there is something. */
function otherText(base, columns) {
  const reports = [base, ...columns];
  if (!reports.some(({ report }) => report.other)) return null;
  const cell = ({ plain, report }) =>
    el(
      "div",
      { class: "cell plain" },
      cellName(plain),
      el("p", { class: "words" }, report.other || "nothing"),
    );
  return el(
    "section",
    { class: "part" },
    el("h4", {}, "Outside the two sections"),
    el("div", { class: "line" }, reports.map(cell)),
  );
}

/** Return how many lines of each kind a column has. */
function legend(base, column) {
  const lines = SECTIONS.flatMap((section) => column.alignment[section] ?? []);
  const one = (kind) =>
    el("li", {}, kindMark(kind, base.kinds), ` ${lines.filter((line) => line.kind === kind).length}`);
  return el(
    "ul",
    { class: "legend", "aria-label": `Lines of ${column.plain.toLowerCase()} beside the ${base.key}` },
    Object.keys(base.kinds).map(one),
  );
}

/** Return the reports of a comparison, with their names over them. */
function sideBySide(base, columns) {
  const written = state.get("view") === "written";
  const head = (name, note) => el("div", { class: "cell" }, el("h3", {}, name), note);
  return [
    el(
      "div",
      { class: "line heads" },
      head(base.plain, el("p", { class: "faint" }, base.note)),
      columns.map((column) => head(column.name, legend(base, column))),
    ),
    SECTIONS.map((section) => (written ? sectionAsWritten : sectionRows)(base, columns, section)),
  ];
}

/** Return the prior beside one draft or two, or beside a draft and the reference. */
function comparison(study, columns) {
  const base = priorBase(study);
  return el(
    "section",
    {
      class: `panel compare columns-${columns.length + 1}`,
      id: "compare",
      role: "tabpanel",
      "aria-label": `The prior beside ${columns.map(({ plain }) => plain.toLowerCase()).join(" and ")}`,
    },
    viewSwitch(state.get("view") === "written"),
    sideBySide(base, columns),
    otherText(base, columns),
    el("p", { class: "note" }, READING),
  );
}
