/** A classic script in the head that sets the theme before the first paint, so that no wrong theme flashes. It has no imports. */

(() => {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("sweetspot-theme");
  } catch {
    kept = null; // storage is disabled in this browser
  }
  const dark = kept === "dark" || (kept !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
})();
