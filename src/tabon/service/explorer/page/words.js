// Limits and words of the page.

const SECTIONS = ["findings", "impression"];
const PAGE = 50; // studies on one page of the list
const KEPT = 64; // studies kept in memory when they are fetched
const KINDS = {
  __proto__: null,
  same: ["=", "same"],
  reworded: ["~", "reworded"],
  new: ["+", "new"],
  dropped: ["−", "dropped"],
};
const READING =
  "Reworded is near, which is not always equal in meaning: read both. Nearest is the distance to the nearest sentence of " +
  "the other report. All this says how the choice was made, not that a draft is right.";
const READING_SHARES =
  "The shares of a section add up to 100 % of the change that was compared with the bank; one below zero pulls the other way.";
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
const FILTERS = ["q", "flags", "abstained", "tied", "margin_min", "margin_max", "sign", "gain_min", "gain_max"];
const COLUMNS = [
  ["number", "No."],
  [null, "Study"],
  [null, "Pick"],
  ["margin", "Margin"],
  ["gain", "Gain"],
  ["p", "p"],
  [null, "Flags of the pick"],
];
