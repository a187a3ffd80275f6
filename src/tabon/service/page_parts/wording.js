// A sentence with its words set off: numbers, sides, amounts and changes, and what differs from another sentence.

const MARKS = { __proto__: null, number: "number", side: "side", severity: "amount", change: "change" };

/** Return text that only a screen reader says. */
const said = (text) => el("span", { class: "hidden" }, text);

/** Return a sentence in pieces: {text, kind, differs}; places count characters, a pair of surrogates as one. */
function piecesOf(text, marks, spans) {
  const signs = Array.from(text);
  const ends = [0, signs.length, ...spans.flat(), ...marks.flatMap(([, from, to]) => [from, to])];
  const cuts = [...new Set(ends.map((end) => Math.min(signs.length, end)))].sort((a, b) => a - b);
  return cuts.slice(1).map((end, at) => ({
    text: signs.slice(cuts[at], end).join(""),
    kind: marks.find(([, from, to]) => from <= cuts[at] && end <= to)?.[0],
    differs: spans.some(([from, to]) => from <= cuts[at] && end <= to),
  }));
}

/** Return a sentence as nodes; `tag` (ins or del) holds each run of words that differ. */
function wording(text, marks = [], spans = [], tag = "ins") {
  const found = [];
  let run = null;
  for (const piece of piecesOf(text, marks, spans)) {
    const node = piece.kind
      ? el("b", { class: `mark mark-${piece.kind}`, title: MARKS[piece.kind] ?? null }, piece.text)
      : piece.text;
    run = piece.differs ? (run ?? el(tag)) : null;
    if (run) run.append(node);
    if (!run || found.at(-1) !== run) found.push(run ?? node);
  }
  return found;
}

/** Return what turned between two sentences, a chip for each kind: "amount: small → large". */
function turnChips(turns = []) {
  const side = (words, none) => (words.length ? el("b", {}, words.join(", ")) : el("i", {}, none));
  return turns.map(([kind, before, after]) =>
    el(
      "span",
      { class: "chip turn" },
      `${MARKS[kind] ?? kind}: `,
      side(before, "not said"),
      el("span", { "aria-hidden": "true" }, " → "),
      said(" became "),
      side(after, "not said"),
    ),
  );
}
