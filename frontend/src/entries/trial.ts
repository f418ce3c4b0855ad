/** The page of one trial: its samples. */

import { chartCeiling, chartSpan } from "#payloads/charts";
import { liveSample, liveSensors } from "#payloads/live";
import { initNoteDraft } from "../features/noteDraft";
import { SecondsChart } from "../features/secondsChart";
import { find, readJson } from "../lib/dom";
import { SampleStore } from "../lib/samples";
import { list } from "../lib/schema";

function initTrial(): void {
  const root = find("seconds", HTMLElement);
  const samples = readJson("trial-samples", list(liveSample));
  if (!root || !samples) return;
  const store = new SampleStore();
  store.addSensors(readJson("trial-sensors", list(liveSensors)) ?? []);
  store.add(samples);
  const ceilings = readJson("trial-ceilings", list(chartCeiling)) ?? [];
  new SecondsChart(root, store, ceilings, readJson("trial-evidence", list(chartSpan)) ?? []).draw();
}

initTrial();
initNoteDraft();
