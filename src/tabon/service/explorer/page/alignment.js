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

/** Return the lines of one column beside the base in one section. */
function linesOf(base, column, section) {
  const lines = column.alignment[section];
  return readingOrder(lines && lines.length ? lines : unaligned(base.report[section], column.report[section]));
}

/** Return rows {prior, cells}: one sentence of the base, and what each column makes of it. */
function rowsOf(base, columns, section) {
  const [first, ...others] = columns.map((column) => linesOf(base, column, section));
  const found = first.map((line) => ({ prior: line.prior, cells: [line] }));
  others.forEach((lines, at) => {
    let after = -1;
    for (const line of lines) {
      const partner =
        line.prior === null ? -1 : found.findIndex((row) => row.prior === line.prior && !row.cells[at + 1]);
      if (partner >= 0) after = partner;
      else found.splice((after += 1), 0, { prior: line.prior, cells: [] });
      found[after].cells[at + 1] = line;
    }
  });
  return found;
}
