/** Products as cards: facets, search, a tray of the chosen ones, and how many workloads each shares with them. At most
 * so many are chosen, and 60 shown at first. */

import { shares } from "#payloads/bench";
import { find, setText } from "../lib/dom";
import { fetchJson } from "../lib/poll";

const SHOWN_AT_FIRST = 60;
const LIMIT_MS = 10_000;

type Chosen = ReadonlyMap<string, ReadonlySet<string>>; // levels by facet

interface Card {
  readonly label: HTMLElement;
  readonly box: HTMLInputElement;
  readonly levels: ReadonlySet<string>;
  readonly text: string; // that is searched
}

/** Whether the text has all words of the search. */
export function matches(text: string, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const where = text.toLowerCase();
  return words.every((word) => where.includes(word));
}

/** Whether a card has a chosen level of each facet, except of one that is left out. A facet without a chosen level
 * allows all cards. */
export function inFacets(levels: ReadonlySet<string>, chosen: Chosen, leftOut = ""): boolean {
  return [...chosen].every(([facet, ofFacet]) => facet === leftOut || [...ofFacet].some((level) => levels.has(level)));
}

function facetBoxes(form: HTMLFormElement): HTMLInputElement[] {
  return [...form.querySelectorAll<HTMLInputElement>("input[data-facet]")];
}

/** As on a card. */
function levelOf(box: HTMLInputElement): string {
  return `${box.dataset.facet}:${box.value}`;
}

function chosenLevels(form: HTMLFormElement): Chosen {
  const chosen = new Map<string, Set<string>>();
  for (const box of facetBoxes(form).filter((each) => each.checked)) {
    const facet = box.dataset.facet ?? "";
    chosen.set(facet, (chosen.get(facet) ?? new Set()).add(levelOf(box)));
  }
  return chosen;
}

function cardsOf(group: HTMLFieldSetElement): Card[] {
  const legend = group.querySelector("legend")?.textContent ?? "";
  return [...group.querySelectorAll<HTMLElement>(".bench-offer")].flatMap((label) => {
    const box = label.querySelector("input");
    const names = [".bench-offer-name", ".muted"].map((part) => label.querySelector(part)?.textContent ?? "");
    const levels = new Set((label.dataset.levels ?? "").split("\n"));
    return box ? [{ label, box, levels, text: [legend, ...names].join(" ") }] : [];
  });
}

function filter(form: HTMLFormElement, groups: Map<HTMLFieldSetElement, Card[]>, search: string, most: number): void {
  const chosen = chosenLevels(form);
  let matching = 0;
  for (const group of form.querySelectorAll<HTMLFieldSetElement>(".bench-offers fieldset")) {
    let visible = 0;
    for (const { label, box, levels, text } of inPageOrder(groups.get(group) ?? [])) {
      const isMatch = inFacets(levels, chosen) && matches(text, search);
      if (isMatch && !box.checked) matching += 1;
      label.hidden = !(box.checked || (isMatch && matching <= most));
      visible += label.hidden ? 0 : 1;
    }
    group.hidden = visible === 0;
  }
  countLevels(form, [...groups.values()].flat(), chosen, search);
  const none = find("bench-none", HTMLElement);
  if (none) none.hidden = matching > 0;
  const more = find("bench-more", HTMLElement);
  if (more) more.hidden = matching <= most;
  if (matching > most) setText(more, `${matching - most} more`);
}

function inPageOrder(cards: Card[]): Card[] {
  return cards.toSorted((a, b) =>
    a.label.compareDocumentPosition(b.label) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1,
  );
}

/** Each level says how many cards it would show together with the search and the other facets. */
function countLevels(form: HTMLFormElement, cards: Card[], chosen: Chosen, search: string): void {
  const found = cards.filter(({ text }) => matches(text, search));
  for (const box of facetBoxes(form)) {
    const count = found.filter(
      ({ levels }) => levels.has(levelOf(box)) && inFacets(levels, chosen, box.dataset.facet),
    ).length;
    setText(box.parentElement?.querySelector(".num") ?? null, String(count));
    box.disabled = count === 0 && !box.checked;
  }
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
      remove.className = "choice-chip";
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

function showChosen(form: HTMLFormElement, boxes: HTMLInputElement[]): void {
  const most = Number(form.dataset.most);
  const chosen = boxes.filter((box) => box.checked).length;
  for (const box of boxes) box.disabled = !box.checked && chosen >= most;
  setText(find("bench-count", HTMLElement), `${chosen} of ${most}`);
  showTray(boxes);
}

/** Writes on each card what it shares. Chosen cards are first, and cards and groups that share nothing are last. */
function showShares(groups: Map<HTMLFieldSetElement, Card[]>, texts: ReadonlyMap<string, [number, string]>): void {
  const share = ({ box }: Card): number => (box.checked ? Number.MAX_VALUE : (texts.get(box.value)?.[0] ?? 0));
  for (const [group, cards] of groups) {
    for (const card of cards) {
      const [count, text] = texts.get(card.box.value) ?? [null, ""];
      setText(card.label.querySelector(".bench-offer-share"), text);
      card.label.classList.toggle("is-apart", count === 0 && !card.box.checked);
    }
    group.append(...cards.toSorted((a, b) => share(b) - share(a)).map(({ label }) => label));
  }
  const isApart = (cards: Card[]): number => Number(texts.size > 0 && !cards.some(share));
  const ordered = [...groups].toSorted(([, a], [, b]) => isApart(a) - isApart(b)).map(([group]) => group);
  ordered[0]?.parentElement?.prepend(...ordered);
}

export function initBenchPicker(): void {
  const form = document.querySelector<HTMLFormElement>(".bench-picker");
  if (!form) return;
  const search = find("bench-search", HTMLInputElement);
  const facets = find("bench-facets", HTMLElement);
  if (facets) facets.hidden = false;
  const fieldsets = [...form.querySelectorAll<HTMLFieldSetElement>(".bench-offers fieldset")];
  const groups = new Map(fieldsets.map((group) => [group, cardsOf(group)]));
  const boxes = [...groups.values()].flat().map(({ box }) => box);
  const refilter = (most = SHOWN_AT_FIRST) => filter(form, groups, search?.value ?? "", most);
  let asked: AbortController | null = null;
  const askShares = async (): Promise<void> => {
    asked?.abort();
    asked = new AbortController();
    const products = boxes.filter((box) => box.checked).map((box) => ["product", box.value]);
    const { signal } = asked;
    const texts = new Map<string, [number, string]>();
    try {
      const address = `${form.dataset.shares}?${new URLSearchParams(products)}`;
      const known =
        products.length > 0
          ? shares(await fetchJson(address, AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]))).shares
          : [];
      for (const { product, count, text } of known) texts.set(product, [count, text]);
    } catch {
      if (signal.aborted) return; // else the cards say nothing
    }
    const focused = document.activeElement;
    showShares(groups, texts);
    if (focused instanceof HTMLElement && form.contains(focused)) focused.focus({ preventScroll: true });
    refilter();
  };
  search?.addEventListener("input", () => refilter());
  find("bench-more", HTMLElement)?.addEventListener("click", () => refilter(Number.POSITIVE_INFINITY));
  form.addEventListener("change", (event) => {
    if (event.target instanceof HTMLElement && event.target.dataset.facet) return refilter();
    showChosen(form, boxes);
    void askShares();
  });
  showChosen(form, boxes);
  refilter();
  const holder = form.closest("details");
  holder?.addEventListener("toggle", () => {
    if (!holder.open) return;
    search?.focus();
    void askShares();
  });
  holder?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    holder.open = false;
    holder.querySelector("summary")?.focus();
  });
}
