// A study: the prior beside one draft or two.

const draftName = (study, draft) => `Draft ${draft.number}${draft.number === study.selected ? " ★" : ""}`;
const placeId = (who, section, at) => `at-${who}-${section}-${at}`;

/** Return one sentence of a report with its words set off, and those that differ. */
const sentence = (report, section, at, spans, tag) =>
  wording(report[section][at] ?? "", report.marks?.[section]?.[at], spans, tag);

/** Return the chips of the flags that concern a sentence of a draft. */
function flagsAt(draft, section, at) {
  return draft.flags
    .filter((flag) => flag.section === section && flag.sentences.includes(at))
    .map((flag) => flagChip(flag.kind));
}

/** Return the chips of the flags of some drafts that concern a sentence of the prior. */
function flagsAtPrior(drafts, section, at) {
  const about = (draft) =>
    draft.flags.filter((flag) => flag.prior_section === section && flag.prior_sentences.includes(at));
  return drafts.flatMap((draft) =>
    about(draft).map((flag) => flagChip(drafts.length > 1 ? `${flag.kind} (draft ${draft.number})` : flag.kind)),
  );
}

/** Return what a sentence adds to the change, as a bar and in words. */
function shareMark(share) {
  if (!isNumber(share)) return null;
  const width = Math.min(1, Math.abs(share)) * 40;
  return el(
    "span",
    { class: "share" },
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
function kindMark(kind) {
  const [symbol, word] = KINDS[kind] ?? ["·", "not compared"];
  return el(
    "span",
    { class: `kind ${kind ?? "plain"}` },
    el("span", { class: "symbol", "aria-hidden": "true" }, symbol),
    ` ${word}`,
  );
}

/** Return the name of a cell's report: seen where columns are stacked, and always said. */
const cellName = (name) => el("span", { class: "cellname" }, name);

/** Return the cell of a draft in a row. */
function draftCell(draft, section, line) {
  if (!line || (line.kind === null && line.current === null)) return el("div", { class: "cell empty" });
  const kind = line.kind ?? "plain";
  const gone = line.current === null;
  const text = gone
    ? el("p", { class: "words faint" }, "not in this draft")
    : el("p", { class: "words" }, sentence(draft.report, section, line.current, line.added, "ins"));
  const near = line.kind === "reworded" ? "distance" : "nearest";
  const distance =
    line.kind !== "same" && isNumber(line.distance)
      ? el("span", { class: "faint" }, `${near} ${number(line.distance)}`)
      : null;
  const turned = line.turned?.length ? flagChip(`says otherwise of ${line.turned.join(", ")}`) : null;
  const marks = el(
    "p",
    { class: "marks" },
    kindMark(line.kind),
    shareMark(line.share),
    distance,
    turnChips(line.turns),
    turned,
    gone ? null : flagsAt(draft, section, line.current),
  );
  return el(
    "div",
    {
      class: `cell ${kind}${gone ? " gone" : ""}`,
      id: gone ? null : placeId(draft.number, section, line.current),
      tabindex: gone ? null : -1,
    },
    cellName(`Draft ${draft.number}`),
    text,
    marks,
  );
}

/** Return the cell of the prior in a row. */
function priorCell(study, drafts, section, row) {
  if (row.prior === null)
    return el("div", { class: "cell empty" }, el("p", { class: "words faint" }, "not in the prior"));
  const kind = (drafts.length === 1 && row.cells[0]?.kind) || "plain";
  const lost = row.cells.flatMap((line) => line?.lost ?? []);
  const chips = flagsAtPrior(drafts, section, row.prior);
  return el(
    "div",
    { class: `cell prior ${kind}`, id: placeId("prior", section, row.prior), tabindex: -1 },
    cellName("Prior"),
    el("p", { class: "words" }, sentence(study.prior, section, row.prior, lost, "del")),
    chips.length ? el("p", { class: "marks" }, chips) : null,
  );
}

/** Return a sentence for each report that lacks a section. */
function lackWords(study, drafts, section) {
  const notes = [];
  if (!study.prior[section].length)
    notes.push(`The prior has no ${section}; this section is left out for all drafts.`);
  for (const draft of drafts) {
    if (!draft.report[section].length) notes.push(`Draft ${draft.number} has no ${section}.`);
  }
  return notes.map((note) => el("p", { class: "note" }, note));
}

/** Return one section of some reports as they were written, lines and all. */
function sectionAsWritten(reports, section) {
  const cell = ([name, report]) => {
    const text = report.written?.[section] ?? report[section].join(" ");
    return el(
      "div",
      { class: "cell plain" },
      cellName(name),
      text ? el("p", { class: "words" }, text) : el("p", { class: "note" }, `no ${section}`),
    );
  };
  return el(
    "section",
    { class: "part" },
    el("h4", {}, title(section)),
    el("div", { class: "line" }, reports.map(cell)),
  );
}

/** Return the switch between aligned sentences and the reports as they were written. */
function viewSwitch(written) {
  const choice = (name, on, view) =>
    el("button", { type: "button", id: `view-${name.replace(" ", "-")}`, "aria-pressed": on, click: () => go({ view }) }, title(name));
  return el(
    "div",
    { class: "switch", role: "group", "aria-label": "How the reports are shown" },
    choice("aligned", !written, null),
    choice("as written", written, "written"),
  );
}

/** Return one section: prior and drafts side by side. */
function sectionRows(study, drafts, section) {
  const rows = rowsOf(study, drafts, section).map((row) =>
    el(
      "li",
      { class: "line" },
      priorCell(study, drafts, section, row),
      drafts.map((draft, at) => draftCell(draft, section, row.cells[at])),
    ),
  );
  return el(
    "section",
    { class: "part" },
    el("h4", {}, title(section)),
    lackWords(study, drafts, section),
    rows.length ? el("ol", {}, rows) : null,
  );
}

/** Return what stands outside the two sections, where there is something. */
function otherText(study, drafts) {
  const texts = [study.prior.other, ...drafts.map((draft) => draft.report.other)];
  if (!texts.some(Boolean)) return null;
  return el(
    "section",
    { class: "part" },
    el("h4", {}, "Outside the two sections"),
    el(
      "div",
      { class: "line" },
      texts.map((text) => el("div", { class: "cell plain" }, el("p", { class: "words" }, text || "nothing"))),
    ),
  );
}

/** Return how many lines of each kind a draft has. */
function legend(study, draft) {
  const lines = SECTIONS.flatMap((section) => draft.alignment[section] ?? []);
  const one = (kind) => el("li", {}, kindMark(kind), ` ${lines.filter((line) => line.kind === kind).length}`);
  return el(
    "ul",
    { class: "legend", "aria-label": `Lines of draft ${draft.number} beside the prior` },
    Object.keys(KINDS).map(one),
  );
}

/** Return the prior beside one draft or two. */
function comparison(study, drafts) {
  const head = (name, note) => el("div", { class: "cell" }, el("h3", {}, name), note);
  const older = study.older_priors ? `and ${count(study.older_priors, "older one")} not shown` : "the report before";
  const lines = drafts.flatMap((draft) => SECTIONS.flatMap((section) => draft.alignment[section] ?? []));
  const shared = lines.some((line) => isNumber(line.share));
  const written = state.get("view") === "written";
  const reports = [["Prior", study.prior], ...drafts.map((draft) => [`Draft ${draft.number}`, draft.report])];
  return el(
    "section",
    {
      class: `panel compare columns-${drafts.length + 1}`,
      id: "compare",
      role: "tabpanel",
      "aria-label": `The prior beside ${drafts.map((draft) => `draft ${draft.number}`).join(" and ")}`,
    },
    el(
      "div",
      { class: "line heads" },
      head("Prior", el("p", { class: "faint" }, older)),
      drafts.map((draft) => head(draftName(study, draft), legend(study, draft))),
    ),
    viewSwitch(written),
    SECTIONS.map((section) =>
      written ? sectionAsWritten(reports, section) : sectionRows(study, drafts, section),
    ),
    otherText(study, drafts),
    written ? null : el("p", { class: "note" }, shared ? `${READING} ${READING_SHARES}` : READING),
  );
}
