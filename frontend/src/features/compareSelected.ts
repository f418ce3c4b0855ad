/** Rows of a table with a check box each: two to eight of them can be compared side by side. */

import { find, setText } from "../lib/dom";

const MIN = 2;
const MAX = 8;

/** What the button needs; "" if so many rows can be compared. */
export function needed(count: number): string {
  if (count > MAX) return `${count} selected; at most ${MAX} fit side by side.`;
  if (count === 0) return `Select ${MIN} to ${MAX} rows.`;
  return count < MIN ? "1 selected; select at least one more." : "";
}

export function initCompareSelected(): void {
  const form = find("compare-selected", HTMLFormElement);
  const button = form?.querySelector("button");
  if (!form || !button) return;
  const boxes = [...form.elements].filter((each) => each instanceof HTMLInputElement);
  const update = (): void => {
    const count = boxes.filter((box) => box.checked).length;
    button.disabled = needed(count) !== "";
    setText(form.querySelector("[role=status]"), needed(count) || `${count} selected`);
  };
  for (const box of boxes) box.addEventListener("change", update);
  window.addEventListener("pageshow", update); // the browser restores the boxes when the person comes back
  update();
}
