/** The command palette (Ctrl-K): pages and actions at once, hosts, drives, plans and runs from the server. */

import { searchHits } from "#payloads/search";
import { find, setText } from "../lib/dom";
import { fetchJson } from "../lib/poll";

export interface Entry {
  readonly group: string;
  readonly title: string;
  readonly detail: string;
  readonly address: string;
}

const WAIT_MS = 150; // after the last key, before the server is asked
const LIMIT_MS = 10_000;

let entries: readonly Entry[] = [];
let chosen = 0;
let asked: AbortController | null = null;
let timer = 0;
let isComplete = true; // false while the server's hits are missing
let opensFirst = false; // Enter was pressed meanwhile

export function openPalette(): void {
  const dialog = find("palette", HTMLDialogElement);
  const input = find("palette-input", HTMLInputElement);
  if (!dialog || !input) return;
  input.value = "";
  isComplete = true;
  dialog.showModal();
  show(matching(pages(), ""));
}

export function initPalette(): void {
  const input = find("palette-input", HTMLInputElement);
  const list = find("palette-list", HTMLUListElement);
  if (!input || !list) return;
  for (const button of document.querySelectorAll("[data-palette]")) button.addEventListener("click", openPalette);
  input.addEventListener("input", () => search(input));
  input.addEventListener("keydown", (event) => key(event));
  list.addEventListener("click", (event) => {
    const option = event.target instanceof Element ? event.target.closest("[role=option]") : null;
    if (option) open([...list.querySelectorAll("[role=option]")].indexOf(option));
  });
}

/** Links of the bar and the menu, and the links at the head of the page. */
function pages(): Entry[] {
  const links: [string, string][] = [
    ["This page", ".page-head .actions a[href]"],
    ["Pages", "#palette-pages a, .person-menu a"],
  ];
  return links.flatMap(([group, selector]) =>
    [...document.querySelectorAll<HTMLAnchorElement>(selector)].map((link) => ({
      group,
      title: link.textContent?.trim() ?? "",
      detail: "",
      address: link.href,
    })),
  );
}

/** Entries whose title contains every word, in any order and case. */
export function matching(all: readonly Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((entry) => words.every((word) => entry.title.toLowerCase().includes(word)));
}

/** Exact matches and actions of the server come before pages, its other hits after them. */
export function merged(links: readonly Entry[], hits: readonly Entry[]): Entry[] {
  const isFirst = (hit: Entry): boolean => hit.group === "Exact match" || hit.group === "Action";
  return [...hits.filter(isFirst), ...links, ...hits.filter((hit) => !isFirst(hit))];
}

function search(input: HTMLInputElement): void {
  const text = input.value.trim();
  show(matching(pages(), text));
  window.clearTimeout(timer);
  asked?.abort();
  isComplete = text === "";
  opensFirst = false;
  if (text !== "") timer = window.setTimeout(() => void ask(text), WAIT_MS);
}

async function ask(text: string): Promise<void> {
  const url = find("palette", HTMLDialogElement)?.dataset.url ?? "";
  asked = new AbortController();
  const { signal } = asked;
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)]);
    const { hits } = searchHits(await fetchJson(`${url}?q=${encodeURIComponent(text)}`, limited));
    show(merged(matching(pages(), text), hits));
  } catch (error) {
    if (!signal.aborted) setText(status(), error instanceof Error ? error.message : "The search failed.");
  }
  if (signal.aborted) return;
  isComplete = true;
  if (opensFirst) open(0);
}

function show(found: readonly Entry[]): void {
  entries = found;
  find("palette-list", HTMLUListElement)?.replaceChildren(...found.map(option));
  choose(0);
  setText(status(), found.length ? `${found.length} found` : "Nothing found.");
}

function option(entry: Entry, index: number): HTMLLIElement {
  const item = document.createElement("li");
  item.id = `palette-${index}`;
  item.role = "option";
  const title = document.createElement("span");
  title.textContent = entry.title;
  const detail = document.createElement("span");
  detail.className = "palette-detail";
  detail.textContent = [entry.group, entry.detail].filter(Boolean).join(" · ");
  item.append(title, " ", detail);
  return item;
}

function choose(index: number): void {
  chosen = Math.max(0, Math.min(entries.length - 1, index));
  const options = [...document.querySelectorAll<HTMLElement>("#palette-list [role=option]")];
  options.forEach((each, place) => {
    each.setAttribute("aria-selected", String(place === chosen));
  });
  const current = options[chosen];
  current?.scrollIntoView({ block: "nearest" });
  const input = find("palette-input", HTMLInputElement);
  if (current) input?.setAttribute("aria-activedescendant", current.id);
  else input?.removeAttribute("aria-activedescendant");
}

function key(event: KeyboardEvent): void {
  const moves: Readonly<Record<string, number>> = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 };
  const next = moves[event.key];
  if (next === undefined && event.key !== "Enter") return;
  event.preventDefault();
  if (next !== undefined) choose(next);
  else if (isComplete || chosen > 0) open(chosen);
  else opensFirst = true;
}

function open(index: number): void {
  const entry = entries[index];
  if (entry) window.location.assign(entry.address);
}

function status(): HTMLElement | null {
  return find("palette-status", HTMLElement);
}
