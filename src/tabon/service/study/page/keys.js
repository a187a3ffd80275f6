// Keys.

/** Return whether a key belongs to what has the focus. */
const isTyping = (node) => Boolean(node?.closest?.("textarea, dialog, #token"));

/** Tick the next state of an error: none, an error, a significant one. */
function nextError(kind) {
  const id = `${current}:${kind}`;
  const next = id in form.errors ? (form.errors[id] ? null : true) : false;
  setError(id, next);
  const state = next === null ? "not ticked" : next ? "significant" : "ticked";
  announce(`${capital(draftName(current))}: ${study.kinds[kind]}, ${state}`);
}

/** Give the chosen draft a rank and choose the next one without. */
function giveRank(rank) {
  setValue(current, rank);
  announce(`${capital(draftName(current))}: rank ${rank}`);
  const open = form.values.findIndex((value, draft) => value === null && draft !== current);
  if (open >= 0) choose(open);
}

/** Choose a draft by its letter. */
function chooseByKey(draft) {
  choose(draft);
  byId(`draft-${draft}`).scrollIntoView({ block: "nearest" });
  announce(`Keys are about ${draftName(draft)} now.`);
}

/** Return what a key does in the case on the screen; undefined if nothing. */
function actionOf(key) {
  const drafts = reading().drafts.length;
  const number = /^[1-9]$/.test(key) ? Number(key) : 0;
  const side = { ArrowLeft: 0, "=": 1, ArrowRight: 2 }[key];
  if (study.design === "pairwise" && side !== undefined) return () => prefer(SIDES[side]);
  if (study.design === "rating" && number >= 1 && number <= RATINGS.length) return () => rate(number);
  if (study.design === "ranking" && number >= 1 && number <= drafts) return () => giveRank(number);
  const draft = study.design === "rating" ? -1 : LETTERS.indexOf(key);
  if (draft >= 0 && draft < drafts) return () => chooseByKey(draft);
  if (key in ERROR_KEYS) return () => nextError(ERROR_KEYS[key]);
  return { n: () => byId("comment").focus(), u: back, p: pause, Enter: save }[key];
}

/** Take a preference, and say it. */
function prefer([, text, values]) {
  setValues(values);
  announce(values[0] === values[1] ? text : `${text} is preferred`);
}

/** Take a rating, and say it. */
function rate(value) {
  setValues([value]);
  announce(`Rated ${value}: ${RATINGS[value - 1][1]}`);
}

/** Do what a key asks for; keys of fields, dialogs and the browser are left alone. */
function onKey(event) {
  const { key, target } = event;
  if (event.defaultPrevented || event.metaKey || event.altKey || !study || byId("help").open) return;
  if (target === byId("comment") && key === "Escape") byId("save").focus();
  if (target === byId("comment") && key === "Enter" && event.ctrlKey) save();
  if (event.ctrlKey || isTyping(target)) return;
  if (key === "Enter" && (event.repeat || target.closest("button, a, summary"))) return;
  let action = key === "?" ? showKeys : undefined;
  if (!byId("case").hidden) action ??= actionOf(key);
  else if (!byId("rest").hidden) action ??= { Enter: goOn, p: goOn, u: byId("rest-back").hidden ? undefined : back }[key];
  if (!action) return;
  event.preventDefault();
  action();
}

/** Show the keys of this design. */
function showKeys() {
  const rows = [...(KEYS[study?.design] ?? []), ...EVERYWHERE];
  byId("help-keys").replaceChildren(
    ...rows.map(([keys, text]) =>
      el("div", {}, el("dt", {}, keys.split(" ").map((key) => [el("kbd", {}, key), " "])), el("dd", {}, text)),
    ),
  );
  byId("help").showModal();
}
