// What was entered of the case on the screen, and the time it took.

let form = null; // values, errors, comment, seconds of the reading on the screen
let since = null; // when the clock was started

const reading = () => study.readings[at];

/** Return a form with nothing in it. */
const emptyForm = (drafts) => ({ values: Array(drafts).fill(null), errors: {}, comment: "", seconds: 0 });

/** Return the form that says what an answer says. */
const formOf = (answer) => ({
  values: answer.values,
  errors: Object.fromEntries(answer.errors.map((one) => [`${one.draft}:${one.kind}`, one.significant])),
  comment: answer.comment,
  seconds: answer.seconds,
});

/** Return numbers as ranks that leave none out: 4, 1, 4 become 2, 1, 2. */
function ranked(values) {
  const known = [...new Set(values)].sort((one, other) => one - other);
  return values.map((value) => known.indexOf(value) + 1);
}

/** Return what was entered of a reading before, or what its answer says; what was entered elsewhere meanwhile counts. */
function formFor({ id, drafts }) {
  const given = answers.get(id);
  const begun = get(`form:${id}`);
  const base = given?.key ?? null;
  if (begun?.touched) return { ...begun, base, conflict: begun.conflict || begun.base !== base };
  return { ...(given ? formOf(given) : emptyForm(drafts.length)), base, seconds: Math.max(given?.seconds ?? 0, begun?.seconds ?? 0) };
}

/** Return the answer that the form says, amending the one that counts now. */
function answerOf() {
  const { id } = reading();
  const errors = Object.entries(form.errors).map(([name, significant]) => {
    const [draft, kind] = name.split(":");
    return { draft: Number(draft), kind, significant };
  });
  return {
    key: newKey(),
    reading: id,
    after: form.base,
    values: study.design === "ranking" ? ranked(form.values) : form.values,
    errors,
    comment: form.comment,
    seconds: Math.round(form.seconds * 10) / 10,
  };
}

/** Say whether the form says something else than the answer that counts. */
function isChanged() {
  const given = answers.get(reading().id);
  const plain = ({ values, errors, comment }) => JSON.stringify([values, Object.entries(errors).sort(), comment]);
  return plain(form) !== plain(given ? formOf(given) : emptyForm(form.values.length));
}

/** Add the time since the clock was started, and keep what was entered. */
function keepForm() {
  if (!form) return;
  const now = performance.now();
  if (since !== null) form.seconds += (now - since) / 1000;
  since = since === null ? null : now;
  put(`form:${reading().id}`, form);
}

/** Let the clock run while a case can be seen. */
function watchClock() {
  keepForm();
  since = form && !byId("case").hidden && document.visibilityState === "visible" ? performance.now() : null;
}
