/** The trend of a metric: a point for each run with its interval, the levels, the steps and the baseline run. */

import type { ChartConfiguration, Chart as ChartOf, Plugin, TooltipItem } from "chart.js";
import { type TrendChart, type TrendPoint, trendChart } from "#payloads/trend";
import { tickText, timeTicks } from "../lib/axis";
import { Chart, follow } from "../lib/charts";
import { lookAt, themed } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { SHOW } from "../lib/format";
import { initSavePicture } from "./savePicture";

const BASELINE = "#8a929c";
const STEP = "#e40c30";
const DAY_S = 86_400;
const ROOM = 0.02; // of the time axis before the first and after the last run
const CAP = 4;
const TEXT_LINES = 3;

const two = (value: number): string => String(value).padStart(2, "0");

/** Whether ticks are a day or more apart; the day of a change of clocks has 23 hours. */
const isDays = (stepS: number): boolean => stepS > DAY_S / 2;

/** 2026-11-23, and 22:00 if the ticks are less than a day apart, in the browser's time zone. */
export function dateText(atMs: number, stepS: number): string {
  const at = new Date(atMs);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return isDays(stepS) ? day : `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

/** The texts of ticks: the day once, then times alone until the next day. */
export function dateTexts(ticksMs: readonly number[]): string[] {
  const stepS = ((ticksMs[1] ?? Number.POSITIVE_INFINITY) - (ticksMs[0] ?? 0)) / 1000;
  const texts = ticksMs.map((at) => dateText(at, stepS));
  const dayOf = (text: string | undefined): string => text?.split(" ")[0] ?? "";
  return texts.map((text, n) =>
    !isDays(stepS) && dayOf(text) === dayOf(texts[n - 1]) ? (text.split(" ")[1] ?? "") : text,
  );
}

/** Seconds by which the local time is ahead of UTC. */
function zoneAt(atMs: number): number {
  return -new Date(atMs).getTimezoneOffset() * 60;
}

/** Ticks at round local times, each in the time of its own day: clocks may be changed between the first and the last. */
export function dateTicks(minMs: number, maxMs: number, wanted: number): number[] {
  const last = zoneAt(maxMs);
  const local = timeTicks(minMs / 1000 + last, maxMs / 1000 + last, wanted);
  return local.map((atS) => (atS - zoneAt((atS - last) * 1000)) * 1000);
}

/** The points of each level: both ends, so that the lines of two levels do not meet. */
export function levelPoints(data: Pick<TrendChart, "points" | "steps" | "levels">): { x: number; y: number | null }[] {
  const first = data.points[0];
  const last = data.points.at(-1);
  if (!first || !last) return [];
  const ends = [first.at_ms, ...data.steps.map((step) => step.at_ms), last.at_ms];
  return data.levels.flatMap((y, index) => [
    { x: ends[index] ?? first.at_ms, y },
    { x: ends[index + 1] ?? last.at_ms, y },
    { x: ends[index + 1] ?? last.at_ms, y: null },
  ]);
}

function datasets(data: TrendChart): object[] {
  const { colour, marker } = lookAt(0);
  const colours = data.points.map((point) => (point.verdict === "Fails" ? STEP : colour));
  const runs = {
    label: data.label,
    data: data.points.map((point) => ({ x: point.at_ms, y: point.value, point })),
    borderColor: colour,
    pointBackgroundColor: colours,
    pointBorderColor: colours,
    pointStyle: data.points.map((point) => (point.verdict === "Fails" ? "rectRot" : marker)),
    pointRadius: 4,
    borderWidth: 1,
  };
  const line = { pointRadius: 0, pointHitRadius: 0, borderWidth: 2 };
  const levels = { ...line, label: "Level", data: levelPoints(data), borderColor: STEP };
  const ends = [data.points[0], data.points.at(-1)];
  const baseline = {
    ...line,
    label: "Baseline run",
    data: data.baseline === null ? [] : ends.map((point) => ({ x: point?.at_ms, y: data.baseline })),
    borderColor: BASELINE,
    borderDash: [2, 3],
  };
  return [runs, levels, baseline];
}

/** The range of the value axis: all points with their intervals. It does not start at 0, so that steps are visible. */
export function valueRange(data: Pick<TrendChart, "points" | "baseline">): { min: number; max: number } {
  const values = data.points.flatMap((point) => [point.value, point.low ?? point.value, point.high ?? point.value]);
  if (data.baseline !== null) values.push(data.baseline);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = Math.max((high - low) * 0.1 || high * 0.05, high * 0.01);
  return { min: Math.max(0, low - room), max: high + room };
}

/** The text of a tick; null, which draws no tick, for a value that needs more than three digits. */
export function exactText(value: number, show: (value: number) => string): string | null {
  const isExact = Math.abs(Number(value.toPrecision(3)) - value) <= 1e-9 * Math.abs(value);
  return isExact ? tickText(show(value)) : null;
}

/** The range of the time axis: from the first to the last run with room for their marks, or the day around a single
 * run. */
export function timeRange(data: Pick<TrendChart, "points">): { min: number; max: number } {
  const times = data.points.map((point) => point.at_ms);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const room = first === last ? DAY_S * 500 : ROOM * (last - first);
  return { min: first - room, max: last + room };
}

function drawInterval(chart: ChartOf, point: TrendPoint): void {
  const { x, y } = chart.scales;
  if (!x || !y || point.low === null || point.high === null) return;
  const at = x.getPixelForValue(point.at_ms);
  const [low, high] = [y.getPixelForValue(point.low), y.getPixelForValue(point.high)];
  const pen = chart.ctx;
  pen.beginPath();
  pen.moveTo(at, low);
  pen.lineTo(at, high);
  for (const end of [low, high]) {
    pen.moveTo(at - CAP, end);
    pen.lineTo(at + CAP, end);
  }
  pen.stroke();
}

/** The texts of neighbouring steps stand on different lines. */
function drawStep(chart: ChartOf, atMs: number, text: string, line: number): void {
  const { left, right, top, bottom } = chart.chartArea;
  const at = chart.scales.x?.getPixelForValue(atMs) ?? left;
  const pen = chart.ctx;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  pen.moveTo(at, top);
  pen.lineTo(at, bottom);
  pen.stroke();
  pen.fillStyle = themed("--tblr-body-color");
  pen.font = `600 11px ${themed("--ss-font")}`;
  const width = pen.measureText(text).width;
  pen.fillText(text, at + 4 + width > right ? at - 4 - width : at + 4, top + 12 + 14 * line);
}

function marks(data: TrendChart): Plugin {
  return {
    id: "trendMarks",
    afterDatasetsDraw: (chart) => {
      const pen = chart.ctx;
      pen.save();
      pen.strokeStyle = lookAt(0).colour;
      for (const point of data.points) drawInterval(chart, point);
      pen.strokeStyle = STEP;
      for (const [index, step] of data.steps.entries()) drawStep(chart, step.at_ms, step.text, index % TEXT_LINES);
      pen.restore();
    },
  };
}

function tooltip(data: TrendChart): object {
  const show = SHOW[data.shown_as];
  const pointOf = (item: TooltipItem<"line"> | undefined): TrendPoint | undefined =>
    (item?.raw as { point?: TrendPoint } | undefined)?.point;
  return {
    filter: (item: TooltipItem<"line">) => item.datasetIndex === 0,
    callbacks: {
      title: (items: TooltipItem<"line">[]) => {
        const point = pointOf(items[0]);
        return point ? `Run ${point.run}, ${dateText(point.at_ms, 0)}` : "";
      },
      label: (item: TooltipItem<"line">) => {
        const point = pointOf(item);
        if (!point) return "";
        const interval =
          point.low === null || point.high === null ? "" : ` (${show(point.low)} to ${show(point.high)})`;
        return `${show(point.value)}${interval}${point.verdict ? `, ${point.verdict.toLowerCase()}` : ""}`;
      },
    },
  };
}

function configuration(data: TrendChart): ChartConfiguration {
  const show = SHOW[data.shown_as];
  const made = {
    type: "line",
    data: { datasets: datasets(data) },
    options: {
      parsing: false,
      spanGaps: false,
      layout: { padding: { right: 8 } },
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: {
          type: "linear",
          ...timeRange(data),
          title: { display: true, text: "Start of the run" },
          ticks: {
            callback: (_: number | string, index: number, ticks: readonly { value: number }[]) =>
              dateTexts(ticks.map((tick) => tick.value))[index],
            maxRotation: 0,
          },
          afterBuildTicks: (axis: { min: number; max: number; width: number; ticks: { value: number }[] }) => {
            const ticks = dateTicks(axis.min, axis.max, Math.max(2, Math.floor(axis.width / 130)));
            if (ticks.length > 0) axis.ticks = ticks.map((value) => ({ value }));
          },
        },
        y: {
          ...valueRange(data),
          title: { display: true, text: data.label },
          ticks: { callback: (value: number | string) => exactText(Number(value), show), maxTicksLimit: 8 },
        },
      },
      plugins: { tooltip: tooltip(data) },
    },
    plugins: [marks(data)],
  };
  return made as unknown as ChartConfiguration;
}

/** A click on a point opens its run. */
function openRun(chart: ChartOf, data: TrendChart): void {
  chart.canvas.addEventListener("click", (event) => {
    const [hit] = chart.getElementsAtEventForMode(event, "nearest", { intersect: true }, false);
    const point = hit?.datasetIndex === 0 ? data.points[hit.index] : undefined;
    if (point) location.assign(`/runs/${point.run}/`);
  });
}

export function initTrendChart(): void {
  const data = readJson("trend-data", trendChart);
  const canvas = find("trend-chart", HTMLCanvasElement);
  if (!data || !canvas || data.points.length === 0) return;
  const chart = new Chart(canvas, configuration(data));
  follow(chart);
  openRun(chart, data);
  initSavePicture();
}
