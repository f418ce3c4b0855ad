/** Helpers for elements of the server's pages. */

import type { Check } from "./schema";

/** The element with this id; null if it is missing or of another type. */
export function find<T extends HTMLElement>(id: string, kind: new () => T): T | null {
  const element = document.getElementById(id);
  return element instanceof kind ? element : null;
}

/** The checked content of a json_script element; null if it is missing. */
export function readJson<T>(id: string, check: Check<T>): T | null {
  const text = document.getElementById(id)?.textContent;
  return text ? check(JSON.parse(text)) : null;
}

export function setText(element: Element | null, text: string): void {
  if (element && element.textContent !== text) element.textContent = text;
}

/** A message whose parts between backticks are code; the same as the tag `words` of the server's templates. */
export function messageNodes(text: string): (string | HTMLElement)[] {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text]; // a backtick without its pair is text
  return parts.map((part, place) => {
    if (place % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

/** Shows a problem on the page; an empty text hides it. */
export function showProblem(text: string): void {
  const box = find("page-problem", HTMLElement);
  if (!box) return;
  box.hidden = text === "";
  setText(box, text);
}
