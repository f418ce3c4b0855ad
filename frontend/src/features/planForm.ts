/** The form of a plan: buttons without a page reload, a live preview, and a warning before unsaved input is left. */

import { find, showProblem } from "../lib/dom";
import { formData, type Previewing, post, startPreviewing } from "./planPreview";
import { initPlanRows } from "./planRows";
import { warnBeforeLeaving } from "./unsaved";

const LIMIT_MS = 20_000;

/** The part of the server's new page with the fields. */
async function steppedFields(form: HTMLFormElement, step: string): Promise<Element> {
  const response = await post(window.location.href, formData(form, step), AbortSignal.timeout(LIMIT_MS));
  const fields = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("plan-fields");
  if (!fields) throw new Error("The server's response is invalid. Reload the page.");
  return fields;
}

function focusAfter(name: string | undefined): void {
  const last = [...document.querySelectorAll<HTMLElement>(".plan-part .part-name")].at(-1);
  const wanted = name === "last-part" ? last : document.getElementById(name ?? "");
  if (!wanted) return;
  // At the end of the list the same button is disabled: its neighbour gets the focus.
  const free = wanted.matches(":disabled")
    ? wanted.parentElement?.querySelector<HTMLElement>("button:enabled")
    : wanted;
  free?.focus();
  if (free instanceof HTMLInputElement) free.select(); // typing replaces the default level of a new row
}

/** Whether a field was changed before this script was loaded, or restored by the browser after a reload. */
export function isTouched(form: HTMLFormElement): boolean {
  return [...form.elements].some((field) => {
    if (field instanceof HTMLTextAreaElement) return field.value !== field.defaultValue;
    if (!(field instanceof HTMLInputElement)) return false;
    // a check box without a value attribute has the value "on" and no default value
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    return field.value !== field.defaultValue;
  });
}

/** Sends steps one after another. During a step the fields do not react to the keyboard or the pointer. */
function takeSteps(form: HTMLFormElement, previewing: Previewing): (step: string, focus?: string) => Promise<void> {
  return async function take(step: string, focus?: string): Promise<void> {
    const fields = find("plan-fields", HTMLFieldSetElement);
    if (!fields || fields.inert) return;
    try {
      const made = steppedFields(form, step);
      fields.inert = true; // input would be lost
      fields.replaceChildren(...(await made).childNodes);
      initPlanRows(form, (what) => void take(what));
      void previewing.now();
    } catch (error) {
      showProblem(`Not done: ${error instanceof Error ? error.message : "unknown"}`);
    } finally {
      fields.inert = false;
      focusAfter(focus);
    }
  };
}

export function initPlanForm(): void {
  const form = find("plan-form", HTMLFormElement);
  if (!form) return;
  const previewing = startPreviewing(form);
  const step = takeSteps(form, previewing);
  initPlanRows(form, (what) => void step(what));
  warnBeforeLeaving(form, /^(add-|csrf|target|seed)/);
  form.addEventListener("input", (event) => {
    if (!(event.target instanceof Element && event.target.matches("[name^='add-']"))) previewing.later();
  });
  form.addEventListener("change", (event) => {
    // A different factor has other choices and another hint, so the server renders the row again.
    if (event.target instanceof HTMLSelectElement && event.target.matches(".factor-name"))
      void step("refresh", event.target.id);
  });
  form.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button?.name !== "do" || button.closest("[data-trials] tbody")) return;
    event.preventDefault();
    if (button.hasAttribute("data-page")) void previewing.now(button.value);
    else void step(button.value, button.dataset.focus);
  });
  form.addEventListener("keydown", (event) => {
    // Enter adds the typed factor; by default it would save the plan.
    if (event.key !== "Enter" || !(event.target instanceof Element && event.target.matches("[name^='add-']"))) return;
    event.preventDefault();
    event.target.parentElement?.querySelector<HTMLButtonElement>(":scope > button")?.click();
  });
  if (form.hasAttribute("data-unsaved") || isTouched(form)) void previewing.now();
}
