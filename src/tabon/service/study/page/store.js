// What is kept in the browser: answers that are not sent yet, and what was begun of a case.

const memory = new Map(); // where the browser keeps nothing
let keeps = true; // whether the browser does

/** Read a storage that may be forbidden. */
function recall(storage, key) {
  try {
    return window[storage].getItem(key) ?? memory.get(key) ?? null;
  } catch {
    return memory.get(key) ?? null;
  }
}

/** Write to a storage that may be forbidden or full; the page remembers what it does not take. */
function remember(storage, key, value) {
  try {
    if (value === null) window[storage].removeItem(key);
    else window[storage].setItem(key, value);
    memory.delete(key);
  } catch {
    keeps = false;
    if (value === null) memory.delete(key);
    else memory.set(key, value);
  }
}

/** Return where something of this study and reader is kept. */
const place = (what) => `tabon-study:${study.study}:${study.reader}:${what}`;

/** Keep a record, or forget it if it is null. */
const put = (what, record) => remember("localStorage", place(what), record && JSON.stringify(record));

/** Return a record that was kept; one that cannot be read is as if it were not there. */
function get(what) {
  try {
    return JSON.parse(recall("localStorage", place(what)));
  } catch {
    return null;
  }
}

/** Return the answers that are kept here, in the order in which they were given. */
function keptAnswers() {
  const prefix = place("answer:");
  const names = new Set(memory.keys());
  try {
    for (let row = 0; row < window.localStorage.length; row++) names.add(window.localStorage.key(row));
  } catch {
    // none are kept
  }
  return [...names]
    .filter((name) => name.startsWith(prefix))
    .map((name) => get(`answer:${name.slice(prefix.length)}`))
    .filter((kept) => kept?.answer)
    .sort((one, other) => one.at - other.at);
}

/** Return 32 hexadecimal digits drawn at random. */
function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
