/** The live preview of a plan or a schedule: requested shortly after the last key; only the newest response is shown. */

import { type PlanAnswer, type PlanProblem, planAnswer } from "#payloads/plan";
import { find, messageNodes, setText, showProblem } from "../lib/dom";
import { counted } from "../lib/format";
import { initCopy, paintTimes } from "./page";
import { initPlanJobs } from "./planJobs";

const PAUSE_MS = 250;
const LIMIT_MS = 20_000;

/** Drops responses that arrive after the response to a newer request. */
export class Latest {
  private asked = 0;

  next(): number {
    this.asked += 1;
    return this.asked;
  }

  isLatest(ticket: number): boolean {
    return ticket === this.asked;
  }
}

/** All fields of the form, with the step of the pressed button, if any. */
export function formData(form: HTMLFormElement, step = ""): FormData {
  const fields = form.querySelector("fieldset");
  const wasDisabled = fields?.disabled ?? false;
  if (fields) fields.disabled = false; // disabled fields of viewers are sent too, because a preview changes nothing
  const data = new FormData(form);
  if (fields) fields.disabled = wasDisabled;
  if (step) data.set("do", step);
  return data;
}

export async function post(url: string, data: FormData, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { method: "POST", body: data, signal });
  if (response.redirected) throw new Error("You are logged out. Save to log in again; what you typed is kept.");
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  return response;
}

/** Writes the messages of a place into a box; returns their number. */
function paintMessages(box: HTMLElement, place: string | undefined, all: readonly PlanProblem[]): number {
  const messages = all.filter((one) => one.place === placeOf(box, place ?? "")).map((one) => one.message);
  box.replaceChildren(...messages.flatMap((message) => [...messageNodes(message), " "]));
  box.hidden = messages.length === 0;
  return messages.length;
}

function paintWarnings(form: HTMLFormElement, answer: PlanAnswer): void {
  for (const box of form.querySelectorAll<HTMLElement>("[data-warnings]"))
    paintMessages(box, box.dataset.warnings, answer.warnings);
}

function paintProblems(form: HTMLFormElement, answer: PlanAnswer, name: string): void {
  for (const box of form.querySelectorAll<HTMLElement>("[data-problems]")) {
    const found = paintMessages(box, box.dataset.problems, answer.problems);
    const field = box.id === "" ? null : form.querySelector(`[aria-describedby~="${box.id}"]`);
    field?.classList.toggle("is-invalid", found > 0);
    field?.setAttribute("aria-invalid", String(found > 0));
  }
  const head = find(`${name}-problems`, HTMLDivElement);
  const count = answer.problems.length;
  if (head) head.hidden = count === 0;
  setText(head?.querySelector("[data-count]") ?? null, `Correct ${counted(count, "field")}.`);
}

/** The place of a row is the name of its factor. */
function placeOf(box: HTMLElement, place: string): string {
  const select = box.closest(".factor-row")?.querySelector("select");
  if (!select) return place;
  return `${place.slice(0, place.lastIndexOf("."))}.${select.value}`;
}

export interface Previewing {
  /** Request a preview after a short pause in typing. */
  readonly later: () => void;
  readonly now: (step?: string) => Promise<void>;
}

/** `name` is the prefix of the ids of the updated elements: `plan-preview`, `plan-said`, `plan-problems`. */
export function startPreviewing(form: HTMLFormElement, name = "plan"): Previewing {
  const latest = new Latest();
  let timer = 0;
  let running: AbortController | null = null;
  const panel = find(`${name}-preview`, HTMLDivElement);

  const now = async (step = ""): Promise<void> => {
    window.clearTimeout(timer);
    running?.abort();
    running = new AbortController();
    const ticket = latest.next();
    panel?.setAttribute("aria-busy", "true");
    try {
      const signal = AbortSignal.any([running.signal, AbortSignal.timeout(LIMIT_MS)]);
      const response = await post(form.dataset.previewUrl ?? "", formData(form, step), signal);
      const answer = planAnswer(await response.json());
      if (!latest.isLatest(ticket)) return;
      take(answer);
    } catch (error) {
      if (latest.isLatest(ticket)) showProblem(`No preview: ${error instanceof Error ? error.message : "unknown"}`);
    } finally {
      if (latest.isLatest(ticket)) panel?.removeAttribute("aria-busy");
    }
  };

  const take = (answer: PlanAnswer): void => {
    showProblem("");
    paintProblems(form, answer, name);
    paintWarnings(form, answer);
    setText(document.getElementById(`${name}-said`), answer.said);
    panel?.classList.toggle("is-stale", answer.html === "");
    if (!panel || answer.html === "") return;
    panel.innerHTML = answer.html; // escaped by the server's templates
    initCopy(panel);
    initPlanJobs();
    paintTimes();
  };

  const later = (): void => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void now(), PAUSE_MS);
  };
  return { later, now };
}
