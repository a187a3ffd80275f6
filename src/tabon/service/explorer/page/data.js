// The data: inside the page, or from the service.

const fetched = new Map();
let texts = null; // the reports of all studies inside the page, once words were searched

/** Return what one element of the page holds. */
const held = (element) => JSON.parse(element.textContent);

/** Return the overview. */
async function loadOverview() {
  const element = byId("overview-data");
  embedded = Boolean(element);
  return element ? held(element) : (await ask("/v1/explorer")).json();
}

/** Wait until the whole page was read; studies stand behind the script. */
const wholePage = () =>
  document.readyState === "loading"
    ? new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }))
    : null;

/** Return one study, from the page, from memory or from the service. */
async function loadStudy(wanted) {
  if (!overview.studies.some((row) => row.number === wanted)) throw new Error("There is no such study here.");
  if (embedded) {
    if (!byId(`study-data-${wanted}`)) await wholePage();
    return held(byId(`study-data-${wanted}`));
  }
  if (!fetched.has(wanted)) {
    fetched.set(wanted, await (await ask(`/v1/explorer/studies/${wanted}`)).json());
    if (fetched.size > KEPT) fetched.delete(fetched.keys().next().value);
  }
  return fetched.get(wanted);
}

/** Return the images of a study: {prior, current}, those that are there. */
async function loadFilms(study) {
  if (embedded) return study.films ?? {};
  study.films ??= await (await ask(`/v1/explorer/studies/${study.number}/images`)).json();
  return study.films;
}

/** Return the reports of a study in the order in which they are searched. */
function reportsOf(study) {
  const drafts = study.drafts.map((draft) => [draft.number, draft.report]);
  const picked = drafts.filter(([at]) => at === study.selected);
  const reports = [...picked, ...drafts.filter(([at]) => at !== study.selected), ["prior", study.prior]];
  if (study.reference) reports.push(["reference", study.reference]);
  return reports.map(([where, report]) => {
    const sentences = SECTIONS.flatMap((section) => report[section]);
    return { where, sentences, kind: where === study.selected ? "pick" : typeof where === "number" ? "drafts" : where };
  });
}

/** Read the reports of all studies inside the page, a few at a time so that the page stays quick. */
async function readTexts() {
  await wholePage();
  const found = [];
  let rest = performance.now() + 12;
  for (const row of overview.studies) {
    found.push([row.number, reportsOf(held(byId(`study-data-${row.number}`)))]);
    if (performance.now() > rest) {
      await new Promise((done) => setTimeout(done)); // oxlint-disable-line no-await-in-loop
      rest = performance.now() + 12;
    }
  }
  return found;
}

/** Return the first sentence of a study that holds all words, as the service finds it. */
function hitIn(reports, words, where_) {
  const asked = (kind) => where_ === "any" || kind === where_ || (where_ === "drafts" && kind === "pick");
  for (const { where, sentences, kind } of reports) {
    const has = (sentence) => words.every((word) => sentence.toLowerCase().includes(word));
    const found = asked(kind) ? sentences.find(has) : undefined;
    if (found !== undefined) return { where, sentence: found };
  }
  return null;
}

/** Return the studies with a sentence that holds the words: number → {where, sentence}. */
async function searchTexts(words, where_) {
  if (!embedded) {
    const answer = await ask("/v1/explorer/search", { body: { words, within: where_ } });
    return new Map((await answer.json()).found.map((hit) => [hit.number, hit]));
  }
  texts ??= await readTexts();
  const each = words.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = texts.map(([at, reports]) => [at, hitIn(reports, each, where_)]);
  return new Map(hits.filter(([, hit]) => hit));
}

/** Show what went wrong: the form for the token, or a sentence. */
function fail(error) {
  if (error instanceof Refused) askForToken(error.message);
  else if (error instanceof SyntaxError)
    showError("The data could not be read: it is not whole; make the page again.");
  else showError(error.message);
  if (!overview) byId("facts").textContent = "";
}

/** Show the form for the token in place of everything else. */
function askForToken(why) {
  byId("facts").textContent = "";
  showError(why);
  remember("sessionStorage", "tabon-token", null);
  token = null;
  byId("list").hidden = byId("study").hidden = true;
  byId("token").hidden = false;
  byId("token-value").focus();
}
