/** The head of a run's page: state, progress, what runs now and how fast. */

import { find, setText } from "../lib/dom";
import { bytesPerSecond, duration, iops, latency } from "../lib/format";
import type { LiveRun, LiveSample } from "../payloads/live";

export function initRunNow(): (run: LiveRun) => void {
  const head = find("run-head", HTMLElement);
  if (!head) return () => undefined;
  const latest = new Map<string, LiveSample>();
  return (run) => {
    for (const sample of run.samples) latest.set(sample.direction, sample);
    paintState(head, run);
    paintProgress(run);
    paintNow(run, [...latest.values()]);
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
  const ended = run.done + run.failed + run.cancelled;
  if (bar) {
    bar.max = Math.max(1, run.total);
    bar.value = ended;
  }
  setText(document.getElementById("run-count"), `${ended} of ${run.total} trials`);
  setText(document.getElementById("run-failed"), run.failed ? `${run.failed} failed` : "");
  setText(document.getElementById("run-elapsed"), duration(run.elapsed_s));
  setText(document.getElementById("run-left"), run.ended ? "–" : duration(run.seconds_left));
}

function paintNow(run: LiveRun, samples: readonly LiveSample[]): void {
  const now = run.now[0];
  const card = find("run-now", HTMLElement);
  if (card) card.hidden = run.ended;
  setText(document.getElementById("now-title"), now ? `Trial ${now.trial + 1} of ${run.total}` : "Between trials");
  setText(document.getElementById("now-what"), now ? `${now.what} · ${now.host}/${now.target}` : "");
  setText(document.getElementById("now-phase"), now?.phase ?? "waiting for the host");
  if (!now) return;
  const current = samples.filter((sample) => sample.trial === now.trial && sample.host === now.host);
  const sum = (pick: (sample: LiveSample) => number): number | null =>
    current.length ? current.reduce((total, sample) => total + pick(sample), 0) : null;
  setText(document.getElementById("now-iops"), iops(sum((sample) => sample.iops)));
  setText(document.getElementById("now-rate"), bytesPerSecond(sum((sample) => sample.bytes_per_s)));
  const p99 = current.map((sample) => sample.p99_ns).filter((value) => value !== null);
  setText(document.getElementById("now-p99"), latency(p99.length ? Math.max(...p99) : null));
}
