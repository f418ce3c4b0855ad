/** Folds the sections of a long page on narrow screens, except those with `data-fold="open"`. Sections with
    `data-fold="closed"` stay as the server made them. A link to a section opens it. */

const NARROW = "(max-width: 767.98px)";

/** The section that contains the element with this id, such as its heading. */
function sectionOf(address: string): HTMLDetailsElement | null {
  const id = decodeURIComponent(address.replace(/^#/, ""));
  return id === "" ? null : (document.getElementById(id)?.closest<HTMLDetailsElement>("details[data-fold]") ?? null);
}

function open(address: string): void {
  const section = sectionOf(address);
  if (!section || section.open) return;
  section.open = true;
  section.scrollIntoView();
}

export function initFold(): void {
  const sections = [...document.querySelectorAll<HTMLDetailsElement>("details[data-fold]")];
  if (sections.length === 0) return;
  const narrow = matchMedia(NARROW);
  const fold = (): void => {
    for (const section of sections) {
      if (section.dataset.fold !== "closed") section.open = !narrow.matches || section.dataset.fold === "open";
    }
    open(location.hash);
  };
  fold();
  narrow.addEventListener("change", fold);
  window.addEventListener("beforeprint", () => {
    for (const section of sections) section.open = true;
  });
  window.addEventListener("hashchange", () => open(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("a[href^='#']") : null;
    if (link) open(link.hash);
  });
}
