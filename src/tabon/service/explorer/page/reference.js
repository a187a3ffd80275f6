// A study: a draft beside the reference report, with what it missed and what it invented.

/** Return what the draft is compared with here: the report that was really written. */
const referenceBase = (study) => ({
  key: "reference",
  plain: "Reference",
  report: study.reference,
  note: "the report that was really written",
  kinds: REFERENCE_KINDS,
  place: "by",
  gone: "missed",
  absent: "not in the reference",
});

/** Return the reference beside a draft, with scores; a sentence where there is none. */
function referencePanel(study, draft) {
  if (!study.reference)
    return el(
      "section",
      { class: "panel" },
      el("h3", {}, "Reference report"),
      el("p", { class: "note" }, "There is no reference report for this study, so no score and no gain."),
    );
  const base = referenceBase(study);
  const column = draft && { ...draftColumn(study, draft), alignment: draft.beside_reference ?? {} };
  return el(
    "section",
    { class: "panel compare columns-2", id: "reference", "aria-label": "The reference beside the draft" },
    el(
      "div",
      { class: "intro" },
      el("h3", {}, draft ? `${draftLabel(draft.number)} beside the reference report` : "Reference report"),
      el("p", {}, gainWords(study)),
    ),
    column ? sideBySide(base, [column]) : SECTIONS.map((section) => sectionAsWritten(base, [], section)),
    column ? otherText(base, [column]) : null,
  );
}

/** Return what the pick gains over a random one, in words. */
function gainWords(study) {
  const average = mean(study.drafts.map((draft) => draft.score));
  const name = overview.score ?? "score";
  if (!isNumber(average)) return "No draft was scored, so there is no gain.";
  if (!isNumber(study.gain))
    return `${name}: the drafts' mean is ${number(average)}; there is no gain, because no draft is picked.`;
  const best = study.drafts.find((draft) => draft.score === study.best);
  const could = study.score === study.best || !best ? "; no draft has more" : `; ${draftLabel(best.number).toLowerCase()} has the most, ${number(study.best)}`;
  return `${name}: the pick has ${number(study.score)}, the drafts' mean is ${number(average)}, so the gain over a random pick is ${signed(study.gain)}${could}.`;
}
