/** What a cell of a run shows: the values of a trial by metric, or its state. */

import type { LiveCell, LiveValue } from "#payloads/live";
import { bytesPerSecond, counted, iops, latency, NOTHING, percent } from "../lib/format";
import { MISSING } from "../lib/labels";

/** `own` is the metric of the engine, such as the time of a copy; only one direction has it. */
export type Metric = "iops" | "rate" | "p99" | "mean" | "own";

/** Whether directions and streams add up; of latencies the largest counts. */
export function addsUp(metric: Metric): boolean {
  return metric === "iops" || metric === "rate";
}

const SHOW: Readonly<Record<Metric, (value: LiveValue) => string>> = {
  iops: (value) => iops(value.iops),
  rate: (value) => bytesPerSecond(value.bytes_per_s),
  p99: (value) => latency(value.p99_ns),
  mean: (value) => latency(value.mean_ns),
  own: (value) => value.own_text,
};

/** Text of a cell: values of a finished trial, otherwise the label of the state. */
export function cellText(cell: LiveCell, metric: Metric): string {
  if (cell.state === "done") {
    const texts = cell.values.map(SHOW[metric]).filter((text) => text !== "");
    if (texts.some((text) => text !== NOTHING)) return texts.join(" / ");
    return cell.values.length > 0 ? MISSING.noValue : MISSING.notMeasured;
  }
  return cell.state === "planned" ? "" : cell.state_label;
}

export function cellTitle(cell: LiveCell): string {
  const parts = [`Trial ${cell.trial}: ${cell.state_label}`, cell.reason];
  if (cell.invalid) parts.push(`Invalid: ${cell.invalid}`);
  if (cell.kernel_lines) parts.push(`Kernel log: ${counted(cell.kernel_lines, "line")}`);
  return parts.filter((text) => text !== "").join(". ");
}

export const NUMBER: Readonly<Record<Metric, (value: LiveValue) => number | null>> = {
  iops: (value) => value.iops,
  rate: (value) => value.bytes_per_s,
  p99: (value) => value.p99_ns,
  mean: (value) => value.mean_ns,
  own: (value) => value.own,
};

/** Standard deviation divided by the mean of the valid repeats above 0; the sum of rates over directions, the maximum of latencies. */
export function spreadText(cells: readonly LiveCell[], metric: Metric): string {
  const numbers = cells
    .filter((cell) => cell.values.length > 0 && !cell.invalid)
    .map((cell) => cell.values.map(NUMBER[metric]).filter((value) => value !== null))
    .filter((values) => values.length > 0)
    .map((values) => (addsUp(metric) ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values)))
    .filter((value) => value > 0);
  if (numbers.length < 2) return "";
  const arithmetic = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
  const squares = numbers.reduce((sum, value) => sum + (value - arithmetic) ** 2, 0);
  const mean = meanOf(numbers);
  return `± ${percent((100 * Math.sqrt(squares / (numbers.length - 1))) / mean)}`;
}

/** The geometric mean of the values above 0, as `core.statistics.mean_of`; 0 if all are 0. */
export function meanOf(values: readonly number[]): number {
  const logs = values.filter((value) => value > 0).map(Math.log);
  if (logs.length === 0 || values.every((value) => value === values[0])) return values[0] ?? 0;
  return Math.exp(logs.reduce((sum, value) => sum + value, 0) / logs.length);
}

export function isMetric(name: string | undefined): name is Metric {
  return name !== undefined && name in SHOW;
}
