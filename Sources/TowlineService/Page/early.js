// Sets theme and language before the first paint, so that the page does not flash.
(() => {
  const read = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // Storage is disabled: use the system's setting.
    }
  };
  const theme = read("towline.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  const language = read("towline.language") || navigator.language || "en";
  document.documentElement.lang = language.toLowerCase().startsWith("zh") ? "zh-Hans" : "en";
})();
