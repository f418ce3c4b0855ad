/** The form of a schedule: buttons for usual cron lines, a live preview, and a warning before unsaved input is left. */

import { find } from "../lib/dom";
import { isTouched } from "./planForm";
import { startPreviewing } from "./planPreview";
import { warnBeforeLeaving } from "./unsaved";

/** Buttons that write a cron line; the one whose line is in the field is pressed. */
function initPresets(form: HTMLFormElement, changed: () => void): void {
  const line = form.querySelector<HTMLInputElement>("#cron");
  const buttons = form.querySelectorAll<HTMLButtonElement>("[data-cron]");
  if (!line) return;
  const paint = (): void => {
    for (const button of buttons)
      button.setAttribute("aria-pressed", String(button.dataset.cron === line.value.trim()));
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      line.value = button.dataset.cron ?? "";
      paint();
      changed();
    });
  }
  line.addEventListener("input", paint);
}

/** After a refusal the focus is at the first field that has a problem, or at the summary. */
function focusRefused(form: HTMLFormElement): void {
  const place = form.querySelector("[data-problems][id]:not([hidden])");
  const described = place ? form.querySelector<HTMLElement>(`[aria-describedby~="${place.id}"]`) : null;
  const field = described?.matches("input, select, textarea")
    ? described
    : described?.querySelector<HTMLElement>("input");
  (field ?? find("schedule-problems", HTMLDivElement))?.focus();
}

export function initScheduleForm(): void {
  const form = find("schedule-form", HTMLFormElement);
  if (!form) return;
  const previewing = startPreviewing(form, "schedule");
  initPresets(form, previewing.later);
  form.addEventListener("input", previewing.later);
  form.addEventListener("change", previewing.later);
  warnBeforeLeaving(form);
  const refused = find("schedule-problems", HTMLDivElement)?.hidden === false;
  if (refused) focusRefused(form);
  if (refused || isTouched(form)) void previewing.now();
}
