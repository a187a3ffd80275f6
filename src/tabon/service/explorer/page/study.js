// A study: image, head, tabs.

/** Return the X-ray image, which arrives when it arrives; nothing where there is none. */
function imagePanel(study) {
  if (!study.image) return null;
  const picture = el("img", { alt: `Chest X-ray of study ${study.id}` });
  const note = el("p", { class: "note" }, "The image is on its way.");
  loadImage(study)
    .then((address) => {
      picture.src = address;
      note.remove();
    })
    .catch((error) => {
      note.textContent = "The image could not be read.";
      if (error instanceof Refused) fail(error);
    });
  return el("section", { class: "panel image" }, el("h3", {}, "Image"), picture, note);
}

/** Return which draft was picked and what decided, or why none was. */
function verdict(study) {
  if (study.selected === null) {
    const why = study.abstained === null ? "no reason is given" : (ABSTENTIONS[study.abstained] ?? study.abstained);
    return `No draft is picked: ${why}.`;
  }
  return title(`${study.drafts.find((draft) => draft.number === study.selected).verdict}.`);
}

/** Return the numbers of a study as a list of terms. */
function studyFacts(study) {
  const fact = (name, value, note) =>
    el(
      "div",
      {},
      el("dt", {}, name),
      el("dd", { class: value === "not measured" ? "faint" : null }, value),
      note ? el("dd", { class: "faint" }, note) : null,
    );
  return el(
    "dl",
    { class: "numbers" },
    fact("Margin", number(study.margin), "to the second best"),
    fact("p", number(study.p), "of the best draft; small is implausible"),
    fact("Gain", signed(study.gain), overview.score ?? "no score"),
    fact("Drafts", String(study.drafts.length), study.tied ? "tied" : "not tied"),
  );
}

/** Return the links to the list and to the studies before and after. */
function studyNav(study) {
  const at = shown.findIndex((row) => row.number === study.number);
  const link = (row, text, key) =>
    row
      ? el(
          "a",
          { class: "button", id: `go-${text}`, href: hashWith({ ...toStudy, study: row.number }) },
          text,
          el("kbd", {}, key),
        )
      : el("span", { class: "button off" }, text);
  const words = at < 0 ? "outside the filters" : `${at + 1} of ${shown.length}`;
  return el(
    "nav",
    { class: "studynav", "aria-label": "Studies" },
    el(
      "a",
      { class: "button", id: "go-list", href: hashWith({ ...toStudy, study: null }) },
      "← All studies",
      el("kbd", {}, "Esc"),
    ),
    el("span", { class: "faint" }, words),
    link(at < 0 ? null : shown[at - 1], "Previous", "k"),
    link(at < 0 ? null : shown[at + 1], "Next", "j"),
  );
}

/** Return the draft that the state asks for: else the pick, else the nearest. */
function shownDraft(study) {
  const find = (test) => study.drafts.find(test);
  const asked = state.has("draft") ? Number(state.get("draft")) : study.selected;
  return (
    find((draft) => draft.number === asked) ??
    find((draft) => draft.number === study.selected) ??
    find((draft) => draft.rank === 0) ??
    study.drafts[0]
  );
}

/** Return the one or two drafts that are shown. */
function shownDrafts(study) {
  const first = shownDraft(study);
  const second = state.has("with")
    ? study.drafts.find((draft) => draft.number === Number(state.get("with")))
    : undefined;
  return [first, second].filter((draft, at, all) => draft && all.indexOf(draft) === at);
}

/** Show a draft of the open study. */
function chooseDraft(draft) {
  const other = state.get("with") === String(draft.number) ? null : state.get("with");
  go({ draft: draft.number === opened.selected ? null : draft.number, with: other });
  announce(`Draft ${draft.number}${draft.number === opened.selected ? ", the pick" : ""}`);
}

/** Return one tab. */
function draftTab(study, draft, on) {
  const picked = draft.number === study.selected;
  return el(
    "button",
    {
      type: "button",
      role: "tab",
      id: `tab-${draft.number}`,
      "aria-selected": on,
      "aria-controls": "compare",
      tabindex: on ? 0 : -1,
      class: picked ? "picked" : "",
      click: () => chooseDraft(draft),
    },
    el(
      "span",
      { class: "tabname" },
      `Draft ${draft.number}`,
      picked ? el("span", { class: "star" }, " ★ picked") : null,
    ),
    el(
      "small",
      {},
      `${number(draft.total, "no distance")}${draft.flags.length ? ` · ⚑ ${count(draft.flags.length, "flag")}` : ""}`,
    ),
  );
}

/** Move between tabs with the arrow keys. */
function tabKeys(event, study) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopPropagation();
  const at = study.drafts.indexOf(shownDraft(study));
  const next = study.drafts[(at + by + study.drafts.length) % study.drafts.length];
  chooseDraft(next);
  byId(`tab-${next.number}`)?.focus();
}

/** Return the choice of drafts: tabs, and what to compare with. */
function chooser(study) {
  const [first, second] = shownDrafts(study);
  const others = study.drafts.filter((draft) => draft !== first);
  const option = (draft) =>
    el("option", { value: draft.number, selected: draft === second }, draftName(study, draft));
  return el(
    "div",
    { class: "chooser" },
    el(
      "div",
      { role: "tablist", "aria-label": "Drafts", keydown: (event) => tabKeys(event, study) },
      study.drafts.map((draft) => draftTab(study, draft, draft === first)),
    ),
    others.length
      ? el(
          "label",
          {},
          "Compare with ",
          el(
            "select",
            { id: "with", change: (event) => go({ with: event.target.value }) },
            el("option", { value: "" }, "nothing"),
            others.map(option),
          ),
        )
      : null,
  );
}

/** Draw the open study; the focus stays where it was. */
function drawStudy(study) {
  const focus = document.activeElement?.id;
  const drafts = shownDrafts(study);
  const head = el(
    "header",
    { class: "studyhead" },
    studyNav(study),
    el("h2", { id: "study-title", tabindex: -1 }, `Study ${study.id}`),
    el("p", { class: "faint" }, study.patient === null ? "The patient is not named." : `Patient ${study.patient}`),
    el("p", { class: study.selected === null ? "verdict none" : "verdict" }, verdict(study)),
    study.notes.length
      ? el(
          "ul",
          { class: "note" },
          study.notes.map((note) => el("li", {}, title(`${note}.`))),
        )
      : null,
    studyFacts(study),
  );
  const first = drafts.length
    ? [
        chooser(study),
        drafts.map((draft) => decisionPanel(study, draft)),
        comparison(study, drafts),
        flagPanel(study, drafts),
      ]
    : [el("p", { class: "note" }, "There are no drafts."), priorOnly(study)];
  const measured = drafts.length ? [barPanel(study), mapPanel(study)] : null;
  byId("list").hidden = true;
  byId("study").hidden = false;
  byId("study").replaceChildren(
    head,
    el("div", { class: "main" }, first),
    el("aside", { class: "side-by", "aria-label": "Measures" }, imagePanel(study), measured),
    el("div", { class: "main" }, drafts.map(nearestPanel), referencePanel(study)),
  );
  if (focus) byId(focus)?.focus({ preventScroll: true });
}

/** Return the prior by itself. */
function priorOnly(study) {
  const part = (section) => [
    el("h4", {}, title(section)),
    study.prior[section].length
      ? el("p", { class: "words" }, study.prior[section].join(" "))
      : el("p", { class: "note" }, `The prior has no ${section}.`),
  ];
  return el("section", { class: "panel" }, el("h3", {}, "Prior"), SECTIONS.map(part));
}
