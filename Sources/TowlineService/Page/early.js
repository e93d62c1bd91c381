// Runs before the first paint, so that a chosen theme or language never flashes into place afterwards.
(() => {
  const read = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // Storage is switched off: the system's choice stands.
    }
  };
  const theme = read("towline.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  const language = read("towline.language") || navigator.language || "en";
  document.documentElement.lang = language.toLowerCase().startsWith("zh") ? "zh-Hans" : "en";
})();
