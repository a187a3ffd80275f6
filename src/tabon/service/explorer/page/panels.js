// A study: flags and training transitions.

/** Return a button that leads to a sentence. */
function jump(base, who, section, at, text) {
  const short = text.length > 72 ? `${text.slice(0, 70)}…` : text;
  const lead = () => {
    if (state.get("view") === "written") go({ view: null });
    const target = byId(placeId(base, who, section, at));
    target?.focus();
    target?.scrollIntoView({ block: "center" });
  };
  return el(
    "button",
    { type: "button", class: "jump", click: lead },
    said("show "),
    `${who === "prior" ? "prior" : "draft"} ${section}: “${short}”`,
  );
}

/** Return one flag with its words and the way to its sentences. */
function flagItem(study, draft, flag) {
  const base = priorBase(study);
  const text = (report, section, at) => report[section]?.[at];
  const here = flag.sentences.filter(
    (at) => typeof text(draft.report, flag.section, at) === "string" && Array.isArray(draft.report[flag.section]),
  );
  const there = flag.prior_sentences.filter(
    (at) => Array.isArray(study.prior[flag.prior_section]) && text(study.prior, flag.prior_section, at) !== undefined,
  );
  return el(
    "li",
    {},
    flagChip(flag.kind),
    flag.observation ? el("b", {}, ` ${flag.observation} `) : " ",
    el("span", {}, flag.detail),
    flag.section === "other" ? " (outside the two sections)" : null,
    el(
      "span",
      { class: "jumps" },
      here.map((at) => jump(base, draft.number, flag.section, at, text(draft.report, flag.section, at))),
      there.map((at) => jump(base, "prior", flag.prior_section, at, text(study.prior, flag.prior_section, at))),
    ),
  );
}

/** Return the flags of the shown drafts as lists. */
function flagPanel(study, drafts) {
  const list = (draft) => [
    el("h4", {}, draftLabel(draft.number)),
    draft.flags.length
      ? el(
          "ul",
          { class: "flags" },
          draft.flags.map((flag) => flagItem(study, draft, flag)),
        )
      : el("p", { class: "note" }, "No flag: nothing that the rules look for was found."),
  ];
  return el("section", { class: "panel" }, el("h3", {}, term("flags", "Flags")), drafts.map(list));
}

/** Return whether a sentence is among others, up to case, spaces and the final stop. */
function isAmong(text, others) {
  const bare = (one) => one.toLowerCase().replaceAll(/\s+|\.\s*$/g, "");
  return others.some((other) => bare(other) === bare(text));
}

/** Return one training transition: prior → current. */
function nearestItem(item) {
  const side = (name, sentences, others) =>
    el(
      "div",
      { class: "cell plain" },
      el("p", { class: "side" }, name),
      sentences.map((text) => el("p", { class: isAmong(text, others) ? "words faint" : "words" }, text)),
    );
  const words =
    item.prior.length || item.current.length
      ? el(
          "div",
          { class: "change" },
          side("before", item.prior, item.current),
          el("span", { class: "arrow", "aria-hidden": "true" }, "→"),
          side("after", item.current, item.prior),
        )
      : el("p", { class: "note" }, "The text of the bank is not shown here.");
  return el(
    "li",
    {},
    el(
      "p",
      { class: "marks" },
      el("b", {}, item.id),
      isNumber(item.prior_distance)
        ? el("span", { class: "faint", ...meaning("visit") }, `its prior is ${number(item.prior_distance)} away`)
        : null,
      el("span", { class: "faint", ...meaning("change") }, `distance ${number(item.distance)}`),
    ),
    words,
  );
}

/** Return the training transitions that a draft is explained by; nothing if the selector has none. */
function nearestPanel(draft) {
  if (!overview.cited) return null;
  const part = (section) => {
    const items = draft.nearest[section] ?? [];
    return [
      el("h4", {}, title(section)),
      items.length
        ? el("ol", { class: "nearest" }, items.map(nearestItem))
        : el("p", { class: "note" }, "There is none for this section."),
    ];
  };
  return el(
    "section",
    { class: "panel" },
    el("h3", {}, `${overview.cited}: ${draftLabel(draft.number).toLowerCase()}`),
    el("p", { class: "faint" }, "Real reports of the bank, before and after. Unchanged sentences are faint."),
    SECTIONS.map(part),
  );
}
