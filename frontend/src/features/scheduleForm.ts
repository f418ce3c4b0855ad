/** The form of a schedule: usual cron lines at a click, and a preview while typing. */

import { find } from "../lib/dom";
import { isTouched } from "./planForm";
import { startPreviewing } from "./planPreview";

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

export function initScheduleForm(): void {
  const form = find("schedule-form", HTMLFormElement);
  if (!form) return;
  const previewing = startPreviewing(form, "schedule");
  initPresets(form, previewing.later);
  form.addEventListener("input", previewing.later);
  form.addEventListener("change", previewing.later);
  if (isTouched(form)) void previewing.now();
}
