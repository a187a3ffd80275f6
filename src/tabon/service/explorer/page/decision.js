// A study: what decided between the pick and another draft, and what speaks for and against a draft.

/** Return one part of one section with its share of the lead. */
function decidedItem(one, most) {
  const share = isNumber(one.share) ? percent(one.share) : "no lead";
  return el(
    "li",
    {},
    el("span", { class: "words" }, `${title(one.section)}: ${one.part}`),
    gainBar(one.share ?? 0, most),
    el("span", { class: "value" }, share, el("small", { class: "faint" }, ` ${signed(one.adds)}`)),
  );
}

/** Return what decided, and the evidence in plain sentences. */
function decisionPanel(study, draft) {
  const decided = draft.decision.filter((one) => !isNumber(one.share) || Math.round(100 * one.share) !== 0);
  const most = Math.max(...decided.map((one) => Math.abs(one.share ?? 0)), 0);
  const evidence = SECTIONS.filter((section) => draft.evidence[section]?.length).map((section) => [
    el("h4", {}, `${title(section)} of ${draftLabel(draft.number).toLowerCase()}`),
    el(
      "ul",
      { class: "evidence" },
      draft.evidence[section].map((line) => el("li", { class: "words" }, line)),
    ),
  ]);
  return el(
    "section",
    { class: "panel" },
    el("h3", {}, `What decided about ${draftLabel(draft.number).toLowerCase()}`),
    el("p", { class: "words" }, title(`${draft.verdict}.`)),
    draft.decision.length
      ? [
          el(
            "p",
            { class: "faint" },
            "Each part's ",
            term("lead", "share of the lead"),
            ` of draft ${study.selected + 1} over draft ${draft.against + 1}, and what it adds. Shares add up to 100 %; one below zero speaks for draft ${draft.against + 1}.`,
          ),
          el(
            "ol",
            { class: "decided" },
            decided.map((one) => decidedItem(one, most)),
          ),
        ]
      : null,
    evidence,
  );
}
