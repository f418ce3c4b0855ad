/** The page of one run, live until it ends. */

import "../styles/heat.css";
import "../styles/pivot.css";
import "../styles/run.css";
import { type LiveRun, liveRun } from "#payloads/live";
import { initCountdowns } from "../features/countdown";
import { initFreshSections } from "../features/freshSections";
import { initNoteDraft } from "../features/noteDraft";
import { initRunGrid } from "../features/runGrid";
import { initRunNow } from "../features/runNow";
import { SecondsChart } from "../features/secondsChart";
import { initTabProgress } from "../features/tabProgress";
import { find, readJson, showProblem } from "../lib/dom";
import { fetchJson, startPolling } from "../lib/poll";
import { reloadWhenFree } from "../lib/reload";
import { SampleStore } from "../lib/samples";

/** The variant of the page that the server renders for a state. */
function pageOf(state: string): string {
  return { queued: "open", running: "open", closing: "closing", paused: "paused" }[state] ?? "ended";
}

/** Samples of an ended run are loaded when they are unfolded. */
function initRun(): void {
  const root = find("run", HTMLElement);
  const first = readJson("run-data", liveRun);
  const url = root?.dataset.liveUrl;
  if (!root || !first || !url) return;
  const paintTab = initTabProgress();
  paintTab(first);
  const folded = find("run-samples", HTMLDetailsElement);
  if (!folded || folded.open) follow(first, url, paintTab);
  else {
    initRunGrid().apply(first.cells);
    folded.addEventListener("toggle", () => follow(first, url, paintTab), { once: true });
  }
}

function follow(first: LiveRun, url: string, paintTab: (run: LiveRun) => void): void {
  const chartRoot = find("seconds", HTMLElement);
  const store = new SampleStore();
  const chart = chartRoot ? new SecondsChart(chartRoot, store) : null;
  const grid = initRunGrid();
  const paintNow = initRunNow();
  const sections = initFreshSections();
  const trials = new Set(first.cells.map((cell) => cell.trial));
  let cursor = "";

  const take = (run: LiveRun): void => {
    grid.apply(run.cells);
    paintNow(run);
    paintTab(run);
    sections.take(run);
    store.addSensors(run.sensors);
    if (store.add(run.samples) > 0 || run.ended) chart?.draw();
  };
  take(first);
  chart?.draw();
  startPolling({
    visibleMs: 1000,
    hiddenMs: 10_000,
    exchange: async (signal) => {
      const run = liveRun(await fetchJson(`${url}?after=${encodeURIComponent(cursor)}`, signal));
      cursor = run.cursor;
      showProblem("");
      take(run);
      if (run.more) return "again";
      // a search adds trials, for which the tables have no cell
      const isLarger = run.cells.some((cell) => !trials.has(cell.trial));
      if (isLarger || pageOf(run.state) !== pageOf(first.state)) reloadWhenFree();
      return run.ended && first.ended ? "end" : "later";
    },
    failed: (error) => {
      if (first.ended) return; // nothing more is coming
      showProblem(
        `No live data since ${new Date().toLocaleTimeString("en-GB")}: ${error instanceof Error ? error.message : "unknown"} ` +
          "The charts catch up when the server answers again.",
      );
    },
  });
}

initRun();
initNoteDraft();
initCountdowns(reloadWhenFree);
