/** Trials over one time axis, second by second: repeats as thin lines, their mean as a thick line. */

import type { ChartConfiguration, TooltipItem } from "chart.js";
import { tickText, timeTicks } from "../lib/axis";
import { Chart } from "../lib/charts";
import { lookAt } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { clock } from "../lib/format";
import { type TimeCharts, timeCharts } from "../payloads/compare";
import { ceilingLines, highest } from "./ceilingLines";
import { SHOW } from "./compareChart";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";

const MAX_REPEATS_DRAWN = 20;
const TABLE_ROWS = 600;

/** One point per bin, at the start of the bin. */
export function line(values: readonly (number | null)[], binS: number): { x: number; y: number | null }[] {
  return values.map((y, index) => ({ x: index * binS, y }));
}

function datasets(data: TimeCharts["lines"], looks: Looks): object[] {
  return data.series.flatMap((series) => {
    const { colour } = looks.get(series.name) ?? lookAt(0);
    const common = { series: series.name, borderColor: colour, backgroundColor: colour, pointRadius: 0 };
    const repeats = series.repeats.length > 1 ? series.repeats.slice(0, MAX_REPEATS_DRAWN) : [];
    const label = series.is_baseline ? `${series.name} (baseline)` : series.name;
    const mean = { ...common, label, data: line(series.mean, data.bin_s), borderWidth: 2.5 };
    const thin = repeats.map((values, index) => ({
      ...common,
      borderColor: `${colour}80`,
      label: `${series.name}, repeat ${index + 1}`,
      data: line(values, data.bin_s),
      borderWidth: 0.8,
    }));
    return [{ ...mean, pointRadius: series.mean.length < 2 ? 4 : 0 }, ...thin];
  });
}

function configuration(data: TimeCharts, looks: Looks): ChartConfiguration {
  const show = SHOW[data.lines.shown_as];
  const made = {
    type: "line",
    data: { datasets: datasets(data.lines, looks) },
    options: {
      parsing: false,
      spanGaps: false,
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: {
          type: "linear",
          title: { display: true, text: "Time since start" },
          ticks: { callback: (value: number | string) => clock(Number(value)), maxRotation: 0 },
          afterBuildTicks: (axis: { min: number; max: number; width: number; ticks: unknown }) => {
            axis.ticks = timeTicks(axis.min, axis.max, axis.width < 400 ? 4 : 8).map((value) => ({ value }));
          },
        },
        y: {
          type: data.logarithmic ? "logarithmic" : "linear",
          beginAtZero: !data.logarithmic,
          suggestedMax: highest(data.ceilings),
          title: { display: true, text: data.lines.label },
          ticks: { callback: (value: number | string) => tickText(show(Number(value))), maxTicksLimit: 8 },
        },
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: (items: TooltipItem<"line">[]) => clock(items[0]?.parsed.x ?? 0),
            label: (item: TooltipItem<"line">) => `${item.dataset.label}: ${show(item.parsed.y ?? 0)}`,
          },
        },
      },
    },
  };
  return { ...made, plugins: [ceilingLines(data.ceilings)] } as unknown as ChartConfiguration;
}

function tableRow(data: TimeCharts["lines"], index: number): HTMLTableRowElement {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.className = "sticky";
  head.scope = "row";
  head.textContent = clock(index * data.bin_s);
  row.append(head);
  for (const series of data.series) {
    const cell = row.insertCell();
    cell.className = "num";
    const value = series.mean[index];
    cell.textContent = value === null || value === undefined ? "–" : SHOW[data.shown_as](value);
  }
  return row;
}

/** Fill the table when it is opened. */
function fillTable(data: TimeCharts["lines"]): void {
  const details = find("time-table", HTMLDetailsElement);
  details?.addEventListener("toggle", () => {
    const body = details.querySelector("tbody");
    if (!details.open || !body || body.rows.length > 0) return;
    const length = Math.min(TABLE_ROWS, Math.max(0, ...data.series.map((series) => series.mean.length)));
    body.append(...Array.from({ length }, (_, index) => tableRow(data, index)));
  });
}

export function initTimeLines(): void {
  const data = readJson("timeline-data", timeCharts);
  const canvas = find("time-lines", HTMLCanvasElement);
  if (!data || !canvas) return;
  const page = new ComparePage();
  page.finish([new Chart(canvas, configuration(data, page.looks))], "Thick: mean of the repeats; thin: each repeat.");
  fillTable(data.lines);
}
