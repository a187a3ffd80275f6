// What words and numbers mean: shown beside what has `data-term`, said by a screen reader, listed under Keys.

let tipFor = null; // the element whose meaning is shown

/** Return attributes that give an element its meaning. */
const meaning = (name) => ({ "data-term": name, "aria-describedby": `term-${name}` });

/** Return a word whose meaning is shown where the pointer or the focus is. */
const term = (name, ...children) => el("span", { class: "term", tabindex: 0, ...meaning(name) }, children);

/** Show the meaning of an element right below it, or above where there is no room. */
function showTip(target) {
  const tip = byId("tip");
  const words = byId(`term-${target.dataset.term}`)?.textContent;
  if (!words) return;
  tipFor = target;
  tip.textContent = words;
  tip.hidden = false;
  const [box, own] = [target.getBoundingClientRect(), tip.getBoundingClientRect()];
  const below = box.bottom + own.height + 8 < window.innerHeight;
  tip.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - own.width - 8))}px`;
  tip.style.top = `${below ? box.bottom + 4 : Math.max(4, box.top - own.height - 4)}px`;
}

/** Hide the meaning that is shown; return whether one was. */
function hideTip() {
  if (!tipFor) return false;
  tipFor = null;
  byId("tip").hidden = true;
  return true;
}

/** Fill the list of meanings and show each where it is asked for. */
function connectTerms(meanings) {
  const row = ([name, [word, words]]) =>
    el("div", {}, el("dt", {}, word), el("dd", { id: `term-${name}` }, words));
  byId("terms").replaceChildren(...Object.entries(meanings).map(row));
  const asked = (event) => event.target.closest?.("[data-term]");
  const showAsked = (event) => asked(event) && showTip(asked(event));
  const hideLeft = (event) => {
    const next = event.relatedTarget;
    if (tipFor && next !== byId("tip") && !tipFor.contains(next)) hideTip();
  };
  document.addEventListener("pointerover", showAsked);
  document.addEventListener("focusin", showAsked);
  document.addEventListener("pointerout", hideLeft);
  document.addEventListener("focusout", hideLeft);
  const follow = () => (tipFor && tipFor === document.activeElement ? showTip(tipFor) : hideTip());
  window.addEventListener("scroll", follow, { passive: true });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key === "Escape" && hideTip()) event.preventDefault();
    },
    { capture: true },
  );
}
