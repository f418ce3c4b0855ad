/** `webapp/screens/bench/charts.py`; tests/vectors test both sides. */

import { boolean, type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";
import { chartCeiling } from "./ceiling";

const point = struct({
  level: number,
  mean: number,
  low: nullable(number),
  high: nullable(number),
  text: string,
  spread_text: string,
});

const chart = struct({
  x_label: string,
  y_label: string,
  shown_as: oneOf("iops", "bytes_per_s", "latency", "seconds", "number"),
  logarithmic: boolean,
  levels: list(struct({ text: string, number: nullable(number) })),
  series: list(struct({ colour: number, name: string, points: list(point) })),
  ceilings: list(chartCeiling),
});

export const benchCharts = struct({ charts: list(chart) });

export type BenchChart = Checked<typeof chart>;
export type BenchPoint = Checked<typeof point>;
