/** One second as text, below the charts and in their table. */

import type { LiveSample } from "#payloads/live";
import { bytesPerSecond, clock, iops, latency, percent, significant } from "../lib/format";
import { METRIC_LABELS } from "../lib/labels";
import type { Second } from "../lib/samples";

/** The name of the rates of these directions: transactions of a database are not I/Os. */
export function rateName(directions: readonly string[]): string {
  if (!directions.includes("transaction")) return METRIC_LABELS.iops;
  return directions.length === 1 ? "Transactions/s" : `${METRIC_LABELS.iops} and transactions/s`;
}

/** The rate of a second and its name: IOPS, transactions, or both if streams of both kinds run together. */
export function rateOf(second: Second | undefined): { text: string; name: string } {
  const { iops: ios = null, transactionsPerS = null } = second ?? {};
  if (transactionsPerS === null) return { text: iops(ios), name: rateName([]) };
  if (ios === null) return { text: iops(transactionsPerS), name: rateName(["transaction"]) };
  return { text: `${iops(ios)} and ${iops(transactionsPerS)}`, name: rateName(["read", "transaction"]) };
}

/** Direction, the stream where several run at once, and whether its I/Os are a share of those of a longer time. */
function whatOf(sample: LiveSample): string {
  const stream = sample.stream_name
    ? ` ${sample.stream_name}`
    : sample.stream > 0
      ? ` stream ${sample.stream + 1}`
      : "";
  return `${sample.direction}${stream}${sample.estimated ? " (estimated)" : ""}`;
}

export function inWords(sample: LiveSample): string {
  const parts = [
    `${clock(sample.at_s)}  #${sample.trial} ${whatOf(sample)}`,
    `${iops(sample.iops)} ${sample.direction === "transaction" ? "transactions/s" : METRIC_LABELS.iops}`,
    bytesPerSecond(sample.bytes_per_s),
    `${METRIC_LABELS.latency_p50} ${latency(sample.p50_ns)}`,
    `${METRIC_LABELS.latency_p99} ${latency(sample.p99_ns)}`,
    `${METRIC_LABELS.latency_p999} ${latency(sample.p999_ns)}`,
  ];
  if (sample.queue_depth !== null) parts.push(`queue depth ${significant(sample.queue_depth)}`);
  if (sample.utilisation_percent !== null) parts.push(`utilisation ${percent(sample.utilisation_percent)}`);
  return parts.join(" · ");
}

export function tableRow(sample: LiveSample, telemetry: string): HTMLTableRowElement {
  const row = document.createElement("tr");
  row.dataset.sample = `${sample.trial}/${sample.attempt}/${sample.offset_ms}/${sample.direction}`;
  const cells = [
    clock(sample.at_s),
    `#${sample.trial}`,
    whatOf(sample),
    iops(sample.iops),
    bytesPerSecond(sample.bytes_per_s),
    latency(sample.p50_ns),
    latency(sample.p99_ns),
    latency(sample.p999_ns),
    sample.queue_depth === null ? "–" : significant(sample.queue_depth),
    percent(sample.utilisation_percent),
    telemetry || "–",
  ];
  for (const text of cells) row.insertCell().textContent = text;
  return row;
}
