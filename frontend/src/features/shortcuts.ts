/** Keys of every page: `/` the search box, Ctrl-K the command palette, `?` the list of keys, `g` and a letter a page,
 * `j` and `k` the next and previous row of a list. */

import { find } from "../lib/dom";
import { openPalette } from "./palette";

const PAGES: Readonly<Record<string, string>> = {
  o: "Overview",
  b: "Bench",
  k: "Rankings",
  e: "Explore",
  t: "Trends",
  r: "Runs",
  q: "Queue",
  s: "Schedules",
  p: "Plans",
  h: "Hosts",
  d: "Results",
  i: "Imports",
};
const SECOND_KEY_MS = 1500;
let goUntil = 0; // ms: until then, a letter names a page

export function initShortcuts(): void {
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event);
    if (!action || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    action();
  });
}

function actionOf(event: KeyboardEvent): (() => void) | undefined {
  if (event.altKey) return undefined;
  const command = event.ctrlKey || event.metaKey;
  if (command) return event.key.toLowerCase() === "k" && !event.shiftKey ? openPalette : undefined;
  if (isTyping(event.target)) return undefined;
  const page = performance.now() < goUntil ? PAGES[event.key] : undefined;
  goUntil = 0;
  if (page) return () => go(page);
  const keys: Readonly<Record<string, () => void>> = {
    "/": selectSearch,
    "?": openKeys,
    g: () => {
      goUntil = performance.now() + SECOND_KEY_MS;
    },
    j: () => moveRow(1),
    k: () => moveRow(-1),
  };
  return keys[event.key];
}

function isTyping(at: EventTarget | null): boolean {
  const box = "input:not([type=checkbox], [type=radio]), textarea, select";
  return at instanceof HTMLElement && (at.isContentEditable || at.closest(box) !== null);
}

function go(page: string): void {
  const links = [...document.querySelectorAll<HTMLAnchorElement>("#palette-pages a")];
  const link = links.find((each) => each.textContent?.trim() === page);
  if (link) window.location.assign(link.href);
}

/** Focuses the link of the next visible row, the one with `data-row` or the first; Enter opens it. */
function moveRow(step: number): void {
  const rows = [
    ...document.querySelectorAll<HTMLElement>("main tbody tr, main .drive-tiles > a, main .trend-grid > a"),
  ];
  const links = rows
    .map((row) =>
      row instanceof HTMLAnchorElement
        ? row
        : (row.querySelector<HTMLAnchorElement>("a[data-row]") ?? row.querySelector<HTMLAnchorElement>("a[href]")),
    )
    .filter((link) => link !== null)
    .filter((link) => link.checkVisibility());
  const focused = document.activeElement;
  const row = focused instanceof HTMLElement ? focused.closest("tr, .card") : null;
  const current = links.findIndex((link) => link === focused || (row !== null && row.contains(link)));
  const next = links[current < 0 ? (step > 0 ? 0 : links.length - 1) : current + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function selectSearch(): void {
  const box = find("search", HTMLInputElement);
  box?.focus();
  box?.select();
}

function openKeys(): void {
  find("keys", HTMLDialogElement)?.showModal();
}
