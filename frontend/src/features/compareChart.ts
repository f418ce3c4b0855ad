/** Means with their confidence intervals over the levels of one factor: lines over numbers, bars over names. */

import { BarController, BarElement, type ChartConfiguration, type TooltipItem } from "chart.js";
import {
  BarWithErrorBar,
  BarWithErrorBarsController,
  LineWithErrorBarsController,
  PointWithErrorBar,
} from "chartjs-chart-error-bars";
import { log2Bounds, powersOfTwo, tickText, wantsLog2 } from "../lib/axis";
import { Chart, download, follow, forget } from "../lib/charts";
import { assignLooks, type Look, lookAt } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { bytesPerSecond, iops, latency, significant } from "../lib/format";
import { type CompareCharts, type CompareSeries, compareCharts } from "../payloads/compare";

Chart.register(
  BarController,
  BarElement,
  BarWithErrorBarsController,
  BarWithErrorBar,
  LineWithErrorBarsController,
  PointWithErrorBar,
);

const SHOW: Readonly<Record<CompareCharts["shown_as"], (value: number) => string>> = {
  iops,
  bytes_per_s: bytesPerSecond,
  latency,
};

type XAxis = "log2" | "linear" | "names";

/** Lines where every level is a number, on a log2 axis if they span enough; bars otherwise. */
export function xAxisOf(data: Pick<CompareCharts, "levels">): XAxis {
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
}

export function spreads(series: CompareSeries, data: PanelData, axis: XAxis): Spread[] {
  return series.points.map((point) => ({
    x: axis === "names" ? point.level : (data.levels[point.level]?.value ?? 0),
    y: point.mean,
    yMin: Math.max(0, point.low ?? point.mean),
    yMax: point.high ?? point.mean,
    n: point.n,
  }));
}

function dataset(series: CompareSeries, data: PanelData, axis: XAxis, look: Look): object {
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

function tooltipText(data: PanelData, item: TooltipItem<"line">): string {
  const spread = item.raw as Spread;
  const show = SHOW[data.shown_as];
  const half = (spread.yMax - spread.yMin) / 2;
  const uncertainty = spread.n > 1 ? ` ± ${show(half)} (95 %, n = ${spread.n})` : " (one measurement, no spread)";
  return `${item.dataset.label}: ${show(spread.y)}${uncertainty}`;
}

type Looks = ReadonlyMap<string, Look>;

/** One look a name over all charts of the page. */
function looksOf(data: CompareCharts): Looks {
  const all = data.panels.flatMap((panel) => panel.series);
  return assignLooks(
    all.map((series) => series.name),
    all.find((series) => series.is_baseline)?.name ?? null,
  );
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

function configuration(data: PanelData, axis: XAxis, fromZero: boolean, looks: Looks): ChartConfiguration {
  const bars = axis === "names";
  const made = {
    type: bars ? "barWithErrorBars" : "lineWithErrorBars",
    data: {
      ...(bars ? { labels: data.levels.map((level) => level.text) } : {}),
      datasets: data.series.map((series) => dataset(series, data, axis, looks.get(series.name) ?? lookAt(0))),
    },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: xScale(data, axis),
        y: {
          type: fromZero ? "linear" : "logarithmic",
          beginAtZero: fromZero,
          title: { display: true, text: data.metric_label },
          ticks: {
            callback: (value: number | string) => tickText(SHOW[data.shown_as](Number(value))),
            maxTicksLimit: 8,
          },
        },
      },
      plugins: {
        tooltip: { callbacks: { title: titleOf(data), label: (item: TooltipItem<"line">) => tooltipText(data, item) } },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

function titleOf(data: PanelData): (items: TooltipItem<"line">[]) => string {
  return (items) => {
    const x = (items[0]?.raw as Spread | undefined)?.x;
    const level = data.levels.find((each, index) => each.value === x || index === x);
    return `${data.x_label} ${level?.text ?? ""}`;
  };
}

function keyButton(name: string, isBaseline: boolean, look: Look, charts: () => readonly Chart[]): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm key";
  button.setAttribute("aria-pressed", "true");
  const mark = document.createElement("span");
  mark.className = "mark";
  mark.style.backgroundColor = look.colour;
  button.append(mark, isBaseline ? `${name} (baseline)` : name);
  button.addEventListener("click", () => {
    const visible = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(visible));
    for (const chart of charts()) {
      chart.data.datasets.forEach((each, index) => {
        if (each.label === button.textContent) chart.setDatasetVisibility(index, visible);
      });
      chart.update("none");
    }
  });
  return button;
}

/** One button a configuration for all charts: shows or hides it. The same marks stand in the table. */
function paintKey(data: CompareCharts, looks: Looks, charts: () => readonly Chart[]): void {
  const baseline = data.panels.flatMap((panel) => panel.series).find((series) => series.is_baseline)?.name;
  const buttons = [...looks].map(([name, look]) => keyButton(name, name === baseline, look, charts));
  find("compare-key", HTMLElement)?.replaceChildren(...buttons);
  for (const mark of document.querySelectorAll<HTMLElement>("[data-series]")) {
    mark.style.backgroundColor = looks.get(mark.dataset.series ?? "")?.colour ?? "transparent";
  }
}

export function initCompareCharts(): void {
  const data = readJson("compare-data", compareCharts);
  if (!data) return;
  const looks = looksOf(data);
  const logarithmic = find("compare-log", HTMLInputElement);
  const canvases = [...document.querySelectorAll<HTMLCanvasElement>("canvas[data-panel]")];
  let charts: Chart[] = [];
  const draw = (): void => {
    charts.forEach(forget);
    charts = canvases.flatMap((canvas) => {
      const panel = data.panels[Number(canvas.dataset.panel)];
      if (!panel) return [];
      const part = panelData(data, panel);
      return [new Chart(canvas, configuration(part, xAxisOf(part), !logarithmic?.checked, looks))];
    });
    charts.forEach(follow);
    paintKey(data, looks, () => charts);
  };
  draw();
  logarithmic?.addEventListener("change", draw);
  find("compare-download", HTMLButtonElement)?.addEventListener("click", () => download(canvases, "comparison"));
}
