/** `webapp/screens/payloads.py` CompareChart; tests/vectors/compare.json holds both together. */

import { boolean, type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";

export const comparePoint = struct({
  level: number,
  mean: number,
  low: nullable(number),
  high: nullable(number),
  n: number,
});

export const compareSeries = struct({
  name: string,
  is_baseline: boolean,
  points: list(comparePoint),
});

export const compareLevel = struct({ text: string, value: nullable(number) });

export const compareChart = struct({
  x_label: string,
  levels: list(compareLevel),
  metric_label: string,
  shown_as: oneOf("iops", "bytes_per_s", "latency", "percent", "number"),
  series: list(compareSeries),
});

export type CompareChart = Checked<typeof compareChart>;
export type CompareSeries = Checked<typeof compareSeries>;
export type CompareLevel = Checked<typeof compareLevel>;
