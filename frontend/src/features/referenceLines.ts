/** References in a chart of means: dotted lines over the levels that they have, each with its name and value. */

import type { Chart, ChartType, Plugin } from "chart.js";
import { themed } from "../lib/colours";
import type { ReferenceLine } from "../payloads/compare";

const DOTS = [2, 3];
const LABEL_HEIGHT = 12;
const EDGE = 3; // px around the letters of a label, half of it outside
const SHORT = 18; // half the width of a line with one level
const LONGEST_NAME = 48;

interface Place {
  readonly x: number;
  readonly y: number;
}

/** The pixels of a line. A single level becomes a short line, or one across the chart if the chart has only this level. */
export function placesOf(
  line: ReferenceLine,
  across: (level: number) => number,
  up: (value: number) => number,
  area: { left: number; right: number },
  levels: number,
): Place[] {
  const places = line.points.map(({ level, value }) => ({ x: across(level), y: up(value) }));
  const [only] = places;
  if (places.length !== 1 || !only) return places;
  const [left, right] = levels === 1 ? [area.left, area.right] : [only.x - SHORT, only.x + SHORT];
  return [
    { x: Math.max(area.left, left), y: only.y },
    { x: Math.min(area.right, right), y: only.y },
  ];
}

/** Name and last value, as in `X25-M: 35.4k`. */
export function labelOf(line: ReferenceLine): string {
  const name = line.name.length > LONGEST_NAME ? `${line.name.slice(0, LONGEST_NAME - 1)}…` : line.name;
  return `${name}: ${line.points.at(-1)?.text ?? ""}`;
}

/** For the legend: name and values from the first to the last level. */
export function legendOf(line: ReferenceLine): string {
  const texts = [...new Set([line.points[0]?.text, line.points.at(-1)?.text])];
  return `${line.name}: ${texts.join(" to ")}`;
}

/** The nearest free height for a label, above the line if possible. */
export function freeHeight(wanted: number, used: readonly number[], top: number): number {
  let y = Math.max(wanted, top + LABEL_HEIGHT);
  while (used.some((other) => Math.abs(other - y) < LABEL_HEIGHT)) y += LABEL_HEIGHT;
  return y;
}

/** `across` gives the value on x of a level. */
export function referenceLines<T extends ChartType>(
  lines: readonly ReferenceLine[],
  across: (level: number) => number,
  levels: number,
): Plugin<T> {
  return { id: "references", afterDatasetsDraw: (chart) => draw(chart, lines, across, levels) };
}

/** What a chart of any type has. */
interface Drawn {
  readonly scales: Chart["scales"];
  readonly chartArea: Chart["chartArea"];
  readonly ctx: Chart["ctx"];
}

function draw(chart: Drawn, lines: readonly ReferenceLine[], across: (level: number) => number, levels: number): void {
  const { x: columns, y: rows } = chart.scales;
  if (!columns || !rows || lines.length === 0) return;
  const { left, right, top, bottom } = chart.chartArea;
  const pen = chart.ctx;
  const used: number[] = [];
  pen.save();
  pen.strokeStyle = themed("--ss-chart-text");
  pen.font = "11px sans-serif";
  pen.textAlign = "right";
  for (const line of lines) {
    const places = placesOf(
      line,
      (level) => columns.getPixelForValue(across(level)),
      (value) => rows.getPixelForValue(value),
      { left, right },
      levels,
    );
    stroke(pen, places, { left, top, width: right - left, height: bottom - top });
    const end = places.findLast((place) => place.y >= top && place.y <= bottom);
    if (!end) continue;
    const label = labelOf(line);
    const height = freeHeight(end.y - 4, used, top);
    used.push(height);
    const width = Math.min(pen.measureText(label).width, right - left);
    const x = Math.min(right - 2, Math.max(end.x, left + width + 2));
    write(pen, label, x, height, right - left - 4);
  }
  pen.restore();
}

/** Write text with an edge in the colour of the background, so that lines beside the letters stay visible. */
function write(pen: CanvasRenderingContext2D, text: string, x: number, y: number, widest: number): void {
  pen.save();
  pen.lineJoin = "round";
  pen.lineWidth = EDGE;
  pen.strokeStyle = themed("--tblr-bg-surface") || "#ffffff";
  pen.strokeText(text, x, y, widest);
  pen.fillStyle = themed("--ss-chart-text");
  pen.fillText(text, x, y, widest);
  pen.restore();
}

function stroke(
  pen: CanvasRenderingContext2D,
  places: readonly Place[],
  area: { left: number; top: number; width: number; height: number },
): void {
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top, area.width, area.height);
  pen.clip();
  pen.setLineDash(DOTS);
  pen.lineWidth = 1.5;
  pen.beginPath();
  places.forEach((place, index) => {
    if (index === 0) pen.moveTo(place.x, place.y);
    else pen.lineTo(place.x, place.y);
  });
  pen.stroke();
  pen.restore();
}
