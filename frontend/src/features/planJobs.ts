/** The table of trials: the job of the trial under the cursor, by pointer and by arrow keys. */

import { type PlanJob, planJobs } from "#payloads/plan";
import { find, readJson, setText } from "../lib/dom";

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

function paint(job: PlanJob): void {
  setText(document.getElementById("job-title"), job.title);
  setText(document.getElementById("job-target"), job.target);
  setText(document.getElementById("job-text"), job.job_text);
  setText(document.getElementById("job-command"), job.command);
  paintDetails("prefill", job.prefill_text);
  paintDetails("steps", job.steps_text);
}

function paintDetails(name: string, text: string): void {
  setText(document.getElementById(`${name}-text`), text);
  const details = find(`job-${name}`, HTMLDetailsElement);
  if (details) details.hidden = text === "";
}

/** The index after an arrow key in a list of `count`; null for another key or at the end of the list. */
export function nextRow(key: string, at: number, count: number): number | null {
  const next = at + (STEPS[key] ?? 0);
  return next === at || next < 0 || next >= count ? null : next;
}

/** Call it again after each update of the preview. */
export function initPlanJobs(): void {
  const body = document.querySelector<HTMLTableSectionElement>("[data-trials] tbody");
  const known = readJson("plan-jobs", planJobs);
  if (!body || !known) return;
  const rows = [...body.rows];
  const show = (row: HTMLTableRowElement | undefined): void => {
    const job = known.jobs.find((each) => String(each.trial) === row?.dataset.trial);
    if (!job) return;
    for (const each of rows) each.classList.toggle("table-active", each === row);
    paint(job);
  };
  for (const row of rows) {
    row.addEventListener("pointerenter", () => show(row));
    row.addEventListener("focusin", () => show(row));
    row.addEventListener("click", (event) => {
      event.preventDefault(); // its job is already loaded
      show(row);
    });
    row.addEventListener("keydown", (event) => {
      const next = nextRow(event.key, rows.indexOf(row), rows.length);
      if (next === null) return;
      event.preventDefault();
      rows[next]?.querySelector<HTMLElement>(".trial-link")?.focus();
    });
  }
}
