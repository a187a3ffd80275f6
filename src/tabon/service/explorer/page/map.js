// A study: the map of transition space.

const MAP = { width: 440, height: 330, edge: 22 };

/** Return a function from a point to the picture, the same scale both ways. */
function projection(points) {
  const least = (axis) => points.reduce((best, point) => Math.min(best, point[axis]), Infinity);
  const most = (axis) => points.reduce((best, point) => Math.max(best, point[axis]), -Infinity);
  const [left, right, low, high] = [least(0), most(0), least(1), most(1)];
  const room = (span, size) => (size - 2 * MAP.edge) / Math.max(span, 1e-9);
  const scale = Math.min(room(right - left, MAP.width), room(high - low, MAP.height));
  return ([x, y]) => [
    MAP.width / 2 + (x - (left + right) / 2) * scale,
    MAP.height / 2 - (y - (low + high) / 2) * scale,
  ];
}

/** Return places for numbered labels near their points, pushed apart. */
function spread(points) {
  const places = points.map(([x, y], at) => [x + 3 * Math.cos(2.4 * at), y - 14 + 3 * Math.sin(2.4 * at)]);
  const push = (from, to, least) => {
    const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    const apart = Math.hypot(dx, dy) || 1e-3;
    return apart < least ? [((least - apart) * dx) / apart, ((least - apart) * dy) / apart] : [0, 0];
  };
  for (let turn = 0; turn < 80; turn += 1) {
    places.forEach((place_, at) => {
      const others = [
        ...places.filter((_, other) => other !== at).map((other) => push(other, place_, 23)),
        ...points.map((point) => push(point, place_, 13)),
      ];
      const [dx, dy] = others.reduce(([a, b], [c, d]) => [a + c / 2, b + d / 2], [0, 0]);
      place_[0] = Math.min(MAP.width - 12, Math.max(12, place_[0] + dx));
      place_[1] = Math.min(MAP.height - 12, Math.max(12, place_[1] + dy));
    });
  }
  return places;
}

/** Return the numbered marks of the drafts. */
function draftMarks(study, drafts, project) {
  const points = drafts.map((draft) => project(draft.point));
  return spread(points).map(([x, y], at) => {
    const { draft } = drafts[at];
    const kind = `${draft.number === study.selected ? "picked" : ""}${shownDrafts(study).includes(draft) ? " on" : ""}`;
    const [px, py] = points[at];
    return svg(
      "g",
      { class: `draft ${kind}` },
      svg("path", { class: "lead", d: `M${px} ${py}L${x} ${y}` }),
      svg("circle", { class: "spot", cx: px, cy: py, r: 3 }),
      svg("circle", { class: "disc", cx: x, cy: y, r: 10 }),
      svg("text", { x, y: y + 4, "text-anchor": "middle" }, String(draft.number + 1)),
    );
  });
}

/** Return the picture of one section: bank, nearest, drafts. */
function mapPicture(study, section, words) {
  const bank = overview.map[section].bank;
  const here = study.map[section];
  const drafts = study.drafts
    .map((draft, at) => ({ draft, point: here.drafts[at] ?? null }))
    .filter(({ point }) => point !== null);
  const nearest = study.drafts
    .map((draft, at) => ({ draft, from: here.drafts[at], to: here.nearest?.[at] }))
    .filter(({ from, to }) => from && to);
  const project = projection([...bank, ...nearest.map(({ to }) => to), ...drafts.map(({ point }) => point)]);
  const dots = bank
    .map((point) => project(point))
    .map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`)
    .join("");
  const kind = (draft) => (draft.number === study.selected ? " picked" : "");
  const thread = ({ draft, from, to }) =>
    svg("path", { class: `thread${kind(draft)}`, d: `M${project(from).join(" ")}L${project(to).join(" ")}` });
  const diamond = ({ draft, to }) =>
    svg("path", { class: `near${kind(draft)}`, d: `M${project(to)[0]} ${project(to)[1] - 5}l5 5l-5 5l-5 -5z` });
  return svg(
    "svg",
    { class: "map", viewBox: `0 0 ${MAP.width} ${MAP.height}`, role: "img", "aria-label": words },
    svg("path", { class: "bank", d: dots }),
    nearest.map(thread),
    nearest.map(diamond),
    draftMarks(study, drafts, project),
  );
}

/** Return the map in words. */
function mapWords(study, section) {
  const { bank, explained, total } = overview.map[section];
  const here = study.map[section];
  const placed = study.drafts.filter((_, at) => here.drafts[at]);
  const missing = study.drafts.filter((_, at) => !here.drafts[at]).map((draft) => draft.number + 1);
  const axes = explained?.every(isNumber)
    ? ` The two axes hold ${percent(explained[0])} and ${percent(explained[1])} of the bank's spread.`
    : "";
  const part = total > bank.length ? ` (a sample of ${total.toLocaleString("en")})` : "";
  return (
    `Changes of the ${section}: ${count(bank.length, "bank transition")}${part}, ${count(placed.length, "draft")}` +
    `${study.selected === null ? ", no pick" : `, the pick is draft ${study.selected}`}, and each draft's nearest transition.` +
    `${missing.length ? ` Not on the map: draft ${missing.join(", ")}.` : ""}${axes}`
  );
}

/** Return the coordinates as a table, for those who do not see the picture. */
function mapTable(study, section) {
  const cell = (value) => el("td", {}, number(value, "–"));
  const row = (name, point) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      point ? [cell(point[0]), cell(point[1])] : el("td", { colspan: 2 }, "not on the map"),
    );
  const here = study.map[section];
  return el(
    "details",
    {},
    el("summary", {}, "The map as a table"),
    el(
      "table",
      {},
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, "Point"),
          el("th", { scope: "col" }, "x"),
          el("th", { scope: "col" }, "y"),
        ),
      ),
      el(
        "tbody",
        {},
        study.drafts.map((draft, at) => row(draftName(study, draft), here.drafts[at])),
        study.drafts.map((draft, at) => row(`nearest to draft ${draft.number + 1}`, here.nearest?.[at])),
      ),
    ),
  );
}

/** Return the map with its switch of sections; a sentence where there is none. */
function mapPanel(study) {
  const known = SECTIONS.filter((section) => overview.map?.[section] && study.map?.[section]);
  const head = el("h3", {}, "Map of transition space");
  if (!known.length)
    return el(
      "section",
      { class: "panel" },
      head,
      el(
        "p",
        { class: "note" },
        "There is no map: the bank's transitions were not laid out, or nothing was compared.",
      ),
    );
  const section = known.includes(state.get("map")) ? state.get("map") : known[0];
  const words = mapWords(study, section);
  const choice = (name) =>
    el(
      "button",
      { type: "button", id: `map-${name}`, "aria-pressed": name === section, click: () => go({ map: name }) },
      title(name),
    );
  return el(
    "section",
    { class: "panel" },
    head,
    el("div", { class: "switch", role: "group", "aria-label": "Section of the map" }, known.map(choice)),
    el("figure", {}, mapPicture(study, section, words), el("figcaption", {}, words)),
    el(
      "ul",
      { class: "maplegend", "aria-hidden": "true" },
      el("li", { class: "k-bank" }, "bank"),
      el("li", { class: "k-draft" }, "draft"),
      el("li", { class: "k-pick" }, "pick"),
      el("li", { class: "k-near" }, "nearest"),
    ),
    mapTable(study, section),
  );
}
