/** Loaded in the head, before anything is painted, as a classic script: no flash of the wrong theme. It imports nothing. */

(() => {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("sweetspot-theme");
  } catch {
    kept = null; // storage is switched off in this browser
  }
  const dark = kept === "dark" || (kept !== "light" && window.matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
})();
