/** Means with their confidence intervals over the levels of one factor: lines over numbers, bars over names. */

import { BarController, BarElement, type ChartConfiguration, type TooltipItem } from "chart.js";
import {
  BarWithErrorBar,
  BarWithErrorBarsController,
  LineWithErrorBarsController,
  PointWithErrorBar,
} from "chartjs-chart-error-bars";
import { log2Bounds, powersOfTwo, tickText, wantsLog2 } from "../lib/axis";
import { Chart } from "../lib/charts";
import { type Look, lookAt } from "../lib/colours";
import { readJson } from "../lib/dom";
import { bytesPerSecond, iops, latency, significant } from "../lib/format";
import { type CompareCharts, type CompareSeries, compareCharts } from "../payloads/compare";
import { ceilingLines, highest } from "./ceilingLines";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";

Chart.register(
  BarController,
  BarElement,
  BarWithErrorBarsController,
  BarWithErrorBar,
  LineWithErrorBarsController,
  PointWithErrorBar,
);

export const SHOW: Readonly<Record<CompareCharts["shown_as"], (value: number) => string>> = {
  iops,
  bytes_per_s: bytesPerSecond,
  latency,
};

type XAxis = "log2" | "linear" | "names";

/** Numbers stand at their place, on a log2 axis if they span enough; names, and whatever is bars, side by side. */
export function xAxisOf(data: Pick<CompareCharts, "levels" | "kind">): XAxis {
  if (data.kind === "bar") return "names";
  const values = data.levels.map((level) => level.value);
  if (values.length < 2 || values.some((value) => value === null)) return "names";
  return wantsLog2(values.filter((value) => value !== null)) ? "log2" : "linear";
}

interface PanelData extends Omit<CompareCharts, "panels"> {
  readonly series: readonly CompareSeries[];
}

interface Spread {
  readonly x: number;
  readonly y: number;
  readonly yMin: number;
  readonly yMax: number;
  readonly n: number;
  readonly text: string;
  readonly spread_text: string;
  readonly doubts: readonly string[];
}

/** Bars for names, unless lines were asked for. */
function isBars(data: Pick<CompareCharts, "kind">, axis: XAxis): boolean {
  return axis === "names" && data.kind !== "line";
}

export function spreads(series: CompareSeries, data: PanelData, axis: XAxis): Spread[] {
  return series.points.map((point) => ({
    x: axis === "names" ? point.level : (data.levels[point.level]?.value ?? 0),
    y: point.mean,
    yMin: Math.max(0, point.low ?? point.mean),
    yMax: point.high ?? point.mean,
    n: point.n,
    text: point.text,
    spread_text: point.spread_text,
    doubts: point.doubts,
  }));
}

function dataset(series: CompareSeries, data: PanelData, axis: XAxis, look: Look): object {
  const bars = isBars(data, axis);
  const made = spreads(series, data, axis);
  const solid = bars ? `${look.colour}b0` : look.colour;
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    data: made,
    borderColor: look.colour,
    // hollow: in doubt
    [bars ? "backgroundColor" : "pointBackgroundColor"]: made.map((each) =>
      each.doubts.length > 0 ? `${look.colour}22` : solid,
    ),
    borderWidth: bars ? 1 : 2,
    ...(bars ? { maxBarThickness: 48 } : { pointStyle: look.marker, pointRadius: 5, pointHoverRadius: 7 }),
    errorBarColor: bars ? "#8a929c" : look.colour,
    errorBarWhiskerColor: bars ? "#8a929c" : look.colour,
    errorBarLineWidth: 1.5,
    errorBarWhiskerSize: 8,
  };
}

function xScale(data: PanelData, axis: XAxis): object {
  const title = { display: true, text: data.x_label };
  const textOf = (value: number): string =>
    data.levels.find((level) => level.value === value)?.text ?? (axis === "log2" ? "" : significant(value));
  if (axis === "names") return { type: "category", labels: data.levels.map((level) => level.text), title };
  const values = data.levels.flatMap((level) => (level.value === null ? [] : [level.value]));
  const levelTicks = (scale: { ticks: unknown }): void => {
    scale.ticks = values.length <= 16 ? values.map((value) => ({ value })) : ticksFor(values, axis);
  };
  return {
    type: axis === "log2" ? "logarithmic" : "linear",
    ...(axis === "log2" ? log2Bounds(values) : {}),
    afterBuildTicks: levelTicks,
    ticks: { callback: (value: number | string) => textOf(Number(value)), autoSkip: true, maxRotation: 0 },
    title,
  };
}

function ticksFor(values: readonly number[], axis: XAxis): { value: number }[] {
  if (axis !== "log2") return values.map((value) => ({ value }));
  return powersOfTwo(Math.min(...values), Math.max(...values)).map((value) => ({ value }));
}

/** The texts of the table: the whiskers end at 0, the interval does not. */
export function tooltipText(label: string, point: Spread): string {
  const interval = point.n > 1 ? ` ${point.spread_text} (95 % CI, n = ${point.n})` : `, ${point.spread_text}`;
  const doubts = point.doubts.map((doubt) => `; ${doubt}`).join("");
  return `${label}: ${point.text}${interval}${doubts}`;
}

/** The panel's part of the data: only the levels that it has, so that no chart is mostly empty. */
export function panelData(data: CompareCharts, panel: CompareCharts["panels"][number]): PanelData {
  const used = [...new Set(panel.series.flatMap((series) => series.points.map((point) => point.level)))].sort(
    (a, b) => a - b,
  );
  const series = panel.series.map((each) => ({
    ...each,
    points: each.points.map((point) => ({ ...point, level: used.indexOf(point.level) })),
  }));
  return { ...data, levels: used.flatMap((index) => data.levels[index] ?? []), series };
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** From the least to the largest end of an interval on the page, with room above (and below, on a log axis). */
export function boundsOf(panels: readonly PanelData[], logarithmic: boolean): Bounds | null {
  const points = panels.flatMap((panel) => panel.series.flatMap((series) => series.points));
  const ceilings = highest(panels.flatMap((panel) => panel.ceilings));
  const highs = [ceilings, ...points.map((point) => point.high ?? point.mean)];
  const lows = points.map((point) => (logarithmic && (point.low ?? 0) <= 0 ? point.mean : (point.low ?? point.mean)));
  if (points.length === 0) return null;
  if (!logarithmic) return { min: 0, max: Math.max(...highs) * 1.05 };
  const above = lows.filter((low) => low > 0);
  return above.length > 0 ? { min: Math.min(...above) * 0.8, max: Math.max(...highs) * 1.25 } : null;
}

function configuration(data: PanelData, axis: XAxis, looks: Looks, bounds: Bounds | null): ChartConfiguration {
  const bars = isBars(data, axis);
  const made = {
    type: bars ? "barWithErrorBars" : "lineWithErrorBars",
    data: {
      ...(axis === "names" ? { labels: data.levels.map((level) => level.text) } : {}),
      datasets: data.series.map((series) => dataset(series, data, axis, looks.get(series.name) ?? lookAt(0))),
    },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x: xScale(data, axis), y: yScale(data, bounds) },
      plugins: {
        tooltip: {
          callbacks: {
            title: titleOf(data),
            label: (item: TooltipItem<"line">) => tooltipText(item.dataset.label ?? "", item.raw as Spread),
          },
        },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

/** On a linear axis a hint, so that it ends at a round number. */
function boundary(data: PanelData, bounds: Bounds | null): object {
  if (!bounds) return {};
  return data.logarithmic ? bounds : { min: 0, suggestedMax: bounds.max };
}

function yScale(data: PanelData, bounds: Bounds | null): object {
  return {
    type: data.logarithmic ? "logarithmic" : "linear",
    beginAtZero: !data.logarithmic,
    ...boundary(data, bounds),
    title: { display: true, text: data.metric_label },
    ticks: {
      callback: (value: number | string) => tickText(SHOW[data.shown_as](Number(value))),
      maxTicksLimit: 8,
    },
  };
}

function titleOf(data: PanelData): (items: TooltipItem<"line">[]) => string {
  return (items) => {
    const x = (items[0]?.raw as Spread | undefined)?.x;
    const level = data.levels.find((each, index) => each.value === x || index === x);
    return `${data.x_label} ${level?.text ?? ""}`;
  };
}

export function initCompareCharts(): void {
  const data = readJson("compare-data", compareCharts);
  if (!data) return;
  const page = new ComparePage();
  const looks = page.looks;
  const canvases = [...document.querySelectorAll<HTMLCanvasElement>("canvas[data-panel]")];
  const parts = data.panels.map((panel) => panelData(data, panel));
  const together = data.shared ? boundsOf(parts, data.logarithmic) : null;
  const charts = canvases.flatMap((canvas) => {
    const part = parts[Number(canvas.dataset.panel)];
    if (!part) return [];
    const bounds = together ?? boundsOf([part], data.logarithmic);
    const made = configuration(part, xAxisOf(part), looks, bounds);
    return [new Chart(canvas, { ...made, plugins: [ceilingLines(data.ceilings)] })];
  });
  page.finish(charts, `Mean of the repeats; whiskers: 95 % confidence interval. ${data.metric_label}`);
}
