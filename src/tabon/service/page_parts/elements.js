// Elements of HTML, whose text becomes text nodes, and what every page says.

const byId = (id) => document.getElementById(id);

/** Give a node its attributes (functions are listeners, true is a bare attribute) and children. */
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (name.startsWith("aria-") && value !== null) node.setAttribute(name, String(value));
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Return a new HTML element; strings among the children become text. */
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** Say a change to a screen reader. */
function announce(text) {
  byId("live").textContent = text;
}

/** Show one sentence about what went wrong; nothing hides it. */
function showError(text) {
  byId("error").textContent = text || "";
  byId("error").hidden = !text;
}

/** Return a count with its noun. */
const count = (many, one, more = `${one}s`) => `${many.toLocaleString("en")} ${many === 1 ? one : more}`;
