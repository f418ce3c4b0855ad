/** All tables of the page have the same columns, so they scroll sideways together. */

export function initBenchScroll(): void {
  const boxes = [...document.querySelectorAll<HTMLElement>(".bench-scroll")];
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    box.addEventListener("scroll", () => {
      for (const other of boxes) if (other.scrollLeft !== box.scrollLeft) other.scrollLeft = box.scrollLeft;
    });
  }
}
