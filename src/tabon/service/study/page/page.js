/*
 * The page of a reader study: case after case, by keyboard alone.
 *
 * study ─▶ reading ─▶ form ─▶ answer ─▶ kept in the browser ─▶ on disk at the service
 *
 * Text of reports reaches the page as text nodes only. Nothing here knows which selector chose a draft.
 */

let at = 0; // the reading on the screen

/** Return the first reading without an answer; -1 if there is none. */
const firstOpen = () => study.readings.findIndex((one) => !answers.has(one.id));

/** Show how far the reader is. */
function showProgress() {
  const all = study.readings.length;
  const done = study.readings.filter((one) => answers.has(one.id)).length;
  byId("facts").textContent = `Reader ${study.reader} · ${done} of ${all} answered`;
  byId("progress").max = all;
  byId("progress").value = done;
  byId("way").hidden = false;
  showSaved();
}

/** Show one reading. */
function showReading(number) {
  keepForm();
  at = number;
  form = formFor(reading());
  since = null;
  byId("rest").hidden = true;
  byId("case").hidden = byId("pause").hidden = false;
  drawCase();
  showError("");
  showProgress();
  window.scrollTo(0, 0);
  byId("case-title").focus({ preventScroll: true });
  watchClock();
}

/** Show a panel instead of a case: the beginning, a break, the end. */
function showRest(title, text, go, { mayGoBack = false } = {}) {
  keepForm();
  since = null;
  byId("case").hidden = byId("pause").hidden = true;
  byId("rest").hidden = false;
  byId("rest-title").textContent = title;
  byId("rest-text").textContent = text;
  byId("rest-go").textContent = go ?? "";
  byId("rest-go").hidden = !go;
  byId("rest-back").hidden = !mayGoBack;
  showProgress();
  byId("rest-title").focus({ preventScroll: true });
}

/** Go to the first case that is open, or say that all are answered. */
function showNext() {
  const next = firstOpen();
  if (next >= 0) {
    showReading(next);
    return;
  }
  at = study.readings.length;
  form = null;
  const end = study.offline ? "Save the answers as a file now, and hand it back." : "You may close this window when all answers are saved.";
  showRest("All cases are answered. Thank you.", end, study.offline ? "Save answers as a file" : null, { mayGoBack: true });
}

/** Keep the answer, and go on. */
function save() {
  keepForm();
  const open = form.values.indexOf(null);
  if (open >= 0) {
    showError(study.design === "ranking" ? `Give draft ${letter(open)} a rank first.` : "Choose an answer first.");
    (document.querySelector(`input[name="rank-${open}"]`) ?? document.querySelector("#question input")).focus();
    return;
  }
  const { id } = reading();
  if (isChanged() || !answers.has(id) || form.conflict) submit(answerOf());
  put(`form:${id}`, null);
  form = null;
  showNext();
}

/** Go back to the case before. */
function back() {
  if (at > 0) showReading(at - 1);
}

/** Take a break. */
function pause() {
  showRest("A break", "The clock stands still and nothing is lost; you may close this window.", "Go on");
}

/** Leave a panel. */
function goOn() {
  if (study.offline && firstOpen() < 0) download();
  else if (form && !answers.has(reading().id)) showReading(at);
  else showNext();
}

/** Read again what counts, as another window may have answered the case on the screen. */
async function refresh() {
  if (!study) return;
  try {
    await loadAnswers();
  } catch {
    return; // what is here still holds; sending says what is wrong
  }
  showProgress();
  const key = form && !byId("case").hidden ? (answers.get(reading().id)?.key ?? null) : null;
  if (key === null || key === form.base) return;
  if (form.touched) {
    Object.assign(form, { base: key, conflict: true });
    drawCase();
    keepForm();
  } else {
    put(`form:${reading().id}`, null);
    form = null;
    showNext();
    announce("The case was answered in another window.");
  }
}

/** Load the study and offer to begin, or to go on. */
async function start() {
  form = null;
  if (!token && !byId("study-data")) {
    askForToken("");
    return;
  }
  byId("token").hidden = true;
  byId("facts").textContent = "The cases are on their way.";
  try {
    study = await loadStudy();
    await loadAnswers();
  } catch (error) {
    fail(error);
    return;
  }
  showError("");
  byId("notice").textContent = study.notice;
  byId("title").textContent = document.title = study.title;
  byId("download").hidden = !study.offline;
  send();
  if (firstOpen() < 0) {
    showNext();
    return;
  }
  const open = study.readings.filter((one) => !answers.has(one.id)).length;
  const begun = open < study.readings.length;
  const left = `${count(open, "case")} to go. You may stop after any of them.`;
  showRest(begun ? "Welcome back" : "Welcome", `${study.question} ${left}`, begun ? "Go on" : "Begin");
}

/** Show what went wrong: the form for the token, or a sentence. */
function fail(error) {
  study = null;
  byId("facts").textContent = "";
  if (error instanceof Refused) askForToken(error.message);
  else showError(error instanceof Away ? `${error.message} Check the connection, then load the page again.` : `${error.message}`);
}

/** Ask for the token in place of everything else; what was entered is kept. */
function askForToken(why) {
  keepForm();
  showError(why);
  remember("sessionStorage", "tabon-study-token", null);
  token = null;
  byId("case").hidden = byId("rest").hidden = byId("pause").hidden = true;
  byId("token").hidden = false;
  byId("token-value").focus();
}

// ── Start ────────────────────────────────────────────────────────────────

/** Connect what stands in the page from the beginning. */
function connect() {
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => {
    watchClock();
    if (document.visibilityState === "visible") refresh();
  });
  window.addEventListener("pagehide", keepForm);
  window.addEventListener("online", () => study && send());
  window.addEventListener("storage", (event) => {
    if (study && event.key?.startsWith(place("answer:"))) refresh();
  });
  window.addEventListener("beforeunload", (event) => {
    if (study && !keeps && keptAnswers().length) event.preventDefault();
  });
  byId("case").addEventListener("submit", (event) => {
    event.preventDefault();
    save();
  });
  byId("comment").addEventListener("input", (event) => {
    form.comment = event.target.value;
    form.touched = true;
    keepForm();
  });
  byId("back").addEventListener("click", back);
  byId("pause").addEventListener("click", pause);
  byId("rest-go").addEventListener("click", goOn);
  byId("rest-back").addEventListener("click", back);
  byId("download").addEventListener("click", download);
  byId("theme").addEventListener("click", nextTheme);
  byId("keys").addEventListener("click", showKeys);
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("content").focus();
  });
  byId("token").addEventListener("submit", (event) => {
    event.preventDefault();
    token = byId("token-value").value.trim();
    byId("token-value").value = "";
    remember("sessionStorage", "tabon-study-token", token);
    start();
  });
}

useKeptTheme();
connect();
start();
