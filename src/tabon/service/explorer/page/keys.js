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

/** Compare the shown draft with the pick (or the pick with the second best), or stop. */
function toggleCompare() {
  if (!opened || opened.drafts.length < 2) return;
  const [first, second] = shownDrafts(opened);
  const best = [...opened.drafts].sort((a, b) => a.rank - b.rank).find((draft) => draft !== first);
  const partner = opened.drafts.find((draft) => draft.number === opened.selected && draft !== first) ?? best;
  go({ with: second ? null : partner.number });
  announce(second ? "One draft" : `Compared with draft ${partner.number}`);
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
  const draft =
    /^[0-9]$/.test(event.key) && opened ? opened.drafts.find((one) => one.number === Number(event.key)) : undefined;
  if (!draft && !Object.hasOwn(ACTIONS, event.key)) return;
  if (event.key.startsWith("Arrow") && /Down|Up/.test(event.key) === inStudy()) return;
  event.preventDefault();
  if (draft) chooseDraft(draft);
  else ACTIONS[event.key]();
}
