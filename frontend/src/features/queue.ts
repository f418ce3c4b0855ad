/** Replaces the queue's tables by the server's newest ones and keeps the focus on its button. */

import { showProblem } from "../lib/dom";
import { startPolling } from "../lib/poll";
import { paintTimes } from "./page";

export function initQueue(): void {
  const shown = document.getElementById("queue");
  if (!shown) return;
  focusNamed();
  startPolling({
    visibleMs: 3000,
    hiddenMs: 60_000,
    exchange: async (signal) => {
      const response = await fetch(window.location.pathname, { signal });
      if (response.redirected) throw new Error("You are logged out. Reload the page to log in.");
      if (!response.ok) throw new Error(`The server answered ${response.status}.`);
      replace(shown, new DOMParser().parseFromString(await response.text(), "text/html"));
      showProblem("");
      return "later";
    },
    failed: (error) =>
      showProblem(`Not up to date: ${error instanceof Error ? error.message : "unknown"} Trying again.`),
  });
}

/** After a move, the address of the page contains the button's name. */
function focusNamed(): void {
  const button = document.getElementById(window.location.hash.slice(1));
  if (button instanceof HTMLButtonElement && !button.disabled) button.focus();
}

/** Does not update the page while a dialog is open, so that its question does not change. */
function replace(shown: HTMLElement, fresh: Document): void {
  const found = fresh.getElementById("queue");
  const known = new Set([...document.querySelectorAll("dialog")].map((dialog) => dialog.id));
  if (!found || document.querySelector("dialog[open]") || sameText(shown, found)) return;
  const focused = shown.contains(document.activeElement) ? document.activeElement?.id : "";
  shown.replaceChildren(...found.childNodes);
  for (const dialog of fresh.querySelectorAll("dialog")) {
    if (!known.has(dialog.id)) document.getElementById("main")?.append(dialog);
  }
  if (focused) document.getElementById(focused)?.focus();
  paintTimes();
}

/** One page has relative times and the other absolute ones, so compare them by their machine-readable value. */
function sameText(one: Element, other: Element): boolean {
  return plain(one) === plain(other);
}

function plain(element: Element): string {
  const copy = element.cloneNode(true) as Element;
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  for (const token of copy.querySelectorAll("input[name=csrfmiddlewaretoken]")) token.remove();
  return copy.innerHTML.replace(/\s+/g, " ");
}
