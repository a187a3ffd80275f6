// The state of the page: what its hash says.

let overview = null;
let embedded = false; // whether the studies are inside the page; else they are fetched
let state = new URLSearchParams();
let lastHash = ""; // the hash that the state was last in step with
let shown = []; // the studies that pass the filters, in order
let opened = null; // the study on the screen
let cursor = null; // the number of the study that the list stands at

/** Take the state from the address where it moved: keys may come before its event does. */
function readHash() {
  if (location.hash === lastHash) return;
  lastHash = location.hash;
  state = new URLSearchParams(lastHash.slice(1));
}

/** Return the hash of the present state with some keys changed; null removes one. */
function hashWith(changes) {
  const next = new URLSearchParams(state);
  for (const [key, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(key);
    else next.set(key, String(value));
  }
  return `#${next}`;
}

/** Go to another state; `push` makes a step that the Back button undoes. */
function go(changes, { push = false } = {}) {
  if (push) {
    location.hash = hashWith(changes); // `hashchange` shows it
    return;
  }
  keep(changes);
  show();
}

/** Change the state without drawing anything. */
function keep(changes) {
  const hash = hashWith(changes);
  try {
    history.replaceState(null, "", hash);
  } catch {
    // an odd frame: the page still works, only the link is not kept
  }
  lastHash = location.hash;
  state = new URLSearchParams(hash.slice(1));
}

const inStudy = () => state.has("study");
const toStudy = { draft: null, with: null };
