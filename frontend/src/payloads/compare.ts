/** `webapp/analysis/answer.py` and `webapp/screens/explore/payloads.py`; tests/vectors test both sides. */

import { boolean, type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";
import { chartCeiling } from "./ceiling";

const shownAs = oneOf("iops", "bytes_per_s", "latency", "seconds", "number", "percent", "celsius", "watts", "entered");

const level = struct({ key: string, text: string, number: nullable(number) });

const baselineRatio = struct({
  ratio: struct({ value: number, low: nullable(number), high: nullable(number) }),
  better: nullable(boolean),
  equal: boolean,
  p: number,
  n: number,
  text: string,
  interval_text: string,
});

const cell = struct({
  level: number,
  summary: struct({
    values: list(number),
    n: number,
    mean: number,
    sd: nullable(number),
    low: nullable(number),
    high: nullable(number),
  }),
  text: string,
  spread_text: string,
  doubts: list(string),
  against_baseline: nullable(baselineRatio),
});

const conclusion = oneOf("different", "may_be_drift", "equal", "none");

const series = struct({
  key: string,
  name: string,
  is_baseline: boolean,
  cells: list(cell),
  sentence: string,
  conclusion,
  headline: string,
  headline_conclusion: conclusion,
  against_baseline: nullable(baselineRatio),
  points: number,
  order: string,
});

export const comparison = struct({
  metric: string,
  metric_label: string,
  shown_as: shownAs,
  unit: string,
  lower_is_better: boolean,
  x: string,
  x_label: string,
  x_numeric: boolean,
  series_by: list(string),
  series_label: string,
  panel_label: string,
  levels: list(level),
  panels: list(struct({ key: string, name: string, scaling: list(string), series: list(series) })),
  baseline: string,
  ratio_as: oneOf("ratio", "percent"),
  margin: number,
  verdict: string,
  single_factor: boolean,
  differs: list(struct({ kind: string, name: string, label: string, text: string })),
  warnings: list(string),
  notes: list(string),
  results: number,
});

const referenceLine = struct({
  panel: number,
  name: string,
  points: list(struct({ level: number, value: number, text: string })),
});

export const meansCharts = struct({
  comparison,
  kind: oneOf("auto", "line", "bar", "box"),
  logarithmic: boolean,
  shared: boolean,
  ceilings: list(chartCeiling),
  references: list(referenceLine),
});

export const scatterCharts = struct({
  x_label: string,
  x_shown_as: shownAs,
  y_label: string,
  y_shown_as: shownAs,
  logarithmic: boolean,
  panels: list(
    struct({
      name: string,
      series: list(
        struct({
          name: string,
          is_baseline: boolean,
          points: list(struct({ level: string, x: number, y: number, x_text: string, y_text: string })),
        }),
      ),
    }),
  ),
});

export const latencyCharts = struct({
  percents: list(number),
  nines: boolean,
  series: list(
    struct({
      name: string,
      is_baseline: boolean,
      repeats: number,
      ios: number,
      kinds: list(string),
      percentiles_ns: list(nullable(number)),
      cdf_ns: list(number),
      cdf_shares: list(number),
      same_levels: boolean,
    }),
  ),
});

const line = list(nullable(number));

export const timeLines = struct({
  metric: string,
  label: string,
  shown_as: shownAs,
  from_s: number,
  bin_s: number,
  bin_text: string,
  series: list(struct({ name: string, is_baseline: boolean, repeats: list(line), mean: line, low: line, high: line })),
});

export const timeCharts = struct({ lines: timeLines, logarithmic: boolean, ceilings: list(chartCeiling) });

export const seriesNames = list(struct({ name: string, is_baseline: boolean, colour: number }));

export type Comparison = Checked<typeof comparison>;
export type Level = Comparison["levels"][number];
export type Panel = Comparison["panels"][number];
export type Series = Panel["series"][number];
export type MeansCharts = Checked<typeof meansCharts>;
export type ReferenceLine = Checked<typeof referenceLine>;
export type ScatterCharts = Checked<typeof scatterCharts>;
export type LatencyCharts = Checked<typeof latencyCharts>;
export type TimeCharts = Checked<typeof timeCharts>;
