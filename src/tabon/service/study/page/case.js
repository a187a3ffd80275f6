// A case on the screen: reports, errors to tick, and the question.

let current = 0; // the draft that keys for errors and ranks are about

const letter = (draft) => LETTERS[draft].toUpperCase();
const draftName = (draft) => (study.design === "rating" ? "the draft" : `draft ${letter(draft)}`);
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Return one report. */
function reportBody(report) {
  const parts = SECTIONS.filter(([name]) => report[name]).map(([name, title]) => [
    el("h4", {}, title),
    el("p", {}, report[name]),
  ]);
  if (report.other) parts.push([el("h4", {}, "Other text"), el("p", { class: "other" }, report.other)]);
  return parts.length ? parts : [el("p", { class: "none" }, "This report is empty.")];
}

/** Return what stands beside the drafts: the prior, older ones, the reference, the image. */
function drawContext({ priors, reference, image }) {
  const newest = priors.at(-1);
  const older = priors.slice(0, -1).toReversed();
  const card = (title, ...parts) => el("section", { class: "report", "aria-label": title }, el("h3", {}, title), ...parts);
  return el(
    "div",
    { class: "context" },
    image ? drawImage() : null,
    newest ? card("Prior report", reportBody(newest)) : card("Prior report", el("p", { class: "none" }, "There is none.")),
    older.map((report, number) =>
      el("details", { class: "report" }, el("summary", {}, `Older report ${number + 1} of ${older.length}`), reportBody(report)),
    ),
    reference ? card("What the radiologist wrote", reportBody(reference)) : null,
  );
}

/** Return the X-ray, which comes when it is there. */
function drawImage() {
  const picture = el("img", { alt: "The current chest X-ray" });
  const box = el("section", { class: "report", "aria-label": "X-ray" }, el("h3", {}, "X-ray"), picture);
  loadImage(reading())
    .then((address) => (picture.src = address))
    .catch((error) => box.append(el("p", { class: "none" }, `The X-ray did not come. ${error.message}`)));
  return box;
}

/** Return one draft with its errors to tick. */
function drawDraft(report, draft) {
  const name = capital(draftName(draft));
  return el(
    "section",
    { class: "report", id: `draft-${draft}`, "aria-label": name, focusin: () => choose(draft), click: () => choose(draft) },
    el("h3", {}, name, study.design === "rating" ? null : [" ", el("kbd", {}, LETTERS[draft])]),
    reportBody(report),
    study.design === "ranking" ? drawRanks(draft) : null,
    drawErrors(draft),
  );
}

/** Return the boxes for the errors of a draft; a significant one has a second tick. */
function drawErrors(draft) {
  const rows = Object.entries(ERROR_KEYS).map(([key, kind]) => {
    const id = `${draft}:${kind}`;
    const tick = el("input", { type: "checkbox", id: `error-${id}`, change: (event) => setError(id, event.target.checked ? false : null) });
    const much = el("input", { type: "checkbox", id: `much-${id}`, change: (event) => setError(id, event.target.checked) });
    return el(
      "li",
      {},
      el("label", {}, tick, el("span", {}, study.kinds[kind], " ", el("kbd", {}, key))),
      el("label", { class: "much" }, much, el("span", {}, "significant"), el("span", { class: "hidden" }, `: ${study.kinds[kind]}`)),
    );
  });
  return el("fieldset", { class: "errors" }, el("legend", {}, `Errors in ${draftName(draft)}`), el("ul", {}, rows));
}

/** Return the ranks to choose from for one draft. */
function drawRanks(draft) {
  const ranks = form.values.map((_, number) => number + 1);
  const choice = (rank) =>
    el("label", {}, el("input", { type: "radio", name: `rank-${draft}`, value: rank, change: () => setValue(draft, rank) }), String(rank));
  return el("fieldset", { class: "ranks" }, el("legend", {}, `Rank of draft ${letter(draft)}, 1 is the best`), el("div", {}, ranks.map(choice)));
}

/** Draw the question of the case. */
function drawQuestion() {
  const legend = el("legend", {}, study.question);
  const choice = (name, key, text, set) =>
    el("label", {}, el("input", { type: "radio", name: "choice", value: name, change: set }), el("span", {}, text), key && el("kbd", {}, key));
  const choices = {
    pairwise: () => SIDES.map(([key, text, values]) => choice(values.join(), key, text, () => setValues(values))),
    rating: () => RATINGS.map(([value, text]) => choice(value, null, [String(value), el("small", {}, text)], () => setValues([value]))),
    ranking: () => [],
  }[study.design]();
  byId("question").replaceChildren(legend, el("div", { class: "choices" }, choices));
}

/** Show what the form says in the boxes. */
function showForm() {
  const { values, errors } = form;
  for (const box of document.querySelectorAll("#question input")) box.checked = values.every((value) => value !== null) && box.value === values.join();
  values.forEach((value, draft) => {
    for (const box of document.querySelectorAll(`input[name="rank-${draft}"]`)) box.checked = Number(box.value) === value;
    const best = study.design !== "rating" && value === 1 && (study.design === "ranking" || !values.every((one) => one === 1));
    byId(`draft-${draft}`).classList.toggle("best", best);
    for (const kind of Object.values(ERROR_KEYS)) {
      const id = `${draft}:${kind}`;
      byId(`error-${id}`).checked = id in errors;
      byId(`much-${id}`).checked = errors[id] === true;
      byId(`much-${id}`).disabled = !(id in errors);
    }
  });
  byId("comment").value = form.comment;
}

/** Draw the case on the screen anew. */
function drawCase() {
  const shown = reading();
  const done = answers.has(shown.id);
  byId("case-title").textContent = `Case ${at + 1} of ${study.readings.length}${done ? ", answered" : ""}`;
  byId("reports").replaceChildren(drawContext(shown), el("div", { class: "drafts" }, shown.drafts.map(drawDraft)));
  drawQuestion();
  const note = form.conflict
    ? form.problem
      ? `This answer was refused: ${form.problem} It is shown as you entered it; change it and save it again.`
      : "This case was answered in another window meanwhile, and that answer counts. What you entered here is shown; save it to let it count, or go on without."
    : "";
  byId("note").textContent = note;
  byId("note").hidden = !note;
  byId("back").disabled = at === 0;
  choose(0);
  showForm();
}

// ── Entering ─────────────────────────────────────────────────────────────

/** Take the values of all drafts. */
function setValues(values) {
  form.values = [...values];
  entered();
}

/** Take the rank of one draft. */
function setValue(draft, value) {
  form.values = form.values.map((known, other) => (other === draft ? value : known));
  entered();
}

/** Take an error: null is none, true a significant one. */
function setError(id, significant) {
  if (significant === null) delete form.errors[id];
  else form.errors[id] = significant;
  entered();
}

/** Show and keep what was entered. */
function entered() {
  form.touched = true;
  showError("");
  showForm();
  keepForm();
}

/** Let keys be about a draft. */
function choose(draft) {
  current = draft;
  for (const card of document.querySelectorAll(".drafts .report")) {
    const chosen = card.id === `draft-${draft}` && study.design !== "rating";
    card.classList.toggle("current", chosen);
    if (chosen) card.setAttribute("aria-current", "true");
    else card.removeAttribute("aria-current");
  }
}
