/** One run: live while it goes on, the same page afterwards. */

import { initRunGrid } from "../features/runGrid";
import { initRunNow } from "../features/runNow";
import { SecondsChart } from "../features/secondsChart";
import { find, readJson, showProblem } from "../lib/dom";
import { fetchJson, startPolling } from "../lib/poll";
import { SampleStore } from "../lib/samples";
import { type LiveRun, liveRun } from "../payloads/live";

function initRun(): void {
  const root = find("run", HTMLElement);
  const first = readJson("run-data", liveRun);
  const url = root?.dataset.liveUrl;
  if (!root || !first || !url) return;
  const chartRoot = find("seconds", HTMLElement);
  const store = new SampleStore();
  const chart = chartRoot ? new SecondsChart(chartRoot, store) : null;
  const grid = initRunGrid();
  const paintNow = initRunNow();
  let cursor = "";

  const take = (run: LiveRun): void => {
    grid.apply(run.cells);
    paintNow(run);
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
      if (run.ended && !first.ended) window.location.reload();
      return run.ended ? "end" : "later";
    },
    failed: (error) => showProblem(`No live data: ${error instanceof Error ? error.message : "unknown"} Trying again.`),
  });
}

initRun();
