/** Mirrors `webapp/screens/trend/views.py`. */

import { type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";

const point = struct({
  run: number,
  at_ms: number,
  value: number,
  low: nullable(number),
  high: nullable(number),
  verdict: string,
});

export const trendChart = struct({
  label: string,
  shown_as: oneOf("iops", "bytes_per_s", "latency", "seconds", "number"),
  points: list(point),
  steps: list(struct({ at_ms: number, text: string })),
  levels: list(number),
  baseline: nullable(number),
});

export type TrendChart = Checked<typeof trendChart>;
export type TrendPoint = Checked<typeof point>;
