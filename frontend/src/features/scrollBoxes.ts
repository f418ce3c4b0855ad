/** Makes scrollable tables reachable with the keyboard, with a label. */

const BOXES = ".table-scroll:not([role=region])"; // the server labels those

export function initScrollBoxes(): void {
  // The page's height changes with its width and with later content.
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

/** The table's caption, else the heading above it. */
function nameOf(box: HTMLElement): string {
  const part = box.closest("details, section, .card, main");
  const title = box.querySelector("caption") ?? part?.querySelector("summary, h1, h2, h3");
  return title?.textContent?.trim().replace(/\s+/g, " ") || document.title;
}
