// A study: which sentences are side by side.

/** Return an alignment in reading order: a dropped sentence stands after the prior one before it. */
function readingOrder(lines) {
  const order = lines.filter((line) => line.current !== null);
  const dropped = lines.filter((line) => line.current === null).sort((a, b) => a.prior - b.prior);
  for (const line of dropped) {
    const before = order.reduce(
      (best, other, at) =>
        other.prior !== null && other.prior < line.prior && (best < 0 || other.prior > order[best].prior) ? at : best,
      -1,
    );
    order.splice(before + 1, 0, line);
  }
  return order;
}

/** Return an alignment for a section that was not compared: each sentence by itself. */
function unaligned(prior, current) {
  const line = (kind, at, now) => ({ kind, prior: at, current: now, distance: null, share: null });
  return [...current.map((_, now) => line(null, null, now)), ...prior.map((_, at) => line(null, at, null))];
}

/** Return the lines of one draft in one section. */
function linesOf(study, draft, section) {
  const lines = draft.alignment[section];
  return readingOrder(lines && lines.length ? lines : unaligned(study.prior[section], draft.report[section]));
}

/** Return rows {prior, cells}: one prior sentence, and what each of one or two drafts makes of it. */
function rowsOf(study, drafts, section) {
  const [first, second] = drafts.map((draft) => linesOf(study, draft, section));
  const rows = first.map((line) => ({ prior: line.prior, cells: [line, null] }));
  let after = -1;
  for (const line of second ?? []) {
    const partner = line.prior === null ? -1 : rows.findIndex((row) => row.prior === line.prior && !row.cells[1]);
    if (partner >= 0) after = partner;
    else rows.splice((after += 1), 0, { prior: line.prior, cells: [null, null] });
    rows[after].cells[1] = line;
  }
  return rows;
}
