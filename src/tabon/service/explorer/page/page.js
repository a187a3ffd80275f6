/*
 * The explorer page. It shows why a draft was picked and changes nothing.
 *
 * hash ─▶ state ─▶ list or study ─▶ elements        (data: inside the page, or from the service)
 *
 * The whole state stands in the hash, so a link shows what its sender saw. Text of reports reaches
 * the page as text nodes only. Lower is better for a distance, higher for a score.
 */

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
  const fact = (name, value) => el("div", {}, el("dt", {}, name), el("dd", {}, value));
  byId("provenance").replaceChildren(
    fact("Selector", overview.selector),
    fact("Signature", overview.signature),
    overview.beside ? fact("Second selector", overview.beside.selector) : "",
    overview.beside ? fact("Its signature", overview.beside.signature) : "",
    fact("Bank sha256", bank.sha256),
    fact("Score of the gain", overview.score ?? "none: no references"),
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

// ── Start ────────────────────────────────────────────────────────────────

/** Connect what stands in the page from the beginning. */
function connect() {
  const wide = window.matchMedia("(min-width: 60rem)");
  const openFilters = () => (byId("filters").open = byId("selectors").open = wide.matches);
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
    go(Object.fromEntries(FILTERS.map((key) => [key, null])));
    byId("q").focus();
  });
  byId("sort").addEventListener("change", (event) =>
    go({ sort: event.target.value === "number" ? null : event.target.value }),
  );
  byId("order").addEventListener("click", () => go({ desc: state.has("desc") ? null : "1" }));
  byId("spread-of").addEventListener("change", (event) => go({ spread: event.target.value }));
  window.addEventListener("scroll", () => requestAnimationFrame(() => drawRows()), { passive: true });
  window.addEventListener("resize", () => overview && !inStudy() && drawRows({ anew: true }));
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

useKeptTheme();
connectTerms(MEANINGS);
connect();
start();
