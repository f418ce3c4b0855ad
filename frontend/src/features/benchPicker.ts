/** The list of products: search by words, at most so many at a time. */

import { find, setText } from "../lib/dom";

/** Whether the text has all words of the search. */
export function matches(text: string, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const where = text.toLowerCase();
  return words.every((word) => where.includes(word));
}

function filter(form: HTMLFormElement, search: string): void {
  let shown = 0;
  for (const group of form.querySelectorAll("fieldset")) {
    const legend = group.querySelector("legend")?.textContent ?? "";
    const labels = [...group.querySelectorAll("label")];
    for (const label of labels) {
      const box = label.querySelector("input");
      label.hidden = !(box?.checked || matches(`${legend} ${label.textContent ?? ""}`, search));
    }
    const visible = labels.filter((label) => !label.hidden).length;
    group.hidden = visible === 0;
    shown += visible;
  }
  const none = find("bench-none", HTMLElement);
  if (none) none.hidden = shown > 0;
}

function limit(form: HTMLFormElement): void {
  const most = Number(form.dataset.most);
  const boxes = [...form.querySelectorAll<HTMLInputElement>("input[name=product]")];
  const chosen = boxes.filter((box) => box.checked).length;
  for (const box of boxes) box.disabled = !box.checked && chosen >= most;
  setText(find("bench-count", HTMLElement), `${chosen} of ${most}`);
}

export function initBenchPicker(): void {
  const form = document.querySelector<HTMLFormElement>(".bench-picker");
  if (!form) return;
  const search = find("bench-search", HTMLInputElement);
  search?.addEventListener("input", () => filter(form, search.value));
  form.addEventListener("change", () => limit(form));
  limit(form);
  const holder = form.closest("details");
  holder?.addEventListener("toggle", () => {
    if (holder.open) search?.focus();
  });
  holder?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    holder.open = false;
    holder.querySelector("summary")?.focus();
  });
}
