/** Ceilings of targets in a chart of bandwidth: a dashed line each, and a band for the practical range. */

import type { ChartType, Plugin } from "chart.js";
import type { ChartCeiling } from "#payloads/charts";
import { themed } from "../lib/colours";
import { bytesPerSecond } from "../lib/format";
import { type Drawn, drawLabels, type LineLabel } from "./lineLabels";

const BAND = "#8a929c33";

/** The upper ends of ceilings. */
export function heightsOf(ceilings: readonly ChartCeiling[]): number[] {
  return ceilings.map((ceiling) => Math.max(ceiling.value, ceiling.high ?? 0));
}

/** The highest ceiling, for the range of the axis; 0 without ceilings. */
export function highest(ceilings: readonly ChartCeiling[]): number {
  return Math.max(0, ...heightsOf(ceilings));
}

/** With a line above this multiple of the highest value, the axis would make the data flat. */
const REACH = 3;

/** The highest line that leaves the data readable, for the range of the axis; 0 without one. */
export function highestInReach(lines: readonly number[], data: number): number {
  return Math.max(0, ...lines.filter((value) => value <= REACH * data));
}

/** For the legend, such as `Ceiling of storage1/raid: 3.63 GB/s`. */
export function legendOfCeiling(ceiling: ChartCeiling): string {
  return `Ceiling of ${ceiling.text}: ${bytesPerSecond(ceiling.value)}`;
}

/** The position of each ceiling: `y` of its line, and of its band if it has one. Ceilings outside the axis are left out. */
export function placed(
  ceilings: readonly ChartCeiling[],
  pixel: (value: number) => number,
  area: { top: number; bottom: number },
): { name: string; value: string; y: number; band: { top: number; bottom: number } | null }[] {
  return ceilings.flatMap((ceiling) => {
    const y = pixel(ceiling.value);
    if (!(y >= area.top - 1 && y <= area.bottom + 1)) return [];
    const { low, high } = ceiling;
    const band =
      low === null || high === null
        ? null
        : { top: Math.max(area.top, pixel(high)), bottom: Math.min(area.bottom, pixel(low)) };
    return [{ name: ceiling.text, value: bytesPerSecond(ceiling.value), y, band }];
  });
}

export function ceilingLines<T extends ChartType>(ceilings: readonly ChartCeiling[]): Plugin<T> {
  return { id: "ceilings", afterDatasetsDraw: (chart) => drawLabels(chart, drawCeilings(chart, ceilings)) };
}

/** Draw lines and bands. Returns their labels. */
export function drawCeilings(chart: Drawn, ceilings: readonly ChartCeiling[]): LineLabel[] {
  const scale = chart.scales.y;
  if (!scale) return [];
  const { left, right } = chart.chartArea;
  const pen = chart.ctx;
  const lines = placed(ceilings, (value) => scale.getPixelForValue(value), chart.chartArea);
  pen.save();
  pen.fillStyle = BAND;
  for (const { band } of lines) if (band) pen.fillRect(left, band.top, right - left, band.bottom - band.top);
  pen.strokeStyle = themed("--ss-chart-text");
  pen.lineWidth = 1.5;
  pen.setLineDash([6, 4]);
  for (const { y } of lines) {
    pen.beginPath();
    pen.moveTo(left, y);
    pen.lineTo(right, y);
    pen.stroke();
  }
  pen.restore();
  return lines.map(({ name, value, y }) => ({ name, value, end: { x: left, y } }));
}
