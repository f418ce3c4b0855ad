/** Actions on the selected runs of a list; Shift-click selects a range. */

import { find, setText } from "../lib/dom";

const PREFIX = "run:"; // of the values of the check boxes: the page of products side by side reads them too

export function initBulk(): void {
  const form = find("bulk", HTMLFormElement);
  const every = find("bulk-all", HTMLInputElement);
  const boxes = [...document.querySelectorAll<HTMLInputElement>(`input[name=product][value^="${PREFIX}"]`)];
  let last: HTMLInputElement | null = null;
  for (const box of boxes) {
    box.addEventListener("click", (event) => {
      if (event.shiftKey && last) check(between(boxes, last, box), box.checked);
      last = box;
    });
    box.addEventListener("change", () => paint(form, every, boxes));
  }
  every?.addEventListener("change", () => check(boxes, every.checked));
  form?.addEventListener("formdata", (event) => {
    for (const number of selected(boxes)) event.formData.append("run", number);
  });
  window.addEventListener("pageshow", () => paint(form, every, boxes)); // the browser restores check boxes
  paint(form, every, boxes);
}

/** Also tells other features of the page. */
function check(boxes: readonly HTMLInputElement[], checked: boolean): void {
  for (const box of boxes) {
    box.checked = checked;
    box.dispatchEvent(new Event("change"));
  }
}

/** All items from one to the other, in the order of the list. */
export function between<T>(all: readonly T[], from: T, to: T): readonly T[] {
  const [first = 0, last = 0] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  return all.slice(first, last + 1);
}

function selected(boxes: readonly HTMLInputElement[]): string[] {
  return boxes.filter((box) => box.checked).map((box) => box.value.slice(PREFIX.length));
}

function paint(form: HTMLFormElement | null, every: HTMLInputElement | null, boxes: readonly HTMLInputElement[]): void {
  const numbers = selected(boxes);
  if (every) {
    every.checked = numbers.length === boxes.length;
    every.indeterminate = numbers.length > 0 && !every.checked;
  }
  if (!form) return;
  form.hidden = numbers.length === 0;
  setText(form.querySelector("[data-bulk-count]"), `${numbers.length} selected`);
  const names = numbers.map((number) => `Run ${number}`).join(", ");
  for (const place of document.querySelectorAll("[data-bulk-names]")) setText(place, names);
}
