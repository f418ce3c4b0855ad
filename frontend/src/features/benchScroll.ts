/** All tables of the page have the same columns, so they scroll sideways together. A cue says that there are more. */

export function initBenchScroll(): void {
  const boxes = [...document.querySelectorAll<HTMLElement>(".bench-scroll")];
  const first = boxes[0];
  if (!first) return;
  const cue = (): void => {
    const more = first.scrollLeft + first.clientWidth < first.scrollWidth - 1;
    first.closest(".bench")?.toggleAttribute("data-more", more);
    for (const box of boxes) {
      if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    }
  };
  for (const box of boxes) {
    box.addEventListener("scroll", () => {
      for (const other of boxes) if (other.scrollLeft !== box.scrollLeft) other.scrollLeft = box.scrollLeft;
      cue();
    });
  }
  new ResizeObserver(cue).observe(first);
}
