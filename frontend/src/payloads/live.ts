/** `webapp/screens/payloads.py` LiveRun; tests/vectors/live.json tests both. */

import { boolean, type Checked, list, nullable, number, string, struct } from "../lib/schema";

export const liveSample = struct({
  host: string,
  trial: number,
  attempt: number,
  stream: number,
  stream_name: string,
  offset_ms: number,
  length_ms: number,
  estimated: boolean,
  at_s: number,
  direction: string,
  iops: nullable(number),
  bytes_per_s: nullable(number),
  p50_ns: nullable(number),
  p99_ns: nullable(number),
  p999_ns: nullable(number),
  queue_depth: nullable(number),
  utilisation_percent: nullable(number),
  telemetry: list(nullable(number)),
});

export const liveSensors = struct({
  host: string,
  trial: number,
  attempt: number,
  sensors: list(struct({ panel: string, name: string })),
});

export const liveValue = struct({
  direction: string,
  iops: nullable(number),
  bytes_per_s: nullable(number),
  mean_ns: nullable(number),
  p99_ns: nullable(number),
  own: nullable(number),
  own_text: string,
});

export const liveCell = struct({
  trial: number,
  state: string,
  state_label: string,
  reason: string,
  invalid: string,
  kernel_lines: number,
  values: list(liveValue),
});

export const liveNow = struct({
  host: string,
  target: string,
  trial: number,
  attempt: number,
  point: string,
  phase: string,
});

export const liveRun = struct({
  number: number,
  state: string,
  state_label: string,
  ended: boolean,
  total: number,
  done: number,
  failed: number,
  cancelled: number,
  lost: number,
  progress: number,
  elapsed_s: nullable(number),
  lasted: string,
  seconds_left: nullable(number),
  now: list(liveNow),
  cells: list(liveCell),
  samples: list(liveSample),
  sensors: list(liveSensors),
  cursor: string,
  more: boolean,
});

export type LiveRun = Checked<typeof liveRun>;
export type LiveSample = Checked<typeof liveSample>;
export type LiveSensors = Checked<typeof liveSensors>;
export type LiveCell = Checked<typeof liveCell>;
export type LiveValue = Checked<typeof liveValue>;
