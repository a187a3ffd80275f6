// Elements of HTML; text becomes text nodes.

const byId = (id) => document.getElementById(id);

/** Return a new element; functions are listeners, true is a bare attribute, strings among the children text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

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
