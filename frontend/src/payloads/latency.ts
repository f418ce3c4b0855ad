/** `webapp/screens/compare/payloads.py` LatencyCharts and TimeCharts; tests/vectors hold both sides together. */

import { boolean, type Checked, list, nullable, number, oneOf, string, struct } from "../lib/schema";
import { chartCeiling } from "./ceiling";

export const latencyCharts = struct({
  percents: list(number),
  nines: boolean,
  series: list(
    struct({
      name: string,
      is_baseline: boolean,
      steps_ns: list(nullable(number)),
      cdf_ns: list(number),
      cdf_shares: list(number),
    }),
  ),
});

export const timeCharts = struct({
  label: string,
  shown_as: oneOf("iops", "bytes_per_s", "latency"),
  bin_s: number,
  logarithmic: boolean,
  ceilings: list(chartCeiling),
  series: list(
    struct({
      name: string,
      is_baseline: boolean,
      repeats: list(list(nullable(number))),
      mean: list(nullable(number)),
    }),
  ),
});

export type LatencyCharts = Checked<typeof latencyCharts>;
export type TimeCharts = Checked<typeof timeCharts>;
