// Elements of SVG.

const SVG = "http://www.w3.org/2000/svg";

/** Return a new SVG element. */
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
