/*
 * The explorer page. It shows why a draft was picked and changes nothing.
 *
 * hash ─▶ state ─▶ list or study ─▶ elements        (data: inside the page, or from the service)
 *
 * The whole state stands in the hash, so a link shows what its sender saw. Text of reports reaches
 * the page as text nodes only. Lower is better for a distance, higher for a score.
 */
(() => {
  "use strict";

  // ── Words ────────────────────────────────────────────────────────────────

  const SECTIONS = ["findings", "impression"];
  const PAGE = 50; // studies on one page of the list
  const KEPT = 64; // studies kept in memory when they are fetched
  const PATIENCE = 30; // times that a busy service is asked again
  const KINDS = {
    __proto__: null,
    same: ["=", "same"],
    reworded: ["~", "reworded"],
    new: ["+", "new"],
    dropped: ["−", "dropped"],
  };
  const ABSTENTIONS = {
    __proto__: null,
    "no-drafts": "there are no drafts to choose from",
    "empty-prior": "the prior has neither findings nor impression",
    "all-drafts-empty": "no draft has findings or impression",
    "nothing-to-compare": "no draft has a section that the prior and the bank have too",
    implausible: "even the best draft is stranger than the asked rate allows",
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

  // ── Elements ─────────────────────────────────────────────────────────────

  const SVG = "http://www.w3.org/2000/svg";
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

  /** Return a new SVG element. */
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  /** Return text that only a screen reader says. */
  const said = (text) => el("span", { class: "hidden" }, text);

  /** Say a change to a screen reader. */
  function announce(text) {
    byId("live").textContent = text;
  }

  /** Show one sentence about what went wrong; nothing hides it. */
  function showError(text) {
    byId("error").textContent = text || "";
    byId("error").hidden = !text;
  }

  // ── Numbers ──────────────────────────────────────────────────────────────

  const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

  /** Return a number with four decimals, or the word for one that is missing. */
  const number = (value, missing = "not measured") => (isNumber(value) ? value.toFixed(4).replace("-", "−") : missing);

  /** Return a number with its sign. */
  const signed = (value, missing) => (isNumber(value) && value > 0 ? "+" : "") + number(value, missing);

  /** Return a share in percent with a true minus. */
  const percent = (value) => `${Math.round(100 * value)} %`.replace("-", "−");

  /** Return a count with its noun. */
  const count = (many, one, more = `${one}s`) => `${many.toLocaleString("en")} ${many === 1 ? one : more}`;

  /** Return a name with a capital letter. */
  const title = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  /** Return the mean of the numbers in a list, null where there are none. */
  function mean(values) {
    const known = values.filter(isNumber);
    return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
  }

  // ── State: what the hash says ────────────────────────────────────────────

  let overview = null;
  let embedded = null; // the studies inside the page, by number; null where they are fetched
  let state = new URLSearchParams();
  let lastHash = ""; // the hash that the state was last in step with
  let shown = []; // the studies that pass the filters, in order
  let opened = null; // the study on the screen
  let cursor = null; // the number of the study that the list stands at

  /** Take the state from the address where it moved: keys may come before its event does. */
  function readHash() {
    if (location.hash === lastHash) return;
    lastHash = location.hash;
    state = new URLSearchParams(lastHash.slice(1));
  }

  /** Return the hash of the present state with some keys changed; null removes one. */
  function hashWith(changes) {
    const next = new URLSearchParams(state);
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === "") next.delete(key);
      else next.set(key, String(value));
    }
    return `#${next}`;
  }

  /** Go to another state; `push` makes a step that the Back button undoes. */
  function go(changes, { push = false } = {}) {
    const hash = hashWith(changes);
    if (push) {
      location.hash = hash; // `hashchange` shows it
      return;
    }
    try {
      history.replaceState(null, "", hash);
    } catch {
      // an odd frame: the page still works, only the link is not kept
    }
    lastHash = location.hash;
    state = new URLSearchParams(hash.slice(1));
    show();
  }

  const inStudy = () => state.has("study");
  const toStudy = { draft: null, with: null };

  // ── Data: inside the page, or from the service ───────────────────────────

  const fetched = new Map();
  let pictures = new Map(); // addresses of images that this page made

  /** Read a storage that may be forbidden. */
  function recall(storage, key) {
    try {
      return window[storage].getItem(key);
    } catch {
      return null;
    }
  }

  /** Write to a storage that may be forbidden. */
  function remember(storage, key, value) {
    try {
      if (value === null) window[storage].removeItem(key);
      else window[storage].setItem(key, value);
    } catch {
      // not kept: asked again next time
    }
  }

  let token = recall("sessionStorage", "tabon-token");

  class Refused extends Error {}

  /** Wait some seconds. */
  const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

  /** Return the answer to a GET; a refusal is an error of one sentence. A busy service is asked again. */
  async function ask(path, left = PATIENCE) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    let answer;
    try {
      answer = await fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
    } catch {
      throw new Error("The service did not answer; check that it still runs, then load the page again.");
    }
    const pause = answer.status === 503 ? Number(answer.headers.get("Retry-After")) : 0;
    if (pause > 0 && left > 0) {
      announce("The service is still working this out; it is asked again.");
      await wait(Math.min(pause, 10));
      return ask(path, left - 1);
    }
    if (answer.status === 401) throw new Refused(token ? "The token was refused; check it." : "");
    if (!answer.ok) throw new Error(`The service answered ${answer.status} instead of the data; its log says more.`);
    return answer;
  }

  /** Return the overview. */
  async function loadOverview() {
    const inside = byId("explorer-data");
    if (!inside) return (await ask("/v1/explorer")).json();
    const data = JSON.parse(inside.textContent);
    embedded = new Map(data.studies.map((study) => [study.number, study]));
    return data.overview;
  }

  /** Return one study, from the page, from memory or from the service. */
  async function loadStudy(wanted) {
    if (!overview.studies.some((row) => row.number === wanted)) throw new Error("There is no such study here.");
    if (embedded) return embedded.get(wanted);
    if (!fetched.has(wanted)) {
      fetched.set(wanted, await (await ask(`/v1/explorer/studies/${wanted}`)).json());
      if (fetched.size > KEPT) fetched.delete(fetched.keys().next().value);
    }
    return fetched.get(wanted);
  }

  /** Return an address that an <img> may show: the data itself, or a blob fetched with the token. */
  async function loadImage(study) {
    if (typeof study.image === "string" && study.image.startsWith("data:image/")) return study.image;
    if (!pictures.has(study.number)) {
      for (const address of pictures.values()) URL.revokeObjectURL(address);
      const blob = await (await ask(`/v1/explorer/studies/${study.number}/image`)).blob();
      pictures = new Map([[study.number, URL.createObjectURL(blob)]]);
    }
    return pictures.get(study.number);
  }

  /** Show what went wrong: the form for the token, or a sentence. */
  function fail(error) {
    if (error instanceof Refused) askForToken(error.message);
    else if (error instanceof SyntaxError)
      showError("The data could not be read: it is not whole; make the page again.");
    else showError(error.message);
    if (!overview) byId("facts").textContent = "";
  }

  /** Show the form for the token in place of everything else. */
  function askForToken(why) {
    byId("facts").textContent = "";
    showError(why);
    remember("sessionStorage", "tabon-token", null);
    token = null;
    byId("list").hidden = byId("study").hidden = true;
    byId("token").hidden = false;
    byId("token-value").focus();
  }

  // ── The list: filters, order, pages ──────────────────────────────────────

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
  function focusRow(place) {
    const row = shown[Math.min(shown.length - 1, Math.max(0, place))];
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

  // ── A study: which rows stand side by side ───────────────────────────────

  /** Return an alignment in reading order: a dropped sentence stands after the prior one before it. */
  function readingOrder(lines) {
    const order = lines.filter((line) => line.current !== null);
    const dropped = lines.filter((line) => line.current === null).sort((a, b) => a.prior - b.prior);
    for (const line of dropped) {
      const before = order.reduce(
        (best, other, at) =>
          other.prior !== null && other.prior < line.prior && (best < 0 || other.prior > order[best].prior) ? at : best,
        -1,
      );
      order.splice(before + 1, 0, line);
    }
    return order;
  }

  /** Return an alignment for a section that was not compared: each sentence by itself. */
  function unaligned(prior, current) {
    const line = (kind, at, now) => ({ kind, prior: at, current: now, distance: null, share: null });
    return [...current.map((_, now) => line(null, null, now)), ...prior.map((_, at) => line(null, at, null))];
  }

  /** Return the lines of one draft in one section. */
  function linesOf(study, draft, section) {
    const lines = draft.alignment[section];
    return readingOrder(lines && lines.length ? lines : unaligned(study.prior[section], draft.report[section]));
  }

  /** Return rows {prior, cells}: one prior sentence, and what each of one or two drafts makes of it. */
  function rowsOf(study, drafts, section) {
    const [first, second] = drafts.map((draft) => linesOf(study, draft, section));
    const rows = first.map((line) => ({ prior: line.prior, cells: [line, null] }));
    let after = -1;
    for (const line of second ?? []) {
      const partner = line.prior === null ? -1 : rows.findIndex((row) => row.prior === line.prior && !row.cells[1]);
      if (partner >= 0) after = partner;
      else rows.splice((after += 1), 0, { prior: line.prior, cells: [null, null] });
      rows[after].cells[1] = line;
    }
    return rows;
  }

  // ── A study: the two or three columns ────────────────────────────────────

  const draftName = (study, draft) => `Draft ${draft.number}${draft.number === study.selected ? " ★" : ""}`;
  const placeId = (who, section, at) => `at-${who}-${section}-${at}`;

  /** Return the chips of the flags that concern a sentence of a draft. */
  function flagsAt(draft, section, at) {
    return draft.flags
      .filter((flag) => flag.section === section && flag.sentences.includes(at))
      .map((flag) => flagChip(flag.kind));
  }

  /** Return the chips of the flags of some drafts that concern a sentence of the prior. */
  function flagsAtPrior(drafts, section, at) {
    const about = (draft) =>
      draft.flags.filter((flag) => flag.prior_section === section && flag.prior_sentences.includes(at));
    return drafts.flatMap((draft) =>
      about(draft).map((flag) => flagChip(drafts.length > 1 ? `${flag.kind} (draft ${draft.number})` : flag.kind)),
    );
  }

  /** Return what a sentence adds to the change, as a bar and in words. */
  function shareMark(share) {
    if (!isNumber(share)) return null;
    const width = Math.min(1, Math.abs(share)) * 40;
    return el(
      "span",
      { class: "share" },
      svg(
        "svg",
        { viewBox: "0 0 40 6", width: 40, height: 6, "aria-hidden": "true" },
        svg("rect", { class: "track", width: 40, height: 6, rx: 2 }),
        svg("rect", { class: share < 0 ? "minus" : "plus", width, height: 6, rx: 2 }),
      ),
      `share ${percent(share)}`,
    );
  }

  /** Return the symbol and word of a kind of line. */
  function kindMark(kind) {
    const [symbol, word] = KINDS[kind] ?? ["·", "not compared"];
    return el(
      "span",
      { class: `kind ${kind ?? "plain"}` },
      el("span", { class: "symbol", "aria-hidden": "true" }, symbol),
      ` ${word}`,
    );
  }

  /** Return the name of a cell's report: seen where columns are stacked, and always said. */
  const cellName = (name) => el("span", { class: "cellname" }, name);

  /** Return the cell of a draft in a row. */
  function draftCell(draft, section, line) {
    if (!line || (line.kind === null && line.current === null)) return el("div", { class: "cell empty" });
    const kind = line.kind ?? "plain";
    const gone = line.current === null;
    const text = gone
      ? el("p", { class: "words faint" }, "not in this draft")
      : el("p", { class: "words" }, draft.report[section][line.current]);
    const distance =
      line.kind === "reworded" && isNumber(line.distance)
        ? el("span", { class: "faint" }, `distance ${number(line.distance)}`)
        : null;
    const marks = el(
      "p",
      { class: "marks" },
      kindMark(line.kind),
      shareMark(line.share),
      distance,
      gone ? null : flagsAt(draft, section, line.current),
    );
    return el(
      "div",
      {
        class: `cell ${kind}${gone ? " gone" : ""}`,
        id: gone ? null : placeId(draft.number, section, line.current),
        tabindex: gone ? null : -1,
      },
      cellName(`Draft ${draft.number}`),
      text,
      marks,
    );
  }

  /** Return the cell of the prior in a row. */
  function priorCell(study, drafts, section, row) {
    if (row.prior === null)
      return el("div", { class: "cell empty" }, el("p", { class: "words faint" }, "not in the prior"));
    const kind = (drafts.length === 1 && row.cells[0]?.kind) || "plain";
    const chips = flagsAtPrior(drafts, section, row.prior);
    return el(
      "div",
      { class: `cell prior ${kind}`, id: placeId("prior", section, row.prior), tabindex: -1 },
      cellName("Prior"),
      el("p", { class: "words" }, study.prior[section][row.prior] ?? ""),
      chips.length ? el("p", { class: "marks" }, chips) : null,
    );
  }

  /** Return a sentence for each report that lacks a section. */
  function lackWords(study, drafts, section) {
    const notes = [];
    if (!study.prior[section].length)
      notes.push(`The prior has no ${section}; this section is left out for all drafts.`);
    for (const draft of drafts) {
      if (!draft.report[section].length) notes.push(`Draft ${draft.number} has no ${section}.`);
    }
    return notes.map((note) => el("p", { class: "note" }, note));
  }

  /** Return one section: prior and drafts side by side. */
  function sectionRows(study, drafts, section) {
    const rows = rowsOf(study, drafts, section).map((row) =>
      el(
        "li",
        { class: "line" },
        priorCell(study, drafts, section, row),
        drafts.map((draft, at) => draftCell(draft, section, row.cells[at])),
      ),
    );
    return el(
      "section",
      { class: "part" },
      el("h4", {}, title(section)),
      lackWords(study, drafts, section),
      rows.length ? el("ol", {}, rows) : null,
    );
  }

  /** Return what stands outside the two sections, where there is something. */
  function otherText(study, drafts) {
    const texts = [study.prior.other, ...drafts.map((draft) => draft.report.other)];
    if (!texts.some(Boolean)) return null;
    return el(
      "section",
      { class: "part" },
      el("h4", {}, "Outside the two sections"),
      el(
        "div",
        { class: "line" },
        texts.map((text) => el("div", { class: "cell plain" }, el("p", { class: "words" }, text || "nothing"))),
      ),
    );
  }

  /** Return how many lines of each kind a draft has. */
  function legend(study, draft) {
    const lines = SECTIONS.flatMap((section) => draft.alignment[section] ?? []);
    const one = (kind) => el("li", {}, kindMark(kind), ` ${lines.filter((line) => line.kind === kind).length}`);
    return el(
      "ul",
      { class: "legend", "aria-label": `Lines of draft ${draft.number} beside the prior` },
      Object.keys(KINDS).map(one),
    );
  }

  /** Return the prior beside one draft or two. */
  function comparison(study, drafts) {
    const head = (name, note) => el("div", { class: "cell" }, el("h3", {}, name), note);
    const older = study.older_priors ? `and ${count(study.older_priors, "older one")} not shown` : "the report before";
    return el(
      "section",
      {
        class: `panel compare columns-${drafts.length + 1}`,
        id: "compare",
        role: "tabpanel",
        "aria-label": `The prior beside ${drafts.map((draft) => `draft ${draft.number}`).join(" and ")}`,
      },
      el(
        "div",
        { class: "line heads" },
        head("Prior", el("p", { class: "faint" }, older)),
        drafts.map((draft) => head(draftName(study, draft), legend(study, draft))),
      ),
      SECTIONS.map((section) => sectionRows(study, drafts, section)),
      otherText(study, drafts),
    );
  }

  // ── A study: flags, nearest, reference ───────────────────────────────────

  /** Return a button that leads to a sentence. */
  function jump(who, section, at, text) {
    const short = text.length > 72 ? `${text.slice(0, 70)}…` : text;
    const lead = () => {
      const target = byId(placeId(who, section, at));
      target?.focus();
      target?.scrollIntoView({ block: "center" });
    };
    return el(
      "button",
      { type: "button", class: "jump", click: lead },
      said("show "),
      `${who === "prior" ? "prior" : "draft"} ${section}: “${short}”`,
    );
  }

  /** Return one flag with its words and the way to its sentences. */
  function flagItem(study, draft, flag) {
    const text = (report, section, at) => report[section]?.[at];
    const here = flag.sentences.filter(
      (at) => typeof text(draft.report, flag.section, at) === "string" && Array.isArray(draft.report[flag.section]),
    );
    const there = flag.prior_sentences.filter(
      (at) => Array.isArray(study.prior[flag.prior_section]) && text(study.prior, flag.prior_section, at) !== undefined,
    );
    return el(
      "li",
      {},
      flagChip(flag.kind),
      flag.observation ? el("b", {}, ` ${flag.observation} `) : " ",
      el("span", {}, flag.detail),
      flag.section === "other" ? " (outside the two sections)" : null,
      el(
        "span",
        { class: "jumps" },
        here.map((at) => jump(draft.number, flag.section, at, text(draft.report, flag.section, at))),
        there.map((at) => jump("prior", flag.prior_section, at, text(study.prior, flag.prior_section, at))),
      ),
    );
  }

  /** Return the flags of the shown drafts as lists. */
  function flagPanel(study, drafts) {
    const list = (draft) => [
      el("h4", {}, `Draft ${draft.number}`),
      draft.flags.length
        ? el(
            "ul",
            { class: "flags" },
            draft.flags.map((flag) => flagItem(study, draft, flag)),
          )
        : el("p", { class: "note" }, "No flag: nothing that the rules look for was found."),
    ];
    return el("section", { class: "panel" }, el("h3", {}, "Flags"), drafts.map(list));
  }

  /** Return one training transition: prior → current. */
  function nearestItem(item) {
    const side = (name, sentences) =>
      el(
        "div",
        { class: "cell plain" },
        el("p", { class: "side" }, name),
        sentences.map((text) => el("p", { class: "words" }, text)),
      );
    const words =
      item.prior.length || item.current.length
        ? el(
            "div",
            { class: "change" },
            side("before", item.prior),
            el("span", { class: "arrow", "aria-hidden": "true" }, "→"),
            side("after", item.current),
          )
        : el("p", { class: "note" }, "The text of the bank is not shown here.");
    return el(
      "li",
      {},
      el(
        "p",
        { class: "marks" },
        el("b", {}, item.id),
        el("span", { class: "faint" }, `distance ${number(item.distance)}`),
      ),
      words,
    );
  }

  /** Return the training transitions nearest to a draft's change. */
  function nearestPanel(draft) {
    const part = (section) => {
      const items = draft.nearest[section] ?? [];
      return [
        el("h4", {}, title(section)),
        items.length
          ? el("ol", { class: "nearest" }, items.map(nearestItem))
          : el("p", { class: "note" }, "Nothing was compared in this section."),
      ];
    };
    return el(
      "section",
      { class: "panel" },
      el("h3", {}, `Nearest training transitions of draft ${draft.number}`),
      el(
        "p",
        { class: "faint" },
        "Real changes in the bank that are nearest to the change from the prior to this draft.",
      ),
      SECTIONS.map(part),
    );
  }

  /** Return the report that was really written, with scores; a sentence where there is none. */
  function referencePanel(study) {
    const head = el("h3", {}, "Reference report");
    const reference = study.reference;
    if (!reference)
      return el(
        "section",
        { class: "panel" },
        head,
        el("p", { class: "note" }, "There is no reference report for this study, so no score and no gain."),
      );
    const part = (section) => [
      el("h4", {}, title(section)),
      reference[section].length
        ? el("p", { class: "words" }, reference[section].join(" "))
        : el("p", { class: "note" }, `The reference has no ${section}.`),
    ];
    return el(
      "section",
      { class: "panel" },
      head,
      el("p", {}, gainWords(study)),
      SECTIONS.map(part),
      reference.other ? [el("h4", {}, "Outside the two sections"), el("p", { class: "words" }, reference.other)] : null,
    );
  }

  /** Return what the pick gains over a random one, in words. */
  function gainWords(study) {
    const picked = study.drafts.find((draft) => draft.number === study.selected);
    const average = mean(study.drafts.map((draft) => draft.score));
    const name = overview.score ?? "score";
    if (!isNumber(average)) return "No draft was scored, so there is no gain.";
    if (!picked || !isNumber(study.gain))
      return `${name}: the drafts' mean is ${number(average)}; there is no gain, because no draft is picked.`;
    return `${name}: the pick has ${number(picked.score)}, the drafts' mean is ${number(average)}, so the gain over a random pick is ${signed(study.gain)}.`;
  }

  // ── A study: distances as bars ───────────────────────────────────────────

  /** Return the groups of bars: {name, values, lacks, higher}. */
  function measures(study) {
    const parts = (section) => [...new Set(study.drafts.flatMap((draft) => Object.keys(draft.parts?.[section] ?? {})))];
    const inSection = (section) => [
      { name: title(section), section, values: study.drafts.map((draft) => draft.sections?.[section] ?? null) },
      ...parts(section).map((part) => ({
        name: `${title(section)}: ${part}`,
        part: true,
        section,
        values: study.drafts.map((draft) => draft.parts?.[section]?.[part] ?? null),
      })),
    ];
    const groups = [
      { name: "Total distance", values: study.drafts.map((draft) => draft.total) },
      ...SECTIONS.flatMap(inSection),
    ];
    if (study.drafts.some((draft) => isNumber(draft.score))) {
      groups.push({
        name: `Score ${overview.score ?? ""}`,
        higher: true,
        values: study.drafts.map((draft) => draft.score),
      });
    }
    return groups.filter((group) => group.values.some(isNumber));
  }

  /** Return one bar: the draft's number, the bar, the value. */
  function bar(study, group, draft, value, scale) {
    const picked = draft.number === study.selected;
    const lacks = group.section && draft.lacks.includes(group.section) ? " (lacks it)" : "";
    return el(
      "li",
      { class: `${picked ? "picked" : ""}${shownDrafts(study).includes(draft) ? " on" : ""}` },
      el(
        "span",
        { class: "who" },
        said("draft "),
        `${draft.number}`,
        picked ? el("span", {}, el("span", { "aria-hidden": "true" }, " ★"), said(" picked")) : null,
      ),
      svg(
        "svg",
        { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "track", width: 100, height: 10 }),
        isNumber(value) ? svg("rect", { class: "fill", width: (100 * Math.max(0, value)) / scale, height: 10 }) : null,
      ),
      el("span", { class: "value" }, number(value, "–") + lacks),
    );
  }

  /** Return one group of bars. */
  function barGroup(study, group) {
    const scale = Math.max(...group.values.filter(isNumber), 1e-9);
    return el(
      "section",
      { class: group.part ? "bars part-of" : "bars" },
      el("h4", {}, group.name, el("small", {}, group.higher ? " higher is better" : "")),
      el(
        "ol",
        {},
        study.drafts.map((draft, at) => bar(study, group, draft, group.values[at], scale)),
      ),
    );
  }

  /** Return all distances of all drafts. */
  function barPanel(study) {
    const groups = measures(study);
    const words = groups.length
      ? "To the nearest changes in the bank; lower is better. ★ is the pick."
      : "No distance was measured.";
    return el(
      "section",
      { class: "panel" },
      el("h3", {}, "Distances"),
      el("p", { class: "faint" }, words),
      el(
        "div",
        { class: "groups" },
        groups.map((group) => barGroup(study, group)),
      ),
    );
  }

  // ── A study: the map of transition space ─────────────────────────────────

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
        svg("text", { x, y: y + 4, "text-anchor": "middle" }, String(draft.number)),
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
    const missing = study.drafts.filter((_, at) => !here.drafts[at]).map((draft) => draft.number);
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
          study.drafts.map((draft, at) => row(`nearest to draft ${draft.number}`, here.nearest?.[at])),
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

  // ── A study: image, head, tabs ───────────────────────────────────────────

  /** Return the X-ray image, which arrives when it arrives; nothing where there is none. */
  function imagePanel(study) {
    if (!study.image) return null;
    const picture = el("img", { alt: `Chest X-ray of study ${study.id}` });
    const note = el("p", { class: "note" }, "The image is on its way.");
    loadImage(study)
      .then((address) => {
        picture.src = address;
        note.remove();
      })
      .catch((error) => {
        note.textContent = "The image could not be read.";
        if (error instanceof Refused) fail(error);
      });
    return el("section", { class: "panel image" }, el("h3", {}, "Image"), picture, note);
  }

  /** Return which draft was picked and by how much, or why none was. */
  function verdict(study) {
    if (study.selected === null) {
      const why = study.abstained === null ? "no reason is given" : (ABSTENTIONS[study.abstained] ?? study.abstained);
      return `No draft is picked: ${why}.`;
    }
    const chosen = `Draft ${study.selected} of ${study.drafts.length} is picked`;
    if (study.tied) return `${chosen}; another one is as near, and the first of equals is taken.`;
    return isNumber(study.margin)
      ? `${chosen}, ${number(study.margin)} nearer than the next.`
      : `${chosen}; there is no other to measure a margin against.`;
  }

  /** Return the numbers of a study as a list of terms. */
  function studyFacts(study) {
    const fact = (name, value, note) =>
      el(
        "div",
        {},
        el("dt", {}, name),
        el("dd", { class: value === "not measured" ? "faint" : null }, value),
        note ? el("dd", { class: "faint" }, note) : null,
      );
    return el(
      "dl",
      { class: "numbers" },
      fact("Margin", number(study.margin), "to the second best"),
      fact("p", number(study.p), "of the best draft; small is strange"),
      fact("Gain", signed(study.gain), overview.score ?? "no score"),
      fact("Drafts", String(study.drafts.length), study.tied ? "tied" : "not tied"),
    );
  }

  /** Return the links to the list and to the studies before and after. */
  function studyNav(study) {
    const at = shown.findIndex((row) => row.number === study.number);
    const link = (row, text, key) =>
      row
        ? el(
            "a",
            { class: "button", id: `go-${text}`, href: hashWith({ ...toStudy, study: row.number }) },
            text,
            el("kbd", {}, key),
          )
        : el("span", { class: "button off" }, text);
    const words = at < 0 ? "outside the filters" : `${at + 1} of ${shown.length}`;
    return el(
      "nav",
      { class: "studynav", "aria-label": "Studies" },
      el(
        "a",
        { class: "button", id: "go-list", href: hashWith({ ...toStudy, study: null }) },
        "← All studies",
        el("kbd", {}, "Esc"),
      ),
      el("span", { class: "faint" }, words),
      link(at < 0 ? null : shown[at - 1], "Previous", "k"),
      link(at < 0 ? null : shown[at + 1], "Next", "j"),
    );
  }

  /** Return the draft that the state asks for: else the pick, else the nearest. */
  function shownDraft(study) {
    const find = (test) => study.drafts.find(test);
    const asked = state.has("draft") ? Number(state.get("draft")) : study.selected;
    return (
      find((draft) => draft.number === asked) ??
      find((draft) => draft.number === study.selected) ??
      find((draft) => draft.rank === 0) ??
      study.drafts[0]
    );
  }

  /** Return the one or two drafts that are shown. */
  function shownDrafts(study) {
    const first = shownDraft(study);
    const second = state.has("with")
      ? study.drafts.find((draft) => draft.number === Number(state.get("with")))
      : undefined;
    return [first, second].filter((draft, at, all) => draft && all.indexOf(draft) === at);
  }

  /** Show a draft of the open study. */
  function chooseDraft(draft) {
    const other = state.get("with") === String(draft.number) ? null : state.get("with");
    go({ draft: draft.number === opened.selected ? null : draft.number, with: other });
    announce(`Draft ${draft.number}${draft.number === opened.selected ? ", the pick" : ""}`);
  }

  /** Return one tab. */
  function draftTab(study, draft, on) {
    const picked = draft.number === study.selected;
    return el(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${draft.number}`,
        "aria-selected": on,
        "aria-controls": "compare",
        tabindex: on ? 0 : -1,
        class: picked ? "picked" : "",
        click: () => chooseDraft(draft),
      },
      el(
        "span",
        { class: "tabname" },
        `Draft ${draft.number}`,
        picked ? el("span", { class: "star" }, " ★ picked") : null,
      ),
      el(
        "small",
        {},
        `${number(draft.total, "no distance")}${draft.flags.length ? ` · ⚑ ${count(draft.flags.length, "flag")}` : ""}`,
      ),
    );
  }

  /** Move between tabs with the arrow keys. */
  function tabKeys(event, study) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = study.drafts.indexOf(shownDraft(study));
    const next = study.drafts[(at + step + study.drafts.length) % study.drafts.length];
    chooseDraft(next);
    byId(`tab-${next.number}`)?.focus();
  }

  /** Return the choice of drafts: tabs, and what to compare with. */
  function chooser(study) {
    const [first, second] = shownDrafts(study);
    const others = study.drafts.filter((draft) => draft !== first);
    const option = (draft) =>
      el("option", { value: draft.number, selected: draft === second }, draftName(study, draft));
    return el(
      "div",
      { class: "chooser" },
      el(
        "div",
        { role: "tablist", "aria-label": "Drafts", keydown: (event) => tabKeys(event, study) },
        study.drafts.map((draft) => draftTab(study, draft, draft === first)),
      ),
      others.length
        ? el(
            "label",
            {},
            "Compare with ",
            el(
              "select",
              { id: "with", change: (event) => go({ with: event.target.value }) },
              el("option", { value: "" }, "nothing"),
              others.map(option),
            ),
          )
        : null,
    );
  }

  /** Draw the open study; the focus stays where it was. */
  function drawStudy(study) {
    const focus = document.activeElement?.id;
    const drafts = shownDrafts(study);
    const head = el(
      "header",
      { class: "studyhead" },
      studyNav(study),
      el("h2", { id: "study-title", tabindex: -1 }, `Study ${study.id}`),
      el("p", { class: "faint" }, study.patient === null ? "The patient is not named." : `Patient ${study.patient}`),
      el("p", { class: study.selected === null ? "verdict none" : "verdict" }, verdict(study)),
      studyFacts(study),
    );
    const first = drafts.length
      ? [chooser(study), comparison(study, drafts), flagPanel(study, drafts)]
      : [el("p", { class: "note" }, "There are no drafts."), priorOnly(study)];
    const measured = drafts.length ? [barPanel(study), mapPanel(study)] : null;
    byId("list").hidden = true;
    byId("study").hidden = false;
    byId("study").replaceChildren(
      head,
      el("div", { class: "main" }, first),
      el("aside", { class: "side-by", "aria-label": "Measures" }, imagePanel(study), measured),
      el("div", { class: "main" }, drafts.map(nearestPanel), referencePanel(study)),
    );
    if (focus) byId(focus)?.focus({ preventScroll: true });
  }

  /** Return the prior by itself. */
  function priorOnly(study) {
    const part = (section) => [
      el("h4", {}, title(section)),
      study.prior[section].length
        ? el("p", { class: "words" }, study.prior[section].join(" "))
        : el("p", { class: "note" }, `The prior has no ${section}.`),
    ];
    return el("section", { class: "panel" }, el("h3", {}, "Prior"), SECTIONS.map(part));
  }

  // ── Showing a state ──────────────────────────────────────────────────────

  /** Show what the state asks for. */
  async function show() {
    if (!overview) return;
    byId("token").hidden = true;
    findShown();
    if (!inStudy()) {
      const back = opened;
      showError("");
      drawList();
      if (back) focusRow(shown.findIndex((row) => row.number === back.number));
      return;
    }
    const wanted = Number(state.get("study"));
    if (opened && opened.number === wanted) {
      drawStudy(opened);
      return;
    }
    await openStudy(wanted);
  }

  /** Fetch a study and show it, unless another was asked for in the meantime. */
  async function openStudy(wanted) {
    const asked = state.get("study");
    let study;
    byId("content").setAttribute("aria-busy", "true");
    try {
      study = await loadStudy(wanted);
    } catch (error) {
      if (state.get("study") === asked && !(error instanceof Refused)) go({ ...toStudy, study: null });
      fail(error);
      return;
    } finally {
      byId("content").removeAttribute("aria-busy");
    }
    if (state.get("study") !== asked) return;
    showError("");
    cursor = wanted;
    opened = study;
    drawStudy(study);
    document.title = `Study ${study.id} · ${overview.title}`;
    window.scrollTo(0, 0);
    byId("study-title").focus({ preventScroll: true });
    announce(`Study ${study.id}. ${verdict(study)}`);
  }

  /** Draw what stands above every view. */
  function drawTop() {
    const { bank } = overview;
    byId("notice").textContent = overview.notice;
    byId("title").textContent = overview.title;
    byId("facts").textContent =
      `${count(overview.studies.length, "study", "studies")} · bank of ${count(bank.transitions, "transition")} from ${count(bank.patients, "patient")}`;
    const term = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
    byId("provenance").replaceChildren(
      term("Signature", overview.signature),
      term("Bank sha256", bank.sha256),
      term("Score of the gain", overview.score ?? "none: no references"),
    );
    byId("signature").hidden = false;
  }

  /** Load the overview and show the first state. */
  async function start() {
    readHash();
    byId("token").hidden = true;
    byId("facts").textContent = "The studies are on their way.";
    try {
      overview = await loadOverview();
      showError("");
      drawTop();
      drawKinds();
      await show();
    } catch (error) {
      fail(error);
    }
  }

  // ── Theme ────────────────────────────────────────────────────────────────

  const THEMES = ["system", "light", "dark"];

  /** Use a theme and say its name on the button. */
  function useTheme(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    byId("theme").textContent = `Theme: ${name}`;
  }

  /** Use the next theme, and keep it. */
  function nextTheme() {
    const now = document.documentElement.dataset.theme ?? "system";
    const name = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
    remember("localStorage", "tabon-theme", name);
    useTheme(name);
    announce(`Theme: ${name}`);
  }

  // ── Keys ─────────────────────────────────────────────────────────────────

  /** Go to the study before or after: in a study open it, in the list stand at it. */
  function step(by) {
    if (!inStudy()) {
      focusRow(place() < 0 ? 0 : place() + by);
      return;
    }
    const at = shown.findIndex((row) => row.number === Number(state.get("study")));
    const next = at < 0 ? undefined : shown[at + by];
    if (next) go({ ...toStudy, study: next.number }, { push: true });
    else announce(by > 0 ? "This is the last study." : "This is the first study.");
  }

  /** Compare the shown draft with the pick (or the pick with the second best), or stop. */
  function toggleCompare() {
    if (!opened || opened.drafts.length < 2) return;
    const [first, second] = shownDrafts(opened);
    const best = [...opened.drafts].sort((a, b) => a.rank - b.rank).find((draft) => draft !== first);
    const partner = opened.drafts.find((draft) => draft.number === opened.selected && draft !== first) ?? best;
    go({ with: second ? null : partner.number });
    announce(second ? "One draft" : `Compared with draft ${partner.number}`);
  }

  /** Go to the search field, which stands in the list. */
  function search() {
    if (inStudy()) go({ ...toStudy, study: null });
    byId("filters").open = true;
    byId("q").focus();
    byId("q").select();
  }

  /** Return to the list. */
  function leave() {
    if (inStudy()) go({ ...toStudy, study: null }, { push: true });
  }

  const ACTIONS = {
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => !inStudy() && step(1),
    ArrowUp: () => !inStudy() && step(-1),
    ArrowRight: () => inStudy() && step(1),
    ArrowLeft: () => inStudy() && step(-1),
    Escape: leave,
    c: toggleCompare,
    t: nextTheme,
    "/": search,
    "?": () => byId("help").showModal(),
  };

  /** Return whether a key belongs to what has the focus. */
  const isTyping = (node) => Boolean(node?.closest?.("input, select, textarea, [contenteditable], dialog"));

  /** Do what a key asks for; keys of fields, dialogs and the browser are left alone. */
  function onKey(event) {
    if (
      event.defaultPrevented ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      !overview ||
      isTyping(event.target) ||
      byId("help").open
    )
      return;
    if (!byId("token").hidden) return;
    readHash();
    const draft =
      /^[0-9]$/.test(event.key) && opened ? opened.drafts.find((one) => one.number === Number(event.key)) : undefined;
    if (!draft && !Object.hasOwn(ACTIONS, event.key)) return;
    if (event.key.startsWith("Arrow") && /Down|Up/.test(event.key) === inStudy()) return;
    event.preventDefault();
    if (draft) chooseDraft(draft);
    else ACTIONS[event.key]();
  }

  // ── Start ────────────────────────────────────────────────────────────────

  /** Connect what stands in the page from the beginning. */
  function connect() {
    const wide = window.matchMedia("(min-width: 60rem)");
    const openFilters = () => (byId("filters").open = wide.matches);
    openFilters();
    wide.addEventListener("change", openFilters);
    window.addEventListener("hashchange", () => {
      readHash();
      show();
    });
    document.addEventListener("keydown", onKey);
    byId("filter").addEventListener("input", readForm);
    byId("filter").addEventListener("submit", (event) => {
      event.preventDefault();
      focusRow(0);
    });
    byId("filter").addEventListener("reset", (event) => {
      event.preventDefault();
      go(Object.fromEntries([...FILTERS, "page"].map((key) => [key, null])));
      byId("q").focus();
    });
    byId("sort").addEventListener("change", (event) =>
      go({ sort: event.target.value === "number" ? null : event.target.value, page: null }),
    );
    byId("order").addEventListener("click", () => go({ desc: state.has("desc") ? null : "1", page: null }));
    byId("theme").addEventListener("click", nextTheme);
    byId("keys").addEventListener("click", () => byId("help").showModal());
    byId("help-close").addEventListener("click", () => byId("help").close());
    byId("skip").addEventListener("click", (event) => {
      event.preventDefault();
      byId("content").focus();
    });
    byId("token").addEventListener("submit", (event) => {
      event.preventDefault();
      token = byId("token-value").value.trim();
      byId("token-value").value = "";
      remember("sessionStorage", "tabon-token", token);
      start();
    });
  }

  const kept = recall("localStorage", "tabon-theme");
  useTheme(THEMES.includes(kept) ? kept : "system");
  connect();
  start();
})();
