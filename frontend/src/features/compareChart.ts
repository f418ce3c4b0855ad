/** Means with confidence intervals over the levels of x: lines for numbers, bars for names. */

import { BarController, BarElement, type ChartConfiguration, type Plugin, type TooltipItem } from "chart.js";
import {
  BarWithErrorBar,
  BarWithErrorBarsController,
  LineWithErrorBarsController,
  PointWithErrorBar,
} from "chartjs-chart-error-bars";
import { type Comparison, type Level, type MeansCharts, meansCharts, type Panel, type Series } from "#payloads/compare";
import { log2Bounds, powersOfTwo, tickText, wantsEven, wantsLog2 } from "../lib/axis";
import { Chart } from "../lib/charts";
import { type Look, lookAt } from "../lib/colours";
import { readJson } from "../lib/dom";
import { SHOW, significant } from "../lib/format";
import { drawCeilings, heightsOf, highestInReach, legendOfCeiling } from "./ceilingLines";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";
import { markedIn, marksOf, ShownFinding } from "./findingMarks";
import { drawLabels } from "./lineLabels";
import { drawReferences, legendOf } from "./referenceLines";
import { boxes, placesScale, repeatsDataset, repeatsTooltip } from "./repeatsChart";

Chart.register(
  BarController,
  BarElement,
  BarWithErrorBarsController,
  BarWithErrorBar,
  LineWithErrorBarsController,
  PointWithErrorBar,
);

type XAxis = "log2" | "linear" | "even" | "names";

/** Numbers on a linear axis, or on a log2 axis if their range is wide, or evenly spaced if it also has a zero; names
 * and bars side by side. */
export function xAxisOf(data: Pick<PanelData, "levels" | "kind">): XAxis {
  if (data.kind === "bar") return "names";
  const values = data.levels.flatMap((level) => (level.number === null ? [] : [level.number]));
  if (values.length < 2 || values.length < data.levels.length) return "names";
  if (wantsEven(values)) return "even";
  return wantsLog2(values) ? "log2" : "linear";
}

/** One panel with the levels that it has. */
export interface PanelData extends Omit<MeansCharts, "comparison"> {
  readonly x_label: string;
  readonly metric_label: string;
  readonly shown_as: Comparison["shown_as"];
  readonly levels: readonly Level[];
  readonly series: readonly Series[];
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

/** Whether x is the place of a level, not its number. */
const isPlaced = (axis: XAxis): boolean => axis === "names" || axis === "even";

/** Bars or points for names, unless the query asks for lines. */
const isApart = (data: Pick<PanelData, "kind">, axis: XAxis): boolean => axis === "names" && data.kind !== "line";

/** The length of a bar is its value, so a logarithmic axis, which has no zero to start from, has points. */
function isBars(data: Pick<PanelData, "kind" | "logarithmic">, axis: XAxis): boolean {
  return isApart(data, axis) && !data.logarithmic;
}

export function spreads(series: Series, data: Pick<PanelData, "levels">, axis: XAxis): Spread[] {
  return series.cells.map(({ level, summary, text, spread_text, doubts }) => ({
    x: isPlaced(axis) ? level : (data.levels[level]?.number ?? 0),
    y: summary.mean,
    yMin: summary.low ?? summary.mean,
    yMax: summary.high ?? summary.mean,
    n: summary.n,
    text,
    spread_text,
    doubts,
  }));
}

/** One entry for each level, in order: for named levels, the plugin of error bars takes the place in the data as x. */
export function onePerLevel(made: readonly Spread[], levels: number): Spread[] {
  const none = { y: Number.NaN, yMin: Number.NaN, yMax: Number.NaN, n: 0, text: "", spread_text: "", doubts: [] };
  return Array.from({ length: levels }, (_, x) => made.find((each) => each.x === x) ?? { ...none, x });
}

const DASHED = [4, 4]; // over levels without a value

interface Segment {
  readonly p0DataIndex: number;
  readonly p1DataIndex: number;
}

export function dataset(series: Series, data: PanelData, axis: XAxis, look: Look): object {
  const bars = isBars(data, axis);
  const known = spreads(series, data, axis);
  const made = isPlaced(axis) ? onePerLevel(known, data.levels.length) : known;
  const levelAt = (index: number): number => (isPlaced(axis) ? index : (series.cells[index]?.level ?? index));
  const gap = (from: number, to: number): boolean => levelAt(to) - levelAt(from) > 1;
  const solid = bars ? `${look.colour}b0` : look.colour;
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    data: made,
    borderColor: look.colour,
    // hollow: doubtful
    backgroundColor: made.map((each) => (each.doubts.length > 0 ? `${look.colour}22` : solid)),
    borderWidth: bars ? 1 : 2,
    showLine: !isApart(data, axis),
    spanGaps: true,
    segment: {
      borderDash: ({ p0DataIndex, p1DataIndex }: Segment) => (gap(p0DataIndex, p1DataIndex) ? DASHED : undefined),
    },
    // A point with an error bar has the options of an element, without the prefix "point".
    ...(bars ? { maxBarThickness: 48 } : { pointStyle: look.marker, radius: 5, hoverRadius: 7 }),
    errorBarColor: bars ? "#8a929c" : look.colour,
    errorBarWhiskerColor: bars ? "#8a929c" : look.colour,
    errorBarLineWidth: 1.5,
    errorBarWhiskerSize: 8,
  };
}

function xScale(data: PanelData, axis: XAxis): object {
  const title = { display: true, text: data.x_label };
  const textOf = (value: number): string =>
    data.levels.find((level) => level.number === value)?.text ?? (axis === "log2" ? "" : significant(value));
  if (isPlaced(axis)) {
    const texts = data.levels.map((level) => level.text);
    const lines = labelLines(texts);
    const ticks = { callback: (_: unknown, index: number) => lines[index], autoSkip: true, maxRotation: 0 };
    return { type: "category", labels: texts, ticks, title };
  }
  const values = data.levels.flatMap((level) => (level.number === null ? [] : [level.number]));
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

const LONGEST_LINE = 16;

/** Labels of levels that have several parts: one line for each part in which they differ. A long line loses its begin. */
export function labelLines(texts: readonly string[]): string[][] {
  const parts = texts.map((text) => text.split(" · "));
  const same = (place: number): boolean => parts.every((each) => each[place] === parts[0]?.[place]);
  const alike = texts.length > 1 && parts.every((each) => each.length === parts[0]?.length);
  return parts.map((each) => {
    const told = alike ? each.filter((_, place) => !same(place)) : each;
    return told.map((part) => (part.length > LONGEST_LINE ? `…${part.slice(1 - LONGEST_LINE)}` : part));
  });
}

function ticksFor(values: readonly number[], axis: XAxis): { value: number }[] {
  if (axis !== "log2") return values.map((value) => ({ value }));
  return powersOfTwo(Math.min(...values), Math.max(...values)).map((value) => ({ value }));
}

/** The texts of the table. */
export function tooltipText(label: string, point: Spread): string {
  const interval = point.n > 1 ? ` (95 % CI ${point.spread_text}, n = ${point.n})` : ` (${point.spread_text})`;
  const doubts = point.doubts.map((doubt) => `; ${doubt}`).join("");
  return `${label}: ${point.text}${interval}${doubts}`;
}

/** Only the levels that the panel has, so that no chart is mostly empty. */
export function panelData(data: MeansCharts, panel: Panel): PanelData {
  const { comparison, ...display } = data;
  const used = [...new Set(panel.series.flatMap((series) => series.cells.map((cell) => cell.level)))].sort(
    (a, b) => a - b,
  );
  const series = panel.series.map((each) => ({
    ...each,
    cells: each.cells.map((cell) => ({ ...cell, level: used.indexOf(cell.level) })),
  }));
  const { x_label, shown_as, unit } = comparison;
  // Values in the units that we know name them in each tick.
  const metric_label = shown_as === "entered" && unit ? `${comparison.metric_label}, ${unit}` : comparison.metric_label;
  const levels = used.flatMap((index) => comparison.levels[index] ?? []);
  const references = display.references
    .filter((line) => comparison.panels[line.panel] === panel)
    .map((line) => ({
      ...line,
      points: line.points.flatMap((point) => {
        const level = used.indexOf(point.level);
        return level < 0 ? [] : [{ ...point, level }];
      }),
    }));
  return { ...display, references, x_label, metric_label, shown_as, levels, series };
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** Intervals of fewer repeats can be thousands of times wider than the differences between values. */
const MIN_REPEATS_OF_AXIS = 3;

function reach(summary: Series["cells"][number]["summary"]): { low: number; high: number } {
  const wide = summary.n >= MIN_REPEATS_OF_AXIS;
  const low = Math.min(summary.mean, ...summary.values);
  const high = Math.max(summary.mean, ...summary.values);
  return wide ? { low: summary.low ?? low, high: summary.high ?? high } : { low, high };
}

/** Whether an interval reaches beyond the axis, so that the axis must not grow with it. */
function isCut(panels: readonly PanelData[], bounds: Bounds): boolean {
  if (panels.some((panel) => panel.kind === "box")) return false;
  const cells = panels.flatMap((panel) => panel.series.flatMap((series) => series.cells));
  return cells.some(({ summary }) => (summary.high ?? 0) > bounds.max || (summary.low ?? bounds.min) < bounds.min);
}

/** The lowest and the highest value or interval bound, with a margin above (and below, on a log axis). Intervals of two
 * repeats do not count. */
export function boundsOf(panels: readonly PanelData[], logarithmic: boolean): Bounds | null {
  const cells = panels.flatMap((panel) => panel.series.flatMap((series) => series.cells));
  const found = cells.map((cell) => reach(cell.summary));
  const data = Math.max(...found.map((each) => each.high));
  const highs = [data, highestInReach(panels.flatMap(heightsOfLines), data)];
  const lows = found.map((each) => each.low);
  if (found.length === 0) return null;
  if (!logarithmic) return { min: 0, max: Math.max(...highs) * 1.05 };
  const above = lows.filter((low) => low > 0);
  return above.length > 0 ? { min: Math.min(...above) * 0.8, max: Math.max(...highs) * 1.25 } : null;
}

/** Of ceilings and references. */
function heightsOfLines(panel: PanelData): number[] {
  return [...heightsOf(panel.ceilings), ...panel.references.flatMap((line) => line.points.map((point) => point.value))];
}

/** All repeats instead of their means. */
function ofRepeats(data: PanelData, looks: Looks): ChartConfiguration {
  const texts = data.levels.map((level) => level.text);
  const count = data.series.length;
  const values = data.series.flatMap((series) => series.cells.flatMap((cell) => cell.summary.values));
  const highest = Math.max(...values);
  const top = Math.max(highest, highestInReach(heightsOfLines(data), highest));
  const made = {
    type: "line",
    data: {
      datasets: data.series.map((each, index) => repeatsDataset(each, index, count, looks.get(each.name) ?? lookAt(0))),
    },
    options: {
      interaction: { mode: "nearest", intersect: false },
      scales: {
        x: placesScale(texts, { display: true, text: data.x_label }),
        y: yScale(data, data.logarithmic ? null : { min: 0, max: top }),
      },
      plugins: { tooltip: { callbacks: repeatsTooltip } },
    },
    plugins: [boxes],
  };
  return made as unknown as ChartConfiguration;
}

function configuration(data: PanelData, axis: XAxis, looks: Looks, bounds: Bounds | null): ChartConfiguration {
  const bars = isBars(data, axis);
  const made = {
    type: bars ? "barWithErrorBars" : "lineWithErrorBars",
    data: {
      ...(isPlaced(axis) ? { labels: data.levels.map((level) => level.text) } : {}),
      datasets: data.series.map((series) => dataset(series, data, axis, looks.get(series.name) ?? lookAt(0))),
    },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: { x: xScale(data, axis), y: yScale(data, bounds) },
      plugins: {
        tooltip: {
          filter: (item: TooltipItem<"line">) => Number.isFinite(item.parsed.y),
          callbacks: {
            title: titleOf(data, axis),
            label: (item: TooltipItem<"line">) => tooltipText(item.dataset.label ?? "", item.raw as Spread),
          },
        },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

/** A suggestion on a linear axis, so that the axis ends at a round number, unless an interval would move the end. */
function boundary(data: PanelData, bounds: Bounds | null): object {
  if (!bounds) return {};
  if (data.logarithmic) return bounds;
  return isCut([data], bounds) ? { min: 0, max: roundedUp(bounds.max) } : { min: 0, suggestedMax: bounds.max };
}

/** The next number with two digits: 1,234 becomes 1,300. */
export function roundedUp(value: number): number {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  return value > 0 ? Math.ceil(value / step) * step : 1;
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

function titleOf(data: PanelData, axis: XAxis): (items: TooltipItem<"line">[]) => string {
  return (items) => {
    const x = (items[0]?.raw as Spread | undefined)?.x;
    const level = data.levels.find((each, index) => (isPlaced(axis) ? index : each.number) === x);
    return `${data.x_label} ${level?.text ?? ""}`;
  };
}

/** Ceilings and references together, so that their labels do not cover each other. */
function linesOf(part: PanelData): Plugin {
  const axis = part.kind === "box" ? "names" : xAxisOf(part);
  const across = (level: number): number => (isPlaced(axis) ? level : (part.levels[level]?.number ?? level));
  const draw = (chart: Chart): void => {
    const ceilings = drawCeilings(chart, part.ceilings);
    drawLabels(chart, [...ceilings, ...drawReferences(chart, part.references, across, part.levels.length)]);
  };
  return { id: "lines", afterDatasetsDraw: draw };
}

/** Level of the comparison -> place on x of the panel's chart. */
export function placesOf(comparison: Comparison, part: PanelData): Map<number, number> {
  const placed = isPlaced(part.kind === "box" ? "names" : xAxisOf(part));
  return new Map(
    part.levels.map((level, index) => [comparison.levels.indexOf(level), placed ? index : (level.number ?? index)]),
  );
}

/** Ceilings and references in the legend. A line in several charts has its values in the charts. */
function legendLines(data: MeansCharts): string[] {
  const several = data.comparison.panels.length > 1;
  const references = data.references.map((line) => (several ? line.name : legendOf(line)));
  return [...data.ceilings.map(legendOfCeiling), ...new Set(references)];
}

export function initCompareCharts(): void {
  const data = readJson("compare-data", meansCharts);
  if (!data) return;
  const page = new ComparePage();
  const looks = page.looks;
  const canvases = [...document.querySelectorAll<HTMLCanvasElement>("canvas[data-panel]")];
  const parts = data.comparison.panels.map((panel) => panelData(data, panel));
  const together = data.shared ? boundsOf(parts, data.logarithmic) : null;
  const shownFinding = new ShownFinding();
  const charts = canvases.flatMap((canvas) => {
    const panel = Number(canvas.dataset.panel);
    const part = parts[panel];
    if (!part) return [];
    const places = placesOf(data.comparison, part);
    const marked = () => shownFinding.current && markedIn(shownFinding.current, panel, places);
    const bounds = together ?? boundsOf([part], data.logarithmic);
    const made = part.kind === "box" ? ofRepeats(part, looks) : configuration(part, xAxisOf(part), looks, bounds);
    const plugins = [...(made.plugins ?? []), linesOf(part), marksOf(marked)];
    return [new Chart(canvas, { ...made, plugins })];
  });
  shownFinding.listen(data.comparison, () => {
    for (const chart of charts) chart.draw();
  });
  page.lines = legendLines(data);
  page.finish(charts);
}
