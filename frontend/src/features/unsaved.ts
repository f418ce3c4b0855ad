/** A warning before a form with unsaved changes is left. */

import { formData } from "./planPreview";

/** The state of the fields as text, for comparison with a later state. */
function written(form: HTMLFormElement, ignored: RegExp): string {
  return JSON.stringify([...formData(form).entries()].filter(([name]) => !ignored.test(name)));
}

/** `ignored`: fields that are not saved. A form with `data-unsaved` was refused, so its input is not saved yet. */
export function warnBeforeLeaving(form: HTMLFormElement, ignored = /^csrf/): void {
  const opened = form.hasAttribute("data-unsaved") ? "" : written(form, ignored);
  let leaving = false;
  form.addEventListener("submit", () => {
    leaving = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!leaving && written(form, ignored) !== opened) event.preventDefault();
  });
}
