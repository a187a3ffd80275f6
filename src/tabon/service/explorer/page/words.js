// Limits and words of the page.

const SECTIONS = ["findings", "impression"];
const KEPT = 64; // studies kept in memory when they are fetched
const LONGEST_SEARCH = 200; // characters that the service searches for
const KINDS = {
  __proto__: null,
  same: ["=", "same"],
  reworded: ["~", "reworded"],
  new: ["+", "new"],
  dropped: ["−", "dropped"],
};
const REFERENCE_KINDS = { ...KINDS, __proto__: null, new: ["+", "invented"], dropped: ["−", "missed"] };
const READING =
  "Reworded is near, which is not always equal in meaning: read both. All this says how the choice was made, not that a " +
  "draft is right.";
const ABSTENTIONS = {
  __proto__: null,
  "no-drafts": "there are no drafts to choose from",
  "empty-prior": "the prior has neither findings nor impression",
  "all-drafts-empty": "no draft has findings or impression",
  "nothing-to-compare": "no draft has a section that the prior and the bank have too",
  implausible: "even the best draft is less plausible than the asked rate allows",
  "trained-on": "the selector was fitted on this patient",
  "patient-in-bank": "the patient's own transitions are in the bank",
};
const MEANINGS = {
  pick: ["pick ★", "The draft that the selector chose: the one with the smallest total distance."],
  margin: [
    "margin",
    "How far the second best draft is behind the pick, as a difference of total distances. Near 0 the choice was close.",
  ],
  p: [
    "p",
    "The share of usual picks that are at most as plausible as this one, from calibration. Small is implausible; it does not say that the pick is right.",
  ],
  gain: [
    "gain",
    "The score of the pick less the mean score of all drafts, which a random pick would get. Above 0 the choice helped.",
  ],
  score: ["score", "How near a draft is to the reference report, by the metric that is named. 1 is best."],
  total: ["total distance", "The sum of the sections' distances. Lower is better: the lowest is picked."],
  section: ["distance of a section", "How implausible the selector finds the section. Lower is better."],
  part: ["part of a distance", "One of the things that a section's distance is made of, or was measured beside it. Lower is better."],
  share: [
    "share",
    "What a sentence adds to the change that was compared with the bank. Those of a section add up to 100 %; one below 0 pulls the other way.",
  ],
  distance: ["distance of a reworded sentence", "How far it is from the sentence that it takes the place of: 0 is equal, 1 is opposite."],
  nearest: ["nearest", "The distance to the nearest sentence of the other report: 0 is equal, 1 is opposite."],
  lead: ["share of the lead", "How much of the lead of the pick over another draft one part makes. They add up to 100 %."],
  change: ["distance of a training change", "How far this draft's change is from that change in a training report: 0 is equal, 1 is opposite."],
  visit: ["its prior is … away", "How far the prior of that training report is from this study's prior: 0 is equal, 1 is opposite."],
  tied: ["tied", "The second best draft is as good as the pick; the first of them was taken."],
  flags: ["flags", "What rules found that a reader should look at. A flag may be wrong."],
};
const FILTERS = ["q", "within", "flags", "abstained", "tied", "selectors", "margin_min", "margin_max", "sign"].concat([
  "gain_min",
  "gain_max",
  "score_min",
  "score_max",
]);
const COLUMNS = [
  ["number", "No.", null],
  [null, "Study", null],
  [null, "Pick", "pick"],
  ["margin", "Margin", "margin"],
  ["gain", "Gain", "gain"],
  ["p", "p", "p"],
  [null, "Flags of the pick", "flags"],
];
const SORTS = new Set(["margin", "score", "gain", "p"]);
