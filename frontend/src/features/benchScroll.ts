/** Tables with a column for each product scroll sideways together. */

export function initBenchScroll(): void {
  const boxes = [...document.querySelectorAll<HTMLElement>(".bench-scroll")];
  for (const box of boxes) {
    box.addEventListener("scroll", () => {
      for (const other of boxes) if (other.scrollLeft !== box.scrollLeft) other.scrollLeft = box.scrollLeft;
    });
  }
  const observer = new ResizeObserver(() => {
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    }
  });
  for (const box of boxes) observer.observe(box);
}
