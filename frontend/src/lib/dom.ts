/** Small helpers around elements of the server's pages. */

import type { Check } from "./schema";

/** The element of this id, or null where the page does not have it or it is something else. */
export function find<T extends HTMLElement>(id: string, kind: new () => T): T | null {
  const element = document.getElementById(id);
  return element instanceof kind ? element : null;
}

/** The checked content of a json_script element; null where the page does not have it. */
export function readJson<T>(id: string, check: Check<T>): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? check(JSON.parse(text)) : null;
}

export function setText(element: Element | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}

/** Says in words, on the page, that something went wrong; an empty text takes it away. */
export function showProblem(text: string): void {
  const box = find("page-problem", HTMLElement);
  if (!box) return;
  box.hidden = text === "";
  setText(box, text);
}
