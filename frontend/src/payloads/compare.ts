/** `webapp/screens/compare/payloads.py`; tests/vectors/compare.json holds both together. */

import { boolean, type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";
import { chartCeiling } from "./ceiling";

export const comparePoint = struct({
  level: number,
  mean: number,
  low: nullable(number),
  high: nullable(number),
  n: number,
  text: string,
  spread_text: string,
  doubts: list(string),
});

export const compareSeries = struct({
  name: string,
  is_baseline: boolean,
  points: list(comparePoint),
});

export const compareLevel = struct({ text: string, value: nullable(number) });

export const comparePanel = struct({ name: string, series: list(compareSeries) });

export const compareCharts = struct({
  x_label: string,
  levels: list(compareLevel),
  metric_label: string,
  shown_as: oneOf("iops", "bytes_per_s", "latency"),
  kind: oneOf("auto", "line", "bar"),
  logarithmic: boolean,
  shared: boolean,
  ceilings: list(chartCeiling),
  panels: list(comparePanel),
});

export const seriesNames = list(struct({ name: string, is_baseline: boolean }));

export type CompareCharts = Checked<typeof compareCharts>;
export type CompareSeries = Checked<typeof compareSeries>;
export type CompareLevel = Checked<typeof compareLevel>;
