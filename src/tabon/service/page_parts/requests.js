// Asking the service, with a token that is kept in the tab.

const PATIENCE = 30; // times that a busy service is asked again

/** Read a storage that may be forbidden. */
function recall(storage, key) {
  try {
    return window[storage].getItem(key);
  } catch {
    return null;
  }
}

/** Write to a storage that may be forbidden. */
function remember(storage, key, value) {
  try {
    if (value === null) window[storage].removeItem(key);
    else window[storage].setItem(key, value);
  } catch {
    // not kept: asked again next time
  }
}

let token = recall("sessionStorage", "tabon-token");

class Refused extends Error {}

/** Wait some seconds. */
const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

/** Return the answer to a GET, or to a POST of a body; a refusal is an error of one sentence. A busy service is asked again. */
async function ask(path, { body, left = PATIENCE } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  if (sent.body) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { headers, ...sent, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch {
    throw new Error("The service did not answer; check that it still runs, then load the page again.");
  }
  const pause = answer.status === 503 ? Number(answer.headers.get("Retry-After")) : 0;
  if (pause > 0 && left > 0) {
    announce("The service is still working this out; it is asked again.");
    await wait(Math.min(pause, 10));
    return ask(path, { body, left: left - 1 });
  }
  if (answer.status === 401) throw new Refused(token ? "The token was refused; check it." : "");
  if (!answer.ok) throw new Error(`The service answered ${answer.status} instead of the data; its log says more.`);
  return answer;
}
