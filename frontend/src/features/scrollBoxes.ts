/** Tables that are larger than their box can be scrolled with keys, and say what they are. */

const BOXES = ".table-scroll:not([role=region])"; // those are named by the server, whatever their size

export function initScrollBoxes(): void {
  // The page's height changes with its width, and with most of what is put into it later.
  new ResizeObserver(() => document.querySelectorAll<HTMLElement>(BOXES).forEach(mark)).observe(document.body);
}

function mark(box: HTMLElement): void {
  const scrolls = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
  if (scrolls === box.hasAttribute("tabindex")) return;
  if (scrolls) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", nameOf(box));
  } else {
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }
}

/** The table's caption, else what stands above it. */
function nameOf(box: HTMLElement): string {
  const part = box.closest("details, section, .card, main");
  const title = box.querySelector("caption") ?? part?.querySelector("summary, h1, h2, h3");
  return title?.textContent?.trim().replace(/\s+/g, " ") || document.title;
}
