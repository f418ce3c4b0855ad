/** Keep the draft of a note across reloads and an expired login, for its writer. */

import { find } from "../lib/dom";

const KEPT = "sweetspot-note-draft:";

export function initNoteDraft(): void {
  const field = find("note-text", HTMLTextAreaElement);
  if (!field) return;
  const key = `${KEPT}${field.dataset.by}:${location.pathname}`;
  const keep = (text: string): void => {
    try {
      if (text.trim()) sessionStorage.setItem(key, text);
      else sessionStorage.removeItem(key);
    } catch {
      // the browser keeps nothing
    }
  };
  field.value ||= notYetAdded(read(key));
  keep(field.value);
  field.addEventListener("input", () => keep(field.value));
}

function read(key: string): string {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** "" if the note has already been added. */
function notYetAdded(draft: string): string {
  const added = [...document.querySelectorAll(".note .note-text")];
  return added.some((note) => sameText(note.textContent ?? "", draft)) ? "" : draft;
}

function sameText(one: string, other: string): boolean {
  return one.replace(/\s+/g, " ").trim() === other.replace(/\s+/g, " ").trim();
}
