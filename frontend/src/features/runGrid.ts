/** The grid of the plan: one cell a trial, filling in while the run goes on. */

import { bytesPerSecond, iops, latency } from "../lib/format";
import type { LiveCell, LiveValue } from "../payloads/live";

type Metric = "iops" | "rate" | "p99" | "mean";

const SHOW: Readonly<Record<Metric, (value: LiveValue) => string>> = {
  iops: (value) => iops(value.iops),
  rate: (value) => bytesPerSecond(value.bytes_per_s),
  p99: (value) => latency(value.p99_ns),
  mean: (value) => latency(value.mean_ns),
};

export interface Grid {
  readonly apply: (cells: readonly LiveCell[]) => void;
}

/** Text of a cell: values of a finished trial, the state in words otherwise. */
export function cellText(cell: LiveCell, metric: Metric): string {
  if (cell.state === "done") return cell.values.map(SHOW[metric]).join(" / ") || "no result";
  return cell.state === "planned" ? "" : cell.state_label;
}

function isMetric(name: string | undefined): name is Metric {
  return name !== undefined && name in SHOW;
}

export function initRunGrid(): Grid {
  const table = document.getElementById("run-grid");
  if (!table) return { apply: () => undefined };
  const known = new Map<number, LiveCell>();
  let metric: Metric = "iops";

  const paint = (cell: LiveCell): void => {
    const place = table.querySelector<HTMLTableCellElement>(`[data-trial="${cell.trial}"]`);
    const link = place?.querySelector("a");
    if (!place || !link) return;
    place.className = `trial state-${cell.state}`;
    link.textContent = cellText(cell, metric) || "·";
    link.title = `Trial ${cell.trial + 1}: ${cell.state_label}${cell.reason ? `. ${cell.reason}` : ""}`;
  };

  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-grid-metric]")) {
    button.addEventListener("click", () => {
      if (!isMetric(button.dataset.gridMetric)) return;
      metric = button.dataset.gridMetric;
      for (const each of document.querySelectorAll("[data-grid-metric]")) {
        each.setAttribute("aria-pressed", String(each === button));
      }
      known.forEach(paint);
    });
  }
  return {
    apply: (cells) => {
      for (const cell of cells) {
        known.set(cell.trial, cell);
        paint(cell);
      }
    },
  };
}
