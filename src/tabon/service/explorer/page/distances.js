// A study: distances as bars.

/** Return the groups of bars: {name, values, lacks, higher}. */
function measures(study) {
  const parts = (section) => [...new Set(study.drafts.flatMap((draft) => Object.keys(draft.parts?.[section] ?? {})))];
  const inSection = (section) => [
    { name: title(section), section, values: study.drafts.map((draft) => draft.sections?.[section] ?? null) },
    ...parts(section).map((part) => ({
      name: `${title(section)}: ${part}`,
      part: true,
      section,
      values: study.drafts.map((draft) => draft.parts?.[section]?.[part] ?? null),
    })),
  ];
  const groups = [
    { name: "Total distance", values: study.drafts.map((draft) => draft.total) },
    ...SECTIONS.flatMap(inSection),
  ];
  if (study.drafts.some((draft) => isNumber(draft.score))) {
    groups.push({
      name: `Score ${overview.score ?? ""}`,
      higher: true,
      values: study.drafts.map((draft) => draft.score),
    });
  }
  return groups.filter((group) => group.values.some(isNumber));
}

/** Return one bar: the draft's number, the bar, the value. */
function bar(study, group, draft, value, scale) {
  const picked = draft.number === study.selected;
  const lacks = group.section && draft.lacks.includes(group.section) ? " (lacks it)" : "";
  return el(
    "li",
    { class: `${picked ? "picked" : ""}${shownDrafts(study).includes(draft) ? " on" : ""}` },
    el(
      "span",
      { class: "who" },
      said("draft "),
      `${draft.number}`,
      picked ? el("span", {}, el("span", { "aria-hidden": "true" }, " ★"), said(" picked")) : null,
    ),
    svg(
      "svg",
      { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", width: 100, height: 10 }),
      isNumber(value) ? svg("rect", { class: "fill", width: (100 * Math.max(0, value)) / scale, height: 10 }) : null,
    ),
    el("span", { class: "value" }, number(value, "–") + lacks),
  );
}

/** Return one group of bars. */
function barGroup(study, group) {
  const scale = Math.max(...group.values.filter(isNumber), 1e-9);
  return el(
    "section",
    { class: group.part ? "bars part-of" : "bars" },
    el("h4", {}, group.name, el("small", {}, group.higher ? " higher is better" : "")),
    el(
      "ol",
      {},
      study.drafts.map((draft, at) => bar(study, group, draft, group.values[at], scale)),
    ),
  );
}

/** Return all distances of all drafts. */
function barPanel(study) {
  const groups = measures(study);
  const parts = overview.parts_add_up ? "The parts of a section add up to it." : "What is named after a colon is beside it.";
  const words = groups.length
    ? `A lower distance is better. ★ is the pick.${groups.some((group) => group.part) ? ` ${parts}` : ""}`
    : "No distance was measured.";
  return el(
    "section",
    { class: "panel" },
    el("h3", {}, "Distances"),
    el("p", { class: "faint" }, words),
    el(
      "div",
      { class: "groups" },
      groups.map((group) => barGroup(study, group)),
    ),
  );
}
