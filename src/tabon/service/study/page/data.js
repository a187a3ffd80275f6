// The study: inside the page, or from the service.

let study = null; // what this reader is shown
let answers = new Map(); // by reading: the answer that counts, sent or not
let token = recall("sessionStorage", "tabon-study-token");

class Refused extends Error {}

class Away extends Error {}

/** Return the answer to a request; a refusal is an error of one sentence, with its status. */
async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const how = { headers, cache: "no-store", credentials: "omit", redirect: "error" };
  if (body !== undefined) {
    Object.assign(how, { method: "POST", body: JSON.stringify(body) });
    headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, how);
  } catch {
    throw new Away("The service does not answer.");
  }
  if (answer.ok) return answer;
  if (answer.status === 401) throw new Refused(token ? "The token was refused; check it." : "");
  if (answer.status === 429 || answer.status >= 500) throw new Away("The service cannot take answers now.");
  const said = await answer.json().catch(() => null);
  throw Object.assign(new Error(said?.error?.message ?? `The service answered ${answer.status}.`), {
    status: answer.status,
  });
}

/** Return what this reader is shown, and note whether it is inside the page. */
async function loadStudy() {
  const inside = byId("study-data");
  return inside ? JSON.parse(inside.textContent) : (await ask("/v1/study")).json();
}

/** Read again which answers count: what the service has, then what waits here. */
async function loadAnswers() {
  const there = study.offline ? {} : (await (await ask("/v1/study/answers")).json()).answers;
  answers = new Map(Object.entries(there));
  for (const { answer } of keptAnswers()) answers.set(answer.reading, answer);
}

/** Return an address that an <img> may show: the data itself, or a blob fetched with the token. */
async function loadImage(reading) {
  if (typeof reading.image === "string") return reading.image;
  return URL.createObjectURL(await (await ask(`/v1/study/images/${reading.id}`)).blob());
}
