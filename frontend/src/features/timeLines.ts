/**
 * Trials over one time axis: the mean of the repeats as a thick line, and each repeat as a thin one. Of a long span the
 * thin line goes from the lowest to the highest second of each bin; a zoom asks the server for smaller bins.
 */

import type { ChartConfiguration, TooltipItem } from "chart.js";
import { type TimeCharts, timeCharts, timeLines } from "#payloads/compare";
import { tickText, timeTicks } from "../lib/axis";
import { Chart } from "../lib/charts";
import { lookAt } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { clock, SHOW } from "../lib/format";
import { fetchJson } from "../lib/poll";
import { ceilingLines, heightsOf, highestInReach, legendOfCeiling } from "./ceilingLines";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";

const MAX_REPEATS_DRAWN = 20;
const TABLE_ROWS = 600;

type Lines = TimeCharts["lines"];
type Bins = Pick<Lines, "from_s" | "bin_s">;
interface Point {
  x: number;
  y: number | null;
}

/** One point per bin, at the start of the bin. */
export function line(values: readonly (number | null)[], bins: Bins): Point[] {
  return values.map((y, index) => ({ x: bins.from_s + index * bins.bin_s, y }));
}

/** A stroke from the lowest to the highest second of each bin. */
export function spread(series: Pick<Lines["series"][number], "low" | "high">, bins: Bins): Point[] {
  const high = line(series.high, bins);
  return line(series.low, bins).flatMap((low, index) => [low, high[index] ?? low]);
}

/** The whole seconds around the visible part, as parameters of an address. */
export function closerAddress(address: string, min: number, max: number): string {
  return `${address}&from=${Math.max(0, Math.floor(min))}&to=${Math.ceil(max) + 1}`;
}

function datasets(data: Lines, looks: Looks): object[] {
  return data.series.flatMap((series) => {
    const { colour } = looks.get(series.name) ?? lookAt(0);
    const common = { series: series.name, borderColor: colour, backgroundColor: colour, pointRadius: 0 };
    const repeats = series.repeats.length > 1 ? series.repeats.slice(0, MAX_REPEATS_DRAWN) : [];
    const label = series.is_baseline ? `${series.name} (baseline)` : series.name;
    const mean = { ...common, label, data: line(series.mean, data), borderWidth: 2.5 };
    const faint = { ...common, borderColor: `${colour}80`, borderWidth: 0.8 };
    if (data.bin_s > 1) return [mean, { ...faint, spread: true, data: spread(series, data) }];
    const thin = repeats.map((values, index) => ({
      ...faint,
      label: `${series.name}, repeat ${index + 1}`,
      data: line(values, data),
    }));
    return [{ ...mean, pointRadius: series.mean.length < 2 ? 4 : 0 }, ...thin];
  });
}

function highestOf(lines: TimeCharts["lines"]): number {
  const values = lines.series.flatMap((series) => [...series.high, ...series.repeats.flat()]);
  return values.reduce<number>((top, value) => Math.max(top, value ?? 0), 0);
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
          suggestedMax: highestInReach(heightsOf(data.ceilings), highestOf(data.lines)),
          title: { display: true, text: data.lines.label },
          ticks: { callback: (value: number | string) => tickText(show(Number(value))), maxTicksLimit: 8 },
        },
      },
      plugins: {
        tooltip: {
          filter: (item: TooltipItem<"line">) => !("spread" in item.dataset),
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
  head.textContent = clock(data.from_s + index * data.bin_s);
  row.append(head);
  for (const series of data.series) {
    const cell = row.insertCell();
    cell.className = "num";
    const value = series.mean[index];
    cell.textContent = value === null || value === undefined ? "–" : SHOW[data.shown_as](value);
  }
  return row;
}

/** Fill the table when it is opened; in a report at once, because a saved report has no scripts. */
function fillTable(data: TimeCharts["lines"], chart: HTMLCanvasElement): void {
  const details = find("time-table", HTMLDetailsElement);
  const body = details?.querySelector("tbody");
  if (!details || !body) return;
  const fill = (): void => {
    if (body.rows.length > 0) return;
    const length = Math.min(TABLE_ROWS, Math.max(0, ...data.series.map((series) => series.mean.length)));
    body.append(...Array.from({ length }, (_, index) => tableRow(data, index)));
  };
  if (chart.dataset.closer === undefined) fill();
  else details.addEventListener("toggle", fill);
}

/** Replaces the lines of the chart; hidden series stay hidden. */
function redraw(chart: Chart, data: Lines, looks: Looks): void {
  const nameOf = (dataset: object): string => (dataset as { series?: string }).series ?? "";
  const hidden = new Set(chart.data.datasets.filter((_, index) => !chart.isDatasetVisible(index)).map(nameOf));
  chart.data.datasets = datasets(data, looks) as typeof chart.data.datasets;
  chart.data.datasets.forEach((dataset, index) => {
    chart.setDatasetVisibility(index, !hidden.has(nameOf(dataset)));
  });
  chart.update("none");
  chart.canvas.dataset.binS = String(data.bin_s);
}

/** A zoom into bins asks for smaller ones. Only the answer to the last zoom is drawn. */
function closerLook(chart: Chart, data: Lines, looks: Looks): { zoomed: () => void; reset: () => void } {
  const address = chart.canvas.dataset.closer ?? "";
  let asked = new AbortController();
  const zoomed = async (): Promise<void> => {
    const { min = 0, max = 0 } = chart.scales.x ?? {};
    asked.abort();
    asked = new AbortController();
    const { signal } = asked;
    const found = await fetchJson(closerAddress(address, min, max), signal).then(timeLines, () => null);
    if (found && !signal.aborted) redraw(chart, found, looks);
  };
  return {
    zoomed: () => {
      if (address && data.bin_s > 1) void zoomed();
    },
    reset: () => {
      asked.abort();
      redraw(chart, data, looks);
    },
  };
}

export function initTimeLines(): void {
  const data = readJson("timeline-data", timeCharts);
  const canvas = find("time-lines", HTMLCanvasElement);
  if (!data) return;
  const page = new ComparePage();
  if (!canvas) {
    page.finish([]);
    return;
  }
  const chart = new Chart(canvas, configuration(data, page.looks));
  canvas.dataset.binS = String(data.lines.bin_s);
  page.lines = data.ceilings.map(legendOfCeiling);
  page.finish([chart], closerLook(chart, data.lines, page.looks));
  fillTable(data.lines, canvas);
}
