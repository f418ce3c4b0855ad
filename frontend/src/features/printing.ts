/** Paper is light: a dark page would print light text on white. */

import { applyChoice, readChoice } from "./themeChoice";

export function initPrinting(): void {
  window.addEventListener("beforeprint", () => applyChoice("light"));
  window.addEventListener("afterprint", () => applyChoice(readChoice()));
}
