/** The grid of a run: one cell per trial, updated during the run. */

import type { LiveCell } from "#payloads/live";
import { setText } from "../lib/dom";
import { cellText, cellTitle, isMetric, type Metric, spreadText } from "./runCells";
import { paintPivots } from "./runPivot";

export interface Grid {
  readonly apply: (cells: readonly LiveCell[]) => void;
}

export function initRunGrid(): Grid {
  const table = document.getElementById("run-grid");
  if (!table) return { apply: () => undefined };
  const known = new Map<number, LiveCell>();
  const pressed = document.querySelector<HTMLElement>('[data-grid-metric][aria-pressed="true"]')?.dataset.gridMetric;
  let metric: Metric = isMetric(pressed) ? pressed : "iops";

  const paint = (cell: LiveCell): void => {
    const place = table.querySelector<HTMLTableCellElement>(`[data-trial="${cell.trial}"]`);
    const link = place?.querySelector("a");
    if (!place || !link) return;
    place.className = `trial state-${cell.state}${cell.invalid ? " is-invalid" : ""}${cell.kernel_lines ? " is-troubled" : ""}`;
    link.textContent = cellText(cell, metric) || "·";
    link.title = cellTitle(cell);
    const row = place.closest("tr");
    if (row) paintSpread(row);
  };

  const paintSpread = (row: HTMLTableRowElement): void => {
    const cells = [...row.querySelectorAll<HTMLElement>("[data-trial]")].map((place) =>
      known.get(Number(place.dataset.trial)),
    );
    setText(
      row.querySelector("[data-spread]"),
      spreadText(
        cells.filter((cell) => cell !== undefined),
        metric,
      ),
    );
  };

  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-grid-metric]")) {
    button.addEventListener("click", () => {
      if (!isMetric(button.dataset.gridMetric)) return;
      metric = button.dataset.gridMetric;
      paintPivots(known, metric);
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
      if (cells.length > 0) paintPivots(known, metric);
    },
  };
}
