// A study: distances as bars.

/** Return the groups of bars: {name, values, lacks, higher}. */
function measures(study) {
  const parts = (section) => [...new Set(study.drafts.flatMap((draft) => Object.keys(draft.parts?.[section] ?? {})))];
  const inSection = (section) => [
    { name: title(section), means: "section", section, values: study.drafts.map((draft) => draft.sections?.[section] ?? null) },
    ...parts(section).map((part) => ({
      name: `${title(section)}: ${part}`,
      part: true,
      means: "part",
      section,
      values: study.drafts.map((draft) => draft.parts?.[section]?.[part] ?? null),
    })),
  ];
  const groups = [
    { name: "Total distance", means: "total", values: study.drafts.map((draft) => draft.total) },
    ...SECTIONS.flatMap(inSection),
  ];
  if (study.beside) {
    groups.push({
      name: `Total distance of ${overview.beside.selector}`,
      means: "total",
      star: "☆",
      values: study.drafts.map((draft) => draft.beside_total),
    });
  }
  if (study.drafts.some((draft) => isNumber(draft.score))) {
    groups.push({
      name: `Score ${overview.score ?? ""}`,
      higher: true,
      means: "score",
      values: study.drafts.map((draft) => draft.score),
    });
  }
  return groups.filter((group) => group.values.some(isNumber));
}

/** Return one bar: the draft's number, the bar, the value. */
function bar(study, group, draft, value, scale, digits) {
  const picked = draft.number === (group.star ? study.beside.selected : study.selected);
  const lacks = group.section && draft.lacks.includes(group.section) ? " (lacks it)" : "";
  return el(
    "li",
    { class: `${picked ? "picked" : ""}${shownDrafts(study).includes(draft) ? " on" : ""}` },
    el(
      "span",
      { class: "who" },
      said("draft "),
      `${draft.number + 1}`,
      picked ? el("span", {}, el("span", { "aria-hidden": "true" }, ` ${group.star ?? "★"}`), said(" picked")) : null,
    ),
    svg(
      "svg",
      { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { class: "track", width: 100, height: 10 }),
      isNumber(value) ? svg("rect", { class: "fill", width: (100 * Math.max(0, value)) / scale, height: 10 }) : null,
    ),
    el("span", { class: "value" }, number(value, "–", digits) + lacks),
  );
}

/** Return one group of bars. */
function barGroup(study, group) {
  const scale = Math.max(...group.values.filter(isNumber), 1e-9);
  const digits = digitsFor(group.values);
  return el(
    "section",
    { class: group.part ? "bars part-of" : "bars" },
    el("h4", {}, group.part ? group.name : term(group.means, group.name), el("small", {}, group.higher ? " higher is better" : "")),
    el(
      "ol",
      {},
      study.drafts.map((draft, at) => bar(study, group, draft, group.values[at], scale, digits)),
    ),
  );
}

/** Return all distances of all drafts. */
function barPanel(study) {
  const groups = measures(study);
  const parts = groups.filter((group) => group.part);
  const words = groups.length ? "A lower distance is better. ★ is the pick." : "No distance was measured.";
  return el(
    "section",
    { class: "panel" },
    el("h3", {}, "Distances"),
    el("p", { class: "faint" }, words),
    el(
      "div",
      { class: "groups" },
      groups.filter((group) => !group.part).map((group) => barGroup(study, group)),
    ),
    parts.length
      ? el(
          "details",
          { id: "parts", open: state.has("parts"), toggle: (event) => keep({ parts: event.target.open ? "1" : null }) },
          el("summary", {}, `${count(parts.length, "part")} of these distances`),
          el("p", { class: "faint" }, overview.parts_add_up ? "The parts of a section add up to it." : "What is named after a colon is beside it."),
          el(
            "div",
            { class: "groups" },
            parts.map((group) => barGroup(study, group)),
          ),
        )
      : null,
  );
}
