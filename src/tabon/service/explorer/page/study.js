// A study: images, head, tabs.

/** Return the X-rays, prior beside current, which arrive when they arrive; nothing where there are none. */
function filmPanel(study) {
  if (!study.has_image) return null;
  const wide = state.has("wide");
  const note = el("p", { class: "note" }, "The images are on their way.");
  const size = el(
    "button",
    { type: "button", id: "films-wide", "aria-pressed": wide, click: () => go({ wide: wide ? null : "1" }) },
    wide ? "Smaller" : "Larger",
    el("kbd", {}, "x"),
  );
  const panel = el(
    "section",
    { class: `panel image${wide ? " wide" : ""}`, "aria-label": "Images" },
    el("div", { class: "panelhead" }, el("h3", {}, "Images"), size),
    note,
  );
  viewerOf(study)
    .then((viewer) => note.replaceWith(viewer))
    .catch((error) => {
      note.textContent = "The images could not be read.";
      if (error instanceof Refused) fail(error);
    });
  return panel;
}

let viewed = { study: null, viewer: null }; // the viewer of the open study, with its zoom and window

/** Return the viewer of a study; the one that was made stays as it is looked at. */
function viewerOf(study) {
  if (viewed.study !== study) {
    const made = loadFilms(study).then((films) => {
      const named = [["Prior", films.prior], ["Current", films.current]].filter(([, film]) => film);
      if (!named.length) throw new Error("There is no image.");
      return filmViewer(named);
    });
    viewed = { study, viewer: made };
  }
  return viewed.viewer;
}

/** Return which draft was picked and what decided, or why none was. */
function verdict(study) {
  if (study.selected === null) {
    const why = study.abstained === null ? "no reason is given" : (ABSTENTIONS[study.abstained] ?? study.abstained);
    return `No draft is picked: ${why}.`;
  }
  return title(`${study.why}.`);
}

/** Return what the second selector chose, and whose pick is nearer to the reference. */
function besideWords(study) {
  const { beside } = study;
  if (!beside) return null;
  const chosen =
    beside.selected === null
      ? `picks none: ${ABSTENTIONS[beside.abstained] ?? beside.abstained}`
      : beside.selected === study.selected
        ? "picks the same draft"
        : `picks otherwise: ${study.beside_why}`;
  const apart = isNumber(study.score) && isNumber(beside.score) ? study.score - beside.score : 0;
  const better = apart > 0 ? overview.selector : overview.beside.selector;
  const lead = apart ? ` The pick of ${better} has ${number(Math.abs(apart))} more ${overview.score}.` : "";
  return el(
    "p",
    { class: "words beside" },
    el("span", { class: "star", "aria-hidden": "true" }, "☆ "),
    el("b", {}, overview.beside.selector),
    ` ${chosen}.${lead}`,
  );
}

/** Return the numbers of a study as a list of terms. */
function studyFacts(study) {
  const fact = (name, means, value, note) =>
    el(
      "div",
      {},
      el("dt", {}, means ? term(means, name) : name),
      el("dd", { class: value === "not measured" ? "faint" : null }, value),
      note ? el("dd", { class: "faint" }, note) : null,
    );
  return el(
    "dl",
    { class: "numbers" },
    fact("Margin", "margin", difference(study.margin), "to the second best"),
    fact("p", "p", number(study.p, "not measured", 2), "small is implausible"),
    fact("Score", "score", number(study.score), overview.score ?? "no reference"),
    fact("Gain", "gain", signed(study.gain), "over a random pick"),
    fact("Drafts", study.tied ? "tied" : null, String(study.drafts.length), study.tied ? "tied" : "not tied"),
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
  const second = state.has("with") && state.get("with") !== "reference"
    ? study.drafts.find((draft) => draft.number === Number(state.get("with")))
    : undefined;
  return [first, second].filter((draft, at, all) => draft && all.indexOf(draft) === at);
}

/** Show a draft of the open study. */
function chooseDraft(draft) {
  const other = state.get("with") === String(draft.number) ? null : state.get("with");
  go({ draft: draft.number === opened.selected ? null : draft.number, with: other });
  announce(`${draftLabel(draft.number)}${draft.number === opened.selected ? ", the pick" : ""}`);
}

/** Return one tab. */
function draftTab(study, draft, on, digits) {
  const picked = draft.number === study.selected;
  const second = study.beside?.selected === draft.number;
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
      draftLabel(draft.number),
      picked ? el("span", { class: "star" }, " ★ picked") : null,
      second ? el("span", { class: "star" }, ` ☆${picked ? "" : " second selector"}`) : null,
    ),
    el(
      "small",
      {},
      `${number(draft.total, "no distance", digits)}${draft.flags.length ? ` · ⚑ ${count(draft.flags.length, "flag")}` : ""}`,
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
  const digits = digitsFor(study.drafts.map((draft) => draft.total));
  const option = (draft) =>
    el("option", { value: draft.number, selected: draft === second }, draftName(study, draft));
  return el(
    "div",
    { class: "chooser" },
    el(
      "div",
      { role: "tablist", "aria-label": "Drafts", keydown: (event) => tabKeys(event, study) },
      study.drafts.map((draft) => draftTab(study, draft, draft === first, digits)),
    ),
    others.length || study.reference
      ? el(
          "label",
          {},
          "Compare with ",
          el(
            "select",
            { id: "with", change: (event) => go({ with: event.target.value }) },
            el("option", { value: "" }, "nothing"),
            study.reference
              ? el("option", { value: "reference", selected: state.get("with") === "reference" }, "Reference report")
              : null,
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
  const columns = drafts.map((draft) => draftColumn(study, draft));
  if (state.get("with") === "reference" && study.reference) columns.push(referenceColumn(study));
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
    besideWords(study),
    studyFacts(study),
  );
  const first = drafts.length
    ? [chooser(study), comparison(study, columns), referencePanel(study, drafts[0])]
    : [el("p", { class: "note" }, "There are no drafts."), priorOnly(study), referencePanel(study, null)];
  const second = drafts.length
    ? [flagPanel(study, drafts), drafts.map((draft) => decisionPanel(study, draft)), drafts.map(nearestPanel)]
    : null;
  const measured = drafts.length ? [barPanel(study), mapPanel(study)] : null;
  const films = filmPanel(study);
  const wide = films && state.has("wide");
  byId("list").hidden = true;
  byId("study").hidden = false;
  byId("study").replaceChildren(
    ...[
      head,
      wide ? films : null,
      el("div", { class: "main" }, first),
      el("aside", { class: "side-by", "aria-label": "Measures" }, wide ? null : films, measured),
      second ? el("div", { class: "main" }, second) : null,
    ].filter(Boolean),
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
