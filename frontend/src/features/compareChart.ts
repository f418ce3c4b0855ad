/** Means with their confidence intervals over the levels of one factor: lines over numbers, bars over names. */

import { BarController, BarElement, type ChartConfiguration, type ChartDataset, type TooltipItem } from "chart.js";
import {
  BarWithErrorBar,
  BarWithErrorBarsController,
  LineWithErrorBarsController,
  PointWithErrorBar,
} from "chartjs-chart-error-bars";
import { log2Bounds, powersOfTwo, wantsLog2 } from "../lib/axis";
import { Chart, download, follow, forget } from "../lib/charts";
import { assignLooks, type Look, lookAt } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { bytesPerSecond, iops, latency, percent, significant } from "../lib/format";
import { type CompareChart, type CompareSeries, compareChart } from "../payloads/compare";

Chart.register(
  BarController,
  BarElement,
  BarWithErrorBarsController,
  BarWithErrorBar,
  LineWithErrorBarsController,
  PointWithErrorBar,
);

const SHOW: Readonly<Record<CompareChart["shown_as"], (value: number) => string>> = {
  iops,
  bytes_per_s: bytesPerSecond,
  latency,
  percent,
  number: significant,
};

type XAxis = "log2" | "linear" | "names";

/** Lines where every level is a number, on a log2 axis if they span enough; bars otherwise. */
export function xAxisOf(data: CompareChart): XAxis {
  const values = data.levels.map((level) => level.value);
  if (values.length < 2 || values.some((value) => value === null)) return "names";
  return wantsLog2(values.filter((value) => value !== null)) ? "log2" : "linear";
}

interface Spread {
  readonly x: number;
  readonly y: number;
  readonly yMin: number;
  readonly yMax: number;
  readonly n: number;
}

export function spreads(series: CompareSeries, data: CompareChart, axis: XAxis): Spread[] {
  return series.points.map((point) => ({
    x: axis === "names" ? point.level : (data.levels[point.level]?.value ?? 0),
    y: point.mean,
    yMin: Math.max(0, point.low ?? point.mean),
    yMax: point.high ?? point.mean,
    n: point.n,
  }));
}

function dataset(series: CompareSeries, data: CompareChart, axis: XAxis, look: Look): object {
  const bars = axis === "names";
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    data: spreads(series, data, axis),
    borderColor: look.colour,
    backgroundColor: bars ? `${look.colour}b0` : look.colour,
    borderWidth: bars ? 1 : 2,
    ...(bars ? { maxBarThickness: 48 } : { pointStyle: look.marker, pointRadius: 5, pointHoverRadius: 7 }),
    errorBarColor: bars ? "#8a929c" : look.colour,
    errorBarWhiskerColor: bars ? "#8a929c" : look.colour,
    errorBarLineWidth: 1.5,
    errorBarWhiskerSize: 8,
  };
}

function xScale(data: CompareChart, axis: XAxis): object {
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

function tooltipText(data: CompareChart, item: TooltipItem<"line">): string {
  const spread = item.raw as Spread;
  const show = SHOW[data.shown_as];
  const half = (spread.yMax - spread.yMin) / 2;
  const uncertainty = spread.n > 1 ? ` ± ${show(half)} (95 %, n = ${spread.n})` : " (one measurement, no spread)";
  return `${item.dataset.label}: ${show(spread.y)}${uncertainty}`;
}

function configuration(data: CompareChart, axis: XAxis, fromZero: boolean): ChartConfiguration {
  const looks = assignLooks(
    data.series.map((series) => series.name),
    data.series.find((series) => series.is_baseline)?.name ?? null,
  );
  const made = {
    type: axis === "names" ? "barWithErrorBars" : "lineWithErrorBars",
    data: {
      ...(axis === "names" ? { labels: data.levels.map((level) => level.text) } : {}),
      datasets: data.series.map((series) => dataset(series, data, axis, looks.get(series.name) ?? lookAt(0))),
    },
    options: {
      parsing: axis === "names" ? { xAxisKey: "x", yAxisKey: "y" } : undefined,
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: xScale(data, axis),
        y: {
          type: fromZero ? "linear" : "logarithmic",
          beginAtZero: fromZero,
          title: { display: true, text: data.metric_label },
          ticks: { callback: (value: number | string) => SHOW[data.shown_as](Number(value)), maxTicksLimit: 8 },
        },
      },
      plugins: {
        legend: { display: false },
        tooltip: { callbacks: { title: titleOf(data), label: (item: TooltipItem<"line">) => tooltipText(data, item) } },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

function titleOf(data: CompareChart): (items: TooltipItem<"line">[]) => string {
  return (items) => {
    const x = (items[0]?.raw as Spread | undefined)?.x;
    const level = data.levels.find((each, index) => each.value === x || index === x);
    return `${data.x_label} ${level?.text ?? ""}`;
  };
}

/** The key under the chart: one button a configuration, shows or hides it; the same marks stand in the table. */
function paintKey(chart: Chart, data: CompareChart): void {
  const key = find("compare-key", HTMLElement);
  if (!key) return;
  key.replaceChildren(
    ...chart.data.datasets.map((each: ChartDataset, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "btn btn-sm key";
      button.setAttribute("aria-pressed", "true");
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.style.backgroundColor = String(each.borderColor);
      button.append(mark, each.label ?? data.series[index]?.name ?? "");
      button.addEventListener("click", () => {
        const visible = !chart.isDatasetVisible(index);
        chart.setDatasetVisibility(index, visible);
        button.setAttribute("aria-pressed", String(visible));
        chart.update("none");
      });
      return button;
    }),
  );
}

function paintMarks(data: CompareChart): void {
  const names = data.series.map((series) => series.name);
  const looks = assignLooks(names, data.series.find((series) => series.is_baseline)?.name ?? null);
  for (const mark of document.querySelectorAll<HTMLElement>("[data-series]")) {
    mark.style.backgroundColor = looks.get(mark.dataset.series ?? "")?.colour ?? "transparent";
  }
}

export function initCompareChart(): void {
  const canvas = find("compare-chart", HTMLCanvasElement);
  const data = readJson("compare-data", compareChart);
  if (!canvas || !data || data.series.length === 0) return;
  const axis = xAxisOf(data);
  const logarithmic = find("compare-log", HTMLInputElement);
  let chart = new Chart(canvas, configuration(data, axis, !logarithmic?.checked));
  const settle = (): void => {
    follow(chart);
    paintKey(chart, data);
  };
  settle();
  paintMarks(data);
  logarithmic?.addEventListener("change", () => {
    forget(chart);
    chart = new Chart(canvas, configuration(data, axis, !logarithmic.checked));
    settle();
  });
  find("compare-download", HTMLButtonElement)?.addEventListener("click", () => download([canvas], "comparison"));
}
