// The theme: the system's, light or dark.

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

/** Use the theme that was kept, if one was. */
function useKeptTheme() {
  const kept = recall("localStorage", "tabon-theme");
  useTheme(THEMES.includes(kept) ? kept : "system");
}
