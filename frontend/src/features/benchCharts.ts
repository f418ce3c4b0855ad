/** Curves and latency ladders of products: lines with 95 % confidence intervals, one colour per product. */

import type { ChartConfiguration, TooltipItem } from "chart.js";
import { LineWithErrorBarsController, PointWithErrorBar } from "chartjs-chart-error-bars";
import { type BenchChart, type BenchPoint, benchCharts } from "#payloads/bench";
import { log2Bounds, tickText, wantsLog2 } from "../lib/axis";
import { Chart, follow } from "../lib/charts";
import { lookAt } from "../lib/colours";
import { readJson } from "../lib/dom";
import { SHOW } from "../lib/format";
import { ceilingLines, heightsOf, highestInReach } from "./ceilingLines";
import { initReport } from "./report";
import { initSavePicture } from "./savePicture";

Chart.register(LineWithErrorBarsController, PointWithErrorBar);

const MAX_TICKS = 16;

type XAxis = "log2" | "linear" | "names";

/** Numbers on a linear axis, or on a log2 axis if their range is wide; names one after the other. */
export function axisOf(chart: Pick<BenchChart, "levels">): XAxis {
  const values = chart.levels.map((level) => level.number);
  if (values.length < 2 || values.some((value) => value === null)) return "names";
  return wantsLog2(values.filter((value) => value !== null)) ? "log2" : "linear";
}

interface Spread {
  readonly x: number;
  readonly y: number;
  readonly yMin: number;
  readonly yMax: number;
  readonly of: BenchPoint | null; // null where a level was not measured
}

/** On an axis of names: one entry for each level, because the error-bar plugin uses the index of an entry as x. */
export function spreadsOf(points: readonly BenchPoint[], chart: Pick<BenchChart, "levels">): Spread[] {
  if (axisOf(chart) !== "names") return points.map((point) => spreadOf(point, chart.levels[point.level]?.number ?? 0));
  return chart.levels.map((_, level) => {
    const point = points.find((each) => each.level === level);
    return point ? spreadOf(point, level) : { x: level, y: Number.NaN, yMin: Number.NaN, yMax: Number.NaN, of: null };
  });
}

function spreadOf(point: BenchPoint, x: number): Spread {
  return { x, y: point.mean, yMin: point.low ?? point.mean, yMax: point.high ?? point.mean, of: point };
}

/** Whether the line from one point to the next crosses levels that this product lacks. */
export function isGap(from: Pick<BenchPoint, "level">, to: Pick<BenchPoint, "level">): boolean {
  return to.level - from.level > 1;
}

const DASHED = [4, 4];

function dataset(series: BenchChart["series"][number], chart: BenchChart): object {
  const look = lookAt(series.colour);
  const spreads = spreadsOf(series.points, chart);
  return {
    spanGaps: true,
    segment: {
      borderDash: ({ p0DataIndex, p1DataIndex }: { p0DataIndex: number; p1DataIndex: number }) => {
        const [from, to] = [spreads[p0DataIndex]?.of, spreads[p1DataIndex]?.of];
        return !from || !to || isGap(from, to) ? DASHED : undefined;
      },
    },
    label: series.name,
    data: spreads,
    borderColor: look.colour,
    backgroundColor: look.colour,
    borderWidth: 2,
    pointStyle: look.marker,
    radius: 4, // of an element: a point with an error bar ignores the prefix "point"
    hoverRadius: 6,
    errorBarColor: look.colour,
    errorBarWhiskerColor: look.colour,
    errorBarLineWidth: 1.5,
    errorBarWhiskerSize: 7,
  };
}

function xScale(chart: BenchChart): object {
  const axis = axisOf(chart);
  const title = { display: true, text: chart.x_label };
  if (axis === "names") return { type: "category", labels: chart.levels.map((level) => level.text), title };
  const values = chart.levels.flatMap((level) => (level.number === null ? [] : [level.number]));
  const textOf = (value: number): string => chart.levels.find((level) => level.number === value)?.text ?? "";
  const step = Math.ceil(values.length / MAX_TICKS);
  return {
    type: axis === "log2" ? "logarithmic" : "linear",
    ...(axis === "log2" ? log2Bounds(values) : {}),
    afterBuildTicks: (scale: { ticks: unknown }) => {
      scale.ticks = values.filter((_, index) => index % step === 0).map((value) => ({ value }));
    },
    ticks: { callback: (value: number | string) => textOf(Number(value)), maxRotation: 0 },
    title,
  };
}

function yScale(chart: BenchChart): object {
  const highest = Math.max(0, ...chart.series.flatMap((series) => series.points.map((each) => each.mean)));
  const ceiling = highestInReach(heightsOf(chart.ceilings), highest);
  const power = (value: number): boolean => /^[125]/.test((value / 10 ** Math.floor(Math.log10(value))).toFixed(3));
  const text = (value: number | string): string => tickText(SHOW[chart.shown_as](Number(value)));
  return {
    type: chart.logarithmic ? "logarithmic" : "linear",
    beginAtZero: !chart.logarithmic,
    ...(ceiling > 0 ? { suggestedMax: ceiling * 1.05 } : {}),
    title: { display: true, text: chart.y_label },
    ticks: {
      callback: (value: number | string) => (chart.logarithmic && !power(Number(value)) ? "" : text(value)),
      maxTicksLimit: 8,
    },
  };
}

/** The numbers of the table, with their interval. */
export function tooltipOf(name: string, point: BenchPoint): string {
  return `${name}: ${point.text} (${point.spread_text})`;
}

function configuration(chart: BenchChart): ChartConfiguration {
  const made = {
    type: "lineWithErrorBars",
    data: {
      ...(axisOf(chart) === "names" ? { labels: chart.levels.map((level) => level.text) } : {}),
      datasets: chart.series.map((series) => dataset(series, chart)),
    },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x: xScale(chart), y: yScale(chart) },
      plugins: {
        tooltip: {
          callbacks: {
            title: (items: TooltipItem<"line">[]) =>
              `${chart.x_label} ${chart.levels[(items[0]?.raw as Spread | undefined)?.of?.level ?? 0]?.text ?? ""}`,
            label: (item: TooltipItem<"line">) => {
              const { of } = item.raw as Spread;
              return of ? tooltipOf(item.dataset.label ?? "", of) : "";
            },
          },
        },
      },
    },
  };
  return { ...made, plugins: [ceilingLines(chart.ceilings)] } as unknown as ChartConfiguration;
}

export function initBenchCharts(): void {
  const data = readJson("bench-data", benchCharts);
  for (const canvas of document.querySelectorAll<HTMLCanvasElement>("canvas[data-bench-chart]")) {
    const { benchChart = "" } = canvas.dataset;
    const chart = data?.charts[Number(benchChart)];
    if (chart) follow(new Chart(canvas, configuration(chart)));
  }
  initReport();
  initSavePicture();
}
