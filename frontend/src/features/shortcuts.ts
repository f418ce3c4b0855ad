/** Keys of every page: `/` the search box, Ctrl-K the command palette, `?` the list of keys. */

import { find } from "../lib/dom";
import { openPalette } from "./palette";

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
  return { "/": selectSearch, "?": openKeys }[event.key];
}

function isTyping(at: EventTarget | null): boolean {
  return at instanceof HTMLElement && (at.isContentEditable || at.closest("input, textarea, select") !== null);
}

function selectSearch(): void {
  const box = find("search", HTMLInputElement);
  box?.focus();
  box?.select();
}

function openKeys(): void {
  find("keys", HTMLDialogElement)?.showModal();
}
