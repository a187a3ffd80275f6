// Limits and words of the page.

const PATIENCE = [1, 2, 4, 8, 15, 30]; // seconds until what was not taken is sent again
const LETTERS = "abcdefgh";
const SECTIONS = [
  ["findings", "Findings"],
  ["impression", "Impression"],
];
const RATINGS = [
  [1, "unusable"],
  [2, "major changes"],
  [3, "some changes"],
  [4, "minor changes"],
  [5, "as it is"],
];
const SIDES = [
  ["←", "Draft A", [1, 2]],
  ["=", "No preference", [1, 1]],
  ["→", "Draft B", [2, 1]],
];
const ERROR_KEYS = { __proto__: null, i: "invented", m: "missed", s: "side", v: "severity", t: "change", o: "other" };
const KEYS = {
  __proto__: null,
  pairwise: [
    ["← →", "prefer draft A, draft B"],
    ["=", "no preference"],
    ["a b", "choose the draft whose errors are ticked"],
  ],
  rating: [["1 … 5", "rate the draft"]],
  ranking: [
    ["a b c …", "choose a draft"],
    ["1 2 3 …", "give the chosen draft its rank; two may share one"],
  ],
};
const EVERYWHERE = [
  ["i m s v t o", "error: invented, missed, side, severity, change over time, other; again: significant; again: none"],
  ["n", "comment; Esc leaves it"],
  ["Enter", "save and go to the next case"],
  ["u", "back to the case before, to look at the answer or change it"],
  ["p", "take a break: the clock stops"],
  ["?", "show these keys"],
];
