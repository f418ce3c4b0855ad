/** The head of a run's page: state, progress, and the current trial with its rates. */

import type { LiveCell, LiveRun, LiveSample } from "#payloads/live";
import { find, setText } from "../lib/dom";
import { bytesPerSecond, counted, latency } from "../lib/format";
import { perSecond } from "../lib/samples";
import { rateOf } from "./secondsText";

const KEPT = 300; // newest samples: a second of many streams

export function initRunNow(): (run: LiveRun) => void {
  const head = find("run-head", HTMLElement);
  if (!head) return () => undefined;
  let latest: LiveSample[] = [];
  return (run) => {
    latest = [...latest, ...run.samples].slice(-KEPT);
    paintState(head, run);
    paintProgress(run);
    paintNow(run, latest);
    paintDialogs(run);
    run.cells.forEach(paintFailure);
  };
}

function paintState(head: HTMLElement, run: LiveRun): void {
  const badge = head.querySelector("[data-run-state]");
  if (!badge) return;
  badge.className = `badge state-badge state-${run.state}`;
  setText(badge, run.state_label);
}

function paintProgress(run: LiveRun): void {
  const bar = find("run-progress", HTMLProgressElement);
  if (bar) {
    bar.max = Math.max(1, run.total);
    bar.value = run.progress;
  }
  setText(document.getElementById("run-heading"), run.heading);
  setText(document.getElementById("run-failed"), run.failed ? `${run.failed} failed` : "");
  setText(document.getElementById("run-elapsed"), run.lasted);
}

function paintNow(run: LiveRun, samples: readonly LiveSample[]): void {
  const now = run.now[0];
  const card = find("run-now", HTMLElement);
  if (card) card.hidden = run.ended;
  setText(document.getElementById("now-title"), now ? `Trial ${now.trial} of ${run.total}` : "Between trials");
  setText(document.getElementById("now-what"), now ? `${now.point} · ${now.host}/${now.target}` : "");
  setText(document.getElementById("now-phase"), now?.phase ?? "waiting for the host");
  if (!now) return;
  const current = lastMeasured(samples.filter((sample) => sample.host === now.host));
  const measured = current[0]?.trial ?? now.trial;
  setText(document.getElementById("now-values"), measured === now.trial ? "" : `Last second of trial ${measured}`);
  const last = perSecond(current).at(-1);
  const rate = rateOf(last);
  setText(document.getElementById("now-iops"), rate.text);
  setText(document.getElementById("now-iops-name"), rate.name);
  setText(document.getElementById("now-rate"), bytesPerSecond(last?.bytesPerS ?? null));
  setText(document.getElementById("now-p99"), latency(last?.p99Ns ?? null));
}

/** The samples of the newest trial that has any: a trial may end before its first second is shown. */
export function lastMeasured(samples: readonly LiveSample[]): LiveSample[] {
  const newest = samples.reduce<LiveSample | undefined>(
    (last, one) => (last && last.at_s > one.at_s ? last : one),
    undefined,
  );
  return samples.filter((one) => one.trial === newest?.trial && one.attempt === newest.attempt);
}

/** The texts of the cancel dialog, and the trial of the skip button unless its dialog is open. */
function paintDialogs(run: LiveRun): void {
  const stopped = run.now.map((now) => `Trial ${now.trial} on ${now.host} will be stopped.`);
  setText(document.getElementById("cancel-now"), stopped.join(" ") || "No trial is running.");
  const left = run.total - run.done - run.failed - run.cancelled - run.now.length;
  setText(document.getElementById("cancel-left"), notStarted(Math.max(0, left)));
  const others = run.now.slice(1).map((now) => `${now.host}: trial ${now.trial}, ${now.point}`);
  setText(document.getElementById("now-others"), others.length ? `Also running on ${others.join("; ")}` : "");
  paintSkip(run);
}

/** The same text as in the server's dialog. */
export function notStarted(trials: number): string {
  return `${counted(trials, "planned trial")} will not start.`;
}

function paintSkip(run: LiveRun): void {
  const button = find("skip-open", HTMLButtonElement);
  const number = find("skip-number", HTMLInputElement);
  const now = run.now[0];
  if (!button || !number || find("skip-trial", HTMLDialogElement)?.open) return;
  button.hidden = now === undefined;
  number.value = now ? String(now.trial) : "";
  setText(document.getElementById("skip-title"), now ? `Skip trial ${now.trial}: ${now.point}?` : "Skip");
  setText(document.getElementById("skip-submit"), now ? `Skip trial ${now.trial}` : "Skip");
}

/** One row for each trial with a reason, as the server writes them. */
function paintFailure(cell: LiveCell): void {
  const card = document.getElementById("failures");
  const body = card?.querySelector("tbody");
  if (!card || !body || !cell.reason) return;
  const row = body.querySelector<HTMLTableRowElement>(`[data-failed="${cell.trial}"]`) ?? newFailure(body, cell.trial);
  setText(row.cells[1]?.firstElementChild ?? null, cell.state_label);
  if (row.cells[1]?.firstElementChild) {
    row.cells[1].firstElementChild.className = `badge state-badge state-${cell.state}`;
  }
  if (row.dataset.reason !== cell.reason && row.cells[2]) row.cells[2].textContent = cell.reason;
  row.dataset.reason = cell.reason;
  card.hidden = false;
}

function newFailure(body: HTMLTableSectionElement, trial: number): HTMLTableRowElement {
  const row = body.insertRow();
  row.dataset.failed = String(trial);
  const link = document.createElement("a");
  link.href = `trials/${trial}/`;
  link.textContent = `#${trial}`;
  row.insertCell().append(link);
  row.insertCell().append(document.createElement("span"));
  row.insertCell();
  return row;
}
