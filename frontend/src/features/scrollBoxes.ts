/** Makes scrollable tables reachable with the keyboard, with a label; and shows that there is more to the right. */

const BOXES = ".table-scroll";
const UNLABELLED = ".table-scroll:not([role=region])"; // the server labels the others

export function initScrollBoxes(): void {
  // The page's height changes with its width and with later content.
  new ResizeObserver(() => {
    document.querySelectorAll<HTMLElement>(BOXES).forEach(cue);
    document.querySelectorAll<HTMLElement>(UNLABELLED).forEach(mark);
  }).observe(document.body);
  const scrolled = (event: Event): void => {
    if (event.target instanceof HTMLElement && event.target.matches(BOXES)) cue(event.target);
  };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true }); // it does not bubble
}

/** For the style sheet: `data-fits` if no column is hidden; `data-more` if columns to the right are, and the box does
 * not also scroll down, which shows scrollbars. */
function cue(box: HTMLElement): void {
  const hidden = box.scrollWidth - box.clientWidth;
  box.toggleAttribute("data-fits", hidden <= 1);
  box.toggleAttribute("data-more", hidden - box.scrollLeft > 1 && box.scrollHeight - box.clientHeight <= 1);
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
