// Keys.

/** Go to the study before or after: in a study open it, in the list stand at it. */
function step(by) {
  if (!inStudy()) {
    focusRow(place() < 0 ? 0 : place() + by);
    return;
  }
  const at = shown.findIndex((row) => row.number === Number(state.get("study")));
  const next = at < 0 ? undefined : shown[at + by];
  if (next) go({ ...toStudy, study: next.number }, { push: true });
  else announce(by > 0 ? "This is the last study." : "This is the first study.");
}

/** Compare the shown draft with the pick (or the pick with the second selector's, else the second best), or stop. */
function toggleCompare() {
  if (!opened || opened.drafts.length < 2) return;
  const [first, second] = shownDrafts(opened);
  const other = opened.drafts.find((draft) => draft.number === opened.beside?.selected && draft !== first);
  const best = [...opened.drafts].sort((a, b) => a.rank - b.rank).find((draft) => draft !== first);
  const partner = opened.drafts.find((draft) => draft.number === opened.selected && draft !== first) ?? other ?? best;
  const stop = second || state.has("with");
  go({ with: stop ? null : partner.number });
  announce(stop ? "One draft" : `Compared with ${draftLabel(partner.number).toLowerCase()}`);
}

/** Go to the search field, which stands in the list. */
function search() {
  if (inStudy()) go({ ...toStudy, study: null });
  byId("filters").open = true;
  byId("q").focus();
  byId("q").select();
}

/** Return to the list. */
function leave() {
  if (inStudy()) go({ ...toStudy, study: null }, { push: true });
}

const ACTIONS = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: () => !inStudy() && step(1),
  ArrowUp: () => !inStudy() && step(-1),
  ArrowRight: () => inStudy() && step(1),
  ArrowLeft: () => inStudy() && step(-1),
  Escape: leave,
  c: toggleCompare,
  r: () => inStudy() && opened?.reference && go({ with: state.get("with") === "reference" ? null : "reference" }),
  x: () => inStudy() && opened?.has_image && go({ wide: state.has("wide") ? null : "1" }),
  w: () => inStudy() && go({ view: state.get("view") === "written" ? null : "written" }),
  t: nextTheme,
  "/": search,
  "?": () => byId("help").showModal(),
};

/** Return whether a key belongs to what has the focus. */
const isTyping = (node) => Boolean(node?.closest?.("input, select, textarea, [contenteditable], dialog"));

/** Do what a key asks for; keys of fields, dialogs and the browser are left alone. */
function onKey(event) {
  if (
    event.defaultPrevented ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    !overview ||
    isTyping(event.target) ||
    byId("help").open
  )
    return;
  if (!byId("token").hidden) return;
  readHash();
  const counted = event.key === "0" ? 10 : Number(event.key); // people count from 1
  const draft =
    /^[0-9]$/.test(event.key) && opened ? opened.drafts.find((one) => one.number === counted - 1) : undefined;
  if (!draft && !Object.hasOwn(ACTIONS, event.key)) return;
  if (event.key.startsWith("Arrow") && /Down|Up/.test(event.key) === inStudy()) return;
  event.preventDefault();
  if (draft) chooseDraft(draft);
  else ACTIONS[event.key]();
}
