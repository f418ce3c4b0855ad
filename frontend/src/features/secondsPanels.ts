/** Which charts stand under one another, and what each draws. */

import type { ChartDataset, ScatterDataPoint } from "chart.js";
import { bytesPerSecond, iops, latency, significant } from "../lib/format";
import type { SampleField, SampleStore } from "../lib/samples";

export interface Line {
  readonly field: SampleField;
  readonly label: string;
  readonly dash?: number[];
  readonly width?: number;
  readonly axis?: "y" | "right";
  /** One line a host rather than one a direction. */
  readonly ofDevice?: boolean;
}

export interface Panel {
  readonly id: string;
  readonly lines: readonly Line[];
  readonly tick: (value: number) => string;
  readonly log?: boolean;
  /** Where the axis ends, for values that have an end. */
  readonly most?: () => number | undefined;
  /** Lines that are known only when there are values. */
  readonly series?: (store: SampleStore, from: number) => Series[];
}

export type Series = ChartDataset<"line", ScatterDataPoint[]>;

export const PANELS: readonly Panel[] = [
  { id: "seconds-iops", lines: [{ field: "iops", label: "IOPS" }], tick: iops },
  { id: "seconds-rate", lines: [{ field: "bytes_per_s", label: "throughput" }], tick: bytesPerSecond },
  {
    id: "seconds-latency",
    log: true,
    tick: latency,
    lines: [
      { field: "p50_ns", label: "p50", width: 1 },
      { field: "p99_ns", label: "p99", width: 2 },
      { field: "p999_ns", label: "p99.9", dash: [4, 3], width: 1.5 },
    ],
  },
  {
    id: "seconds-device",
    tick: significant,
    lines: [
      { field: "queue_depth", label: "queue depth", ofDevice: true },
      { field: "utilisation_percent", label: "utilisation", dash: [4, 3], axis: "right", ofDevice: true },
    ],
  },
];
