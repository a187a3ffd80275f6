// The list of studies: filters, order, pages.

/** Return whether a number lies in a range; what is missing lies in none. */
function within(value, low, high) {
  if (!low && !high) return true;
  return isNumber(value) && (!low || value >= Number(low)) && (!high || value <= Number(high));
}

/** Return whether yes/no agrees with a filter: "", "yes" or "no". */
const agrees = (filter, fact) => !filter || (filter === "yes") === fact;

/** Return whether a gain has the sign that is asked for. */
function hasSign(gain, sign) {
  if (!sign) return true;
  if (!isNumber(gain)) return sign === "none";
  return sign === (gain > 0 ? "plus" : gain < 0 ? "minus" : "zero");
}

/** Return a test of one row, made from the filters in a state. */
function filterOf(from) {
  const get = (key) => from.get(key) || "";
  const words = get("q").toLowerCase().split(/\s+/).filter(Boolean);
  const kinds = get("flags").split(",").filter(Boolean);
  return (row) => {
    const name = `${row.number} ${row.id} ${row.patient ?? ""}`.toLowerCase();
    return (
      words.every((word) => name.includes(word)) &&
      (!kinds.length || kinds.some((kind) => row.flags.includes(kind))) &&
      agrees(get("abstained"), row.abstained !== null) &&
      agrees(get("tied"), row.tied) &&
      within(row.margin, get("margin_min"), get("margin_max")) &&
      hasSign(row.gain, get("sign")) &&
      within(row.gain, get("gain_min"), get("gain_max"))
    );
  };
}

/** Return an order of rows by a column; what is missing comes last either way, equals by number. */
function orderOf(column, descending) {
  return (left, right) => {
    const [a, b] = [left[column], right[column]];
    if (isNumber(a) !== isNumber(b)) return isNumber(a) ? -1 : 1;
    const difference = isNumber(a) ? (descending ? b - a : a - b) : 0;
    return difference || left.number - right.number;
  };
}

const sortColumn = () => (["margin", "gain", "p"].includes(state.get("sort")) ? state.get("sort") : "number");

/** Find the studies that the state asks for. */
function findShown() {
  shown = overview.studies.filter(filterOf(state)).sort(orderOf(sortColumn(), state.has("desc")));
}

/** Put the state into the filter form, except where someone is typing. */
function fillForm() {
  const kinds = (state.get("flags") || "").split(",");
  for (const field of byId("filter").elements) {
    if (field.type === "checkbox") field.checked = kinds.includes(field.value);
    else if (field.name && field !== document.activeElement) field.value = state.get(field.name) || "";
  }
  const on = FILTERS.filter((key) => state.has(key)).length;
  byId("filters-on").textContent = on ? `(${on} on)` : "";
  byId("reset").disabled = !on;
  byId("sort").value = sortColumn();
  byId("order").textContent = state.has("desc") ? "descending ↓" : "ascending ↑";
}

/** Read the filter form into the state. */
function readForm() {
  const changes = { page: null };
  const kinds = [];
  for (const field of byId("filter").elements) {
    if (field.type === "checkbox") kinds.push(...(field.checked ? [field.value] : []));
    else if (field.name) changes[field.name] = field.value.trim();
  }
  go({ ...changes, flags: kinds.join(",") });
}

/** Make the checkboxes of the flag kinds, with how many studies have each. */
function drawKinds() {
  const many = (kind) => overview.studies.filter((row) => row.flags.includes(kind)).length;
  const box = (kind) => {
    const found = many(kind);
    return el(
      "label",
      { class: found ? "" : "faint" },
      el("input", { type: "checkbox", name: "", value: kind }),
      el("span", {}, kind),
      el("small", {}, String(found), said(" studies")),
    );
  };
  byId("kinds").replaceChildren(...overview.flag_kinds.map(box));
  byId("gain-filter").hidden = overview.score === null;
}

/** Draw the heads of the columns; those that sort are buttons. */
function drawHead() {
  const column = sortColumn();
  const heads = COLUMNS.map(([key, name]) => {
    if (!key) return el("span", {}, name);
    const on = key === column;
    const arrow = on ? (state.has("desc") ? " ↓" : " ↑") : "";
    return el(
      "button",
      {
        type: "button",
        id: `head-${key}`,
        "aria-pressed": on,
        "aria-label": `Sort by ${key}`,
        click: () => sortBy(key),
      },
      name + arrow,
    );
  });
  byId("head").replaceChildren(...heads);
}

/** Sort by a column; asked again, turn the order round. */
function sortBy(key) {
  const same = key === sortColumn();
  go({ sort: key === "number" ? null : key, desc: same && !state.has("desc") ? "1" : null, page: null });
  byId(`head-${key}`)?.focus();
}

/** Return a small bar from the middle: right is better than a random pick, left is worse. */
function gainBar(gain, most) {
  const width = most > 0 ? (22 * Math.abs(gain)) / most : 0;
  return svg(
    "svg",
    { class: "gainbar", viewBox: "0 0 48 8", width: 48, height: 8, "aria-hidden": "true" },
    svg("path", { class: "axis", d: "M24 0v8" }),
    svg("rect", {
      class: gain < 0 ? "minus" : "plus",
      x: gain < 0 ? 24 - width : 24,
      y: 1.5,
      width,
      height: 5,
      rx: 1,
    }),
  );
}

/** Return a label that is seen at phone width and always said. */
const label = (text) => el("span", { class: "label" }, `${text} `);

/** Return a chip for a flag. */
const flagChip = (kind) => el("span", { class: "chip flag" }, el("span", { "aria-hidden": "true" }, "⚑ "), kind);

/** Return what was picked in a study, in words. */
function pickWords(row) {
  if (row.selected === null)
    return el("span", { class: "chip none" }, `abstained: ${row.abstained ?? "no reason given"}`);
  return [
    el("span", {}, `draft ${row.selected} of ${row.drafts}`),
    row.tied ? el("span", { class: "chip" }, "tied") : null,
  ];
}

/** Return one line of the list. */
function studyRow(row, most) {
  const gain = isNumber(row.gain)
    ? [gainBar(row.gain, most), el("span", {}, signed(row.gain))]
    : el("span", { class: "faint" }, "–", said("not measured"));
  const value = (number_) =>
    isNumber(number_) ? number(number_) : el("span", { class: "faint" }, "–", said("not measured"));
  const link = el(
    "a",
    { class: "row", href: hashWith({ ...toStudy, study: row.number }), "data-number": row.number },
    el("span", { class: "no" }, said("Study "), String(row.number)),
    el(
      "span",
      { class: "id" },
      el("b", {}, row.id),
      el(
        "small",
        {},
        row.patient === null ? "patient not named" : said("patient "),
        row.patient,
        row.has_image ? " · image" : null,
      ),
    ),
    el("span", { class: "pick" }, pickWords(row)),
    el("span", { class: "num" }, label("margin"), value(row.margin)),
    el("span", { class: "num gain" }, label("gain"), gain),
    el("span", { class: "num" }, label("p"), value(row.p)),
    el(
      "span",
      { class: "chips" },
      row.flags.length
        ? row.flags.map(flagChip)
        : el("span", { class: "faint" }, row.selected === null ? "no pick" : "no flag"),
    ),
  );
  return el("li", {}, link);
}

/** Return the sentence over the list: what the shown studies have in common. */
function summaryWords() {
  const many = (test) => shown.filter(test).length;
  const facts = [
    `${many((row) => row.abstained !== null)} abstained`,
    `${many((row) => row.tied)} tied`,
    `${many((row) => row.flags.length > 0)} with flags`,
  ];
  const gains = shown.map((row) => row.gain).filter(isNumber);
  if (gains.length)
    facts.push(
      `mean gain ${signed(mean(gains))} ${overview.score ?? ""} over ${count(gains.length, "study", "studies")}`,
    );
  return facts.join(" · ");
}

const lastPage = () => Math.max(0, Math.ceil(shown.length / PAGE) - 1);
const pageNumber = () => Math.min(lastPage(), Math.max(0, Math.trunc(Number(state.get("page"))) || 0));

/** Draw the buttons that turn pages, where there is more than one. */
function drawPages() {
  const page = pageNumber();
  const turn = (to, text) =>
    el(
      "button",
      { type: "button", id: `page-${text}`, disabled: to < 0 || to > lastPage(), click: () => turnTo(to) },
      text,
    );
  byId("pages").hidden = !lastPage();
  byId("pages").replaceChildren(
    turn(page - 1, "Previous"),
    el("span", {}, `page ${page + 1} of ${lastPage() + 1}`),
    turn(page + 1, "Next"),
  );
}

/** Turn to a page of the list. */
function turnTo(page) {
  go({ page: page || null });
  byId("count").scrollIntoView({ block: "nearest" });
}

/** Draw the list. */
function drawList() {
  byId("list").hidden = false;
  byId("study").hidden = true;
  opened = null;
  fillForm();
  drawHead();
  byId("count").textContent =
    shown.length === overview.studies.length
      ? count(shown.length, "study", "studies")
      : `${shown.length.toLocaleString("en")} of ${count(overview.studies.length, "study", "studies")}`;
  byId("summary").textContent = shown.length ? summaryWords() : "No study passes the filters; clear some of them.";
  const most = Math.max(0, ...overview.studies.map((row) => Math.abs(row.gain ?? 0)));
  const from = pageNumber() * PAGE;
  byId("studies").setAttribute("start", String(from + 1));
  byId("studies").replaceChildren(...shown.slice(from, from + PAGE).map((row) => studyRow(row, most)));
  drawPages();
  document.title = `Studies · ${overview.title}`;
}

/** Move the focus to a study in the list, turning the page where it stands on another. */
function focusRow(wanted) {
  const row = shown[Math.min(shown.length - 1, Math.max(0, wanted))];
  if (!row) return;
  cursor = row.number;
  const page = Math.floor(shown.indexOf(row) / PAGE);
  if (page !== pageNumber()) go({ page: page || null });
  const link = byId("studies").querySelector(`[data-number="${row.number}"]`);
  link?.focus();
  link?.scrollIntoView({ block: "nearest" });
}

/** Return where the focus stands in the list; -1 for nowhere. */
function place() {
  const at = document.activeElement?.dataset?.number ?? cursor;
  return at === null ? -1 : shown.findIndex((row) => row.number === Number(at));
}
