// Sending answers: each stays in the browser until the service has it on disk.

let sending = false;
let failures = 0; // in a row
let timer = null;

/** Show how many answers wait. */
function showSaved(trouble = "") {
  const waiting = keptAnswers().length;
  const line = byId("saved");
  const away = keeps ? "kept in this browser" : "kept in this window only: do not close it";
  if (study.offline) line.textContent = `${count(waiting, "answer")} ${away}; save them as a file when you are done.`;
  else if (waiting) line.textContent = `${count(waiting, "answer")} not sent yet, ${away}. ${trouble}`;
  else line.textContent = answers.size ? "All answers are saved." : "";
  line.classList.toggle("waits", waiting > 0 && !study.offline);
}

/** Keep an answer here, then send it. */
function submit(answer) {
  const before = keptAnswers().at(-1)?.at ?? 0;
  put(`answer:${answer.key}`, { answer, at: Math.max(Date.now(), before + 1) });
  answers.set(answer.reading, answer);
  return send();
}

/** Send what waits, one after another; what is not taken is sent again later. */
async function send() {
  showSaved();
  if (study.offline || sending) return;
  sending = true;
  clearTimeout(timer);
  try {
    await sendAll();
    failures = 0;
    showSaved();
  } catch (error) {
    if (error instanceof Refused) askForToken(error.message);
    const seconds = PATIENCE[Math.min(failures++, PATIENCE.length - 1)];
    timer = setTimeout(send, 1000 * seconds);
    showSaved(`${error.message} They are sent again by themselves.`);
  } finally {
    sending = false;
  }
}

/** Send the oldest answer, then the next one. */
async function sendAll() {
  const [next] = keptAnswers();
  if (!next) return;
  await sendOne(next.answer);
  await sendAll();
}

/** Send one answer; of a case that was answered in another window meanwhile, the reader decides. */
async function sendOne(answer) {
  try {
    await ask("/v1/study/answers", answer);
  } catch (error) {
    if (error.status === undefined) throw error;
    put(`answer:${answer.key}`, null);
    await loadAnswers();
    put(`form:${answer.reading}`, {
      ...formOf(answer),
      touched: true,
      conflict: true,
      problem: error.status === 409 ? "" : error.message,
    });
    showReading(study.readings.findIndex((one) => one.id === answer.reading));
    return;
  }
  put(`answer:${answer.key}`, null);
}

// ── As a file ────────────────────────────────────────────────────────────

/** Return the CRC-32 of a text's UTF-8. */
function crc32(text) {
  let sum = -1;
  for (const byte of new TextEncoder().encode(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return (sum ^ -1) >>> 0;
}

/** Hand all answers that are kept here out as a file. */
function download() {
  const inside = JSON.stringify(keptAnswers().map((kept) => kept.answer));
  const { study: id, reader } = study;
  const file = { format: "tabon-study-answers/1", study: id, reader, answers: inside, crc: crc32(`${id} ${reader} ${inside}`) };
  const address = URL.createObjectURL(new Blob([JSON.stringify(file)], { type: "application/json" }));
  const link = el("a", { href: address, download: `answers-${id}-${reader}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
  announce("The file is saved where your browser keeps downloads.");
}
