/** Products as cards: facets, search, a tray of the chosen ones. At most so many are chosen, and 60 shown at first. */

import { find, setText } from "../lib/dom";

const SHOWN_AT_FIRST = 60;

/** Whether the text has all words of the search. */
export function matches(text: string, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const where = text.toLowerCase();
  return words.every((word) => where.includes(word));
}

/** Whether a card has a chosen value of each facet. A facet without a chosen value allows all cards.
 * `card`: values of each facet, separated by spaces. */
export function inFacets(card: Record<string, string | undefined>, chosen: Map<string, Set<string>>): boolean {
  return [...chosen].every(([facet, values]) => (card[facet] ?? "").split(" ").some((value) => values.has(value)));
}

function chosenFacets(form: HTMLFormElement): Map<string, Set<string>> {
  const chosen = new Map<string, Set<string>>();
  for (const box of form.querySelectorAll<HTMLInputElement>("input[data-facet]:checked")) {
    const facet = box.dataset.facet ?? "";
    chosen.set(facet, (chosen.get(facet) ?? new Set()).add(box.value));
  }
  return chosen;
}

function filter(form: HTMLFormElement, search: string, most: number): void {
  const facets = chosenFacets(form);
  let matching = 0;
  for (const group of form.querySelectorAll<HTMLFieldSetElement>(".bench-offers fieldset")) {
    const legend = group.querySelector("legend")?.textContent ?? "";
    let visible = 0;
    for (const card of group.querySelectorAll<HTMLElement>(".bench-offer")) {
      const isChosen = card.querySelector("input")?.checked ?? false;
      const isMatch = inFacets(card.dataset, facets) && matches(`${legend} ${card.textContent ?? ""}`, search);
      if (isMatch && !isChosen) matching += 1;
      card.hidden = !(isChosen || (isMatch && matching <= most));
      visible += card.hidden ? 0 : 1;
    }
    group.hidden = visible === 0;
  }
  const none = find("bench-none", HTMLElement);
  if (none) none.hidden = matching > 0;
  const more = find("bench-more", HTMLElement);
  if (more) more.hidden = matching <= most;
  if (matching > most) setText(more, `${matching - most} more`);
}

function showTray(boxes: HTMLInputElement[]): void {
  const tray = find("bench-tray", HTMLElement);
  const chosen = boxes.filter((box) => box.checked);
  if (!tray) return;
  tray.hidden = chosen.length === 0;
  tray.replaceChildren(
    ...chosen.map((box) => {
      const name = box.closest("label")?.querySelector(".bench-offer-name")?.textContent ?? box.value;
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "bench-pick";
      remove.textContent = `${name} ×`;
      remove.ariaLabel = `Remove ${name}`;
      remove.addEventListener("click", () => {
        box.click();
        box.focus();
      });
      const item = document.createElement("li");
      item.append(remove);
      return item;
    }),
  );
}

function showChosen(form: HTMLFormElement): void {
  const most = Number(form.dataset.most);
  const boxes = [...form.querySelectorAll<HTMLInputElement>("input[name=product]")];
  const chosen = boxes.filter((box) => box.checked).length;
  for (const box of boxes) box.disabled = !box.checked && chosen >= most;
  setText(find("bench-count", HTMLElement), `${chosen} of ${most}`);
  showTray(boxes);
}

export function initBenchPicker(): void {
  const form = document.querySelector<HTMLFormElement>(".bench-picker");
  if (!form) return;
  const search = find("bench-search", HTMLInputElement);
  const facets = find("bench-facets", HTMLElement);
  if (facets) facets.hidden = false;
  const refilter = (most = SHOWN_AT_FIRST) => filter(form, search?.value ?? "", most);
  search?.addEventListener("input", () => refilter());
  find("bench-more", HTMLElement)?.addEventListener("click", () => refilter(Number.POSITIVE_INFINITY));
  form.addEventListener("change", (event) => {
    if (event.target instanceof HTMLElement && event.target.dataset.facet) refilter();
    else showChosen(form);
  });
  showChosen(form);
  refilter();
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
