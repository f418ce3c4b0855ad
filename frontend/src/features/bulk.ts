/** Selected rows of a list: their number, and Shift-click for a range. Without a script the form works the same. */

import { find, setText } from "../lib/dom";

export function initBulk(): void {
  const form = find("bulk", HTMLFormElement);
  if (!form) return;
  let last: HTMLInputElement | null = null;
  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.form !== form || box.type !== "checkbox") return;
    if (box.id === "bulk-all") selectAll(form, box.checked);
    else if (event.shiftKey && last) selectRange(boxes(form), last, box);
    last = box.id === "bulk-all" ? null : box;
    paint(form);
  });
  window.addEventListener("pageshow", () => paint(form)); // the browser restores check boxes when one goes back
  paint(form);
}

function boxes(form: HTMLFormElement): HTMLInputElement[] {
  return [...form.elements].filter(
    (each): each is HTMLInputElement => each instanceof HTMLInputElement && each.name === "run",
  );
}

function selectAll(form: HTMLFormElement, checked: boolean): void {
  for (const box of boxes(form)) box.checked = checked;
}

/** All rows between two, in the state of the second one. */
export function selectRange(all: readonly HTMLInputElement[], from: HTMLInputElement, to: HTMLInputElement): void {
  const [first, last] = [all.indexOf(from), all.indexOf(to)].sort((a, b) => a - b);
  for (const box of all.slice(first, (last ?? 0) + 1)) box.checked = to.checked;
}

function paint(form: HTMLFormElement): void {
  const all = boxes(form);
  const selected = all.filter((box) => box.checked);
  form.classList.toggle("is-empty", selected.length === 0);
  setText(form.querySelector("[data-bulk-count]"), `${selected.length} selected`);
  for (const button of form.querySelectorAll("button")) button.disabled = selected.length === 0;
  const query = new URLSearchParams(selected.map((box) => ["run", box.value]));
  for (const link of form.querySelectorAll<HTMLAnchorElement>("[data-bulk-address]")) {
    link.href = `${link.dataset.bulkAddress}?${query}`;
  }
  const names = selected.map((box) => `Run ${box.value}`).join(", ");
  for (const place of document.querySelectorAll("[data-bulk-names]")) setText(place, names);
  const every = find("bulk-all", HTMLInputElement);
  if (!every) return;
  every.checked = selected.length === all.length;
  every.indeterminate = selected.length > 0 && selected.length < all.length;
}
