/** Cards of busy hosts on the overview: live IOPS and p99, each with a minute of history. */

import { type LiveRun, type LiveSample, liveRun } from "#payloads/live";
import { setText } from "../lib/dom";
import { bytesPerSecond, duration, latency } from "../lib/format";
import { fetchJson, startPolling } from "../lib/poll";
import { perSecond, type Second } from "../lib/samples";
import { rateOf } from "./secondsText";

const KEPT = 60;

export function initNowCards(): void {
  const byRun = new Map<string, HTMLElement[]>();
  for (const card of document.querySelectorAll<HTMLElement>("[data-live-url]")) {
    const url = card.dataset.liveUrl ?? "";
    byRun.set(url, [...(byRun.get(url) ?? []), card]);
  }
  for (const [url, cards] of byRun) followRun(url, cards);
}

/** A run may use several hosts: it is requested once, and each card shows its host's part. */
function followRun(url: string, cards: readonly HTMLElement[]): void {
  const kept: LiveSample[] = [];
  let cursor = "";
  startPolling({
    visibleMs: 1000,
    hiddenMs: 15_000,
    exchange: async (signal) => {
      const run = liveRun(await fetchJson(`${url}?after=${encodeURIComponent(cursor)}`, signal));
      cursor = run.cursor;
      kept.push(...run.samples);
      kept.splice(0, kept.length - 4 * KEPT * cards.length);
      for (const card of cards) paint(card, run, perSecond(kept.filter((one) => one.host === card.dataset.host)));
      if (run.more) return "again";
      if (run.ended) window.location.reload();
      return run.ended ? "end" : "later";
    },
    failed: () => {
      for (const card of cards)
        setText(card.querySelector("[data-now-phase]"), "no answer from the server, trying again");
    },
  });
}

function paint(card: HTMLElement, run: LiveRun, all: readonly Second[]): void {
  const seconds = all.slice(-KEPT);
  const now = run.now.find((one) => one.host === card.dataset.host);
  const last = now ? seconds[seconds.length - 1] : undefined;
  const set = (name: string, text: string): void => setText(card.querySelector(`[data-now-${name}]`), text);
  set("trial", now ? `Trial ${now.trial} of ${run.total}` : `${run.progress} of ${run.total} trials ended`);
  set("what", now?.point ?? "");
  set("phase", now?.phase ?? run.state_label);
  const rate = rateOf(last);
  set("iops", rate.text);
  set("iops-name", rate.name);
  set("rate", bytesPerSecond(last?.bytesPerS ?? null));
  set("p99", latency(last?.p99Ns ?? null));
  set("left", duration(run.seconds_left));
  const bar = card.querySelector("progress");
  if (bar) bar.value = run.progress;
  drawSparkline(
    card.querySelector("[data-spark=iops] polyline"),
    seconds.map((second) => second.iops ?? second.transactionsPerS ?? 0),
  );
  drawSparkline(
    card.querySelector("[data-spark=p99] polyline"),
    seconds.map((second) => second.p99Ns ?? 0),
  );
}

/** Points of a polyline in a box of 120 × 28; the axis starts at zero. */
export function sparkline(values: readonly number[]): string {
  const top = Math.max(...values, 1e-9);
  const step = 120 / (KEPT - 1);
  const left = 120 - (values.length - 1) * step;
  return values
    .map((value, index) => `${(left + index * step).toFixed(1)},${(27 - (25 * value) / top).toFixed(1)}`)
    .join(" ");
}

function drawSparkline(line: Element | null, values: readonly number[]): void {
  if (values.length > 1) line?.setAttribute("points", sparkline(values));
}
