/** The charts of samples from top to bottom, and the lines of each. */

import type { ChartDataset, ScatterDataPoint } from "chart.js";
import { bytesPerSecond, iops, latency, significant } from "../lib/format";
import { METRIC_LABELS } from "../lib/labels";
import type { SampleField, SampleStore } from "../lib/samples";

export interface Line {
  readonly field: SampleField;
  readonly label: string;
  readonly dash?: number[];
  readonly width?: number;
  readonly axis?: "y" | "right";
  /** One line per host instead of one per direction. */
  readonly ofDevice?: boolean;
}

export interface Panel {
  readonly id: string;
  readonly lines: readonly Line[];
  readonly tick: (value: number) => string;
  readonly log?: boolean;
  /** The end of the axis, for values with a maximum. */
  readonly most?: () => number | undefined;
  /** Lines that depend on the values. */
  readonly series?: (store: SampleStore, from: number) => Series[];
}

export type Series = ChartDataset<"line", ScatterDataPoint[]>;

export const PANELS: readonly Panel[] = [
  { id: "seconds-iops", lines: [{ field: "iops", label: METRIC_LABELS.iops }], tick: iops },
  { id: "seconds-rate", lines: [{ field: "bytes_per_s", label: METRIC_LABELS.bytes_per_s }], tick: bytesPerSecond },
  {
    id: "seconds-latency",
    log: true,
    tick: latency,
    lines: [
      { field: "p50_ns", label: METRIC_LABELS.latency_p50, width: 1 },
      { field: "p99_ns", label: METRIC_LABELS.latency_p99, width: 2 },
      { field: "p999_ns", label: METRIC_LABELS.latency_p999, dash: [4, 3], width: 1.5 },
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
