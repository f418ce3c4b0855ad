/** References in a chart of means: dotted lines over the levels that they have, each with its name and value. */

import type { ReferenceLine } from "#payloads/compare";
import { themed } from "../lib/colours";
import type { Area, Drawn, LineLabel, Place } from "./lineLabels";

const DOTS = [2, 3];
const SHORT = 18; // half the width of a line with one level

/** The pixels of a line. A single level becomes a short line, or one across the chart if the chart has only this level. */
export function placesOf(
  line: ReferenceLine,
  across: (level: number) => number,
  up: (value: number) => number,
  area: Pick<Area, "left" | "right">,
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

/** For the legend: name and values from the first to the last level. */
export function legendOf(line: ReferenceLine): string {
  const texts = [...new Set([line.points[0]?.text, line.points.at(-1)?.text])];
  return `${line.name}: ${texts.join(" to ")}`;
}

/** Draw the lines. Returns their labels. `across` gives the value on x of a level. */
export function drawReferences(
  chart: Drawn,
  lines: readonly ReferenceLine[],
  across: (level: number) => number,
  levels: number,
): LineLabel[] {
  const { x: columns, y: rows } = chart.scales;
  if (!columns || !rows) return [];
  const area = chart.chartArea;
  const drawn = lines.map((line) => ({
    line,
    places: placesOf(
      line,
      (level) => columns.getPixelForValue(across(level)),
      (value) => rows.getPixelForValue(value),
      area,
      levels,
    ),
  }));
  for (const { places } of drawn) stroke(chart.ctx, places, area);
  return drawn.flatMap(({ line, places }) => labelOf(line, places, area) ?? []);
}

/** The name and the last value, at the last visible level. Undefined if the whole line is outside the axis. */
export function labelOf(line: ReferenceLine, places: readonly Place[], area: Area): LineLabel | undefined {
  const end = places.findLast(
    ({ x, y }) => x >= area.left - 1 && x <= area.right + 1 && y >= area.top && y <= area.bottom,
  );
  return end && { name: line.name, value: line.points.at(-1)?.text ?? "", end };
}

function stroke(pen: CanvasRenderingContext2D, places: readonly Place[], area: Area): void {
  pen.save();
  pen.strokeStyle = themed("--ss-chart-text");
  pen.beginPath();
  pen.rect(area.left, area.top, area.right - area.left, area.bottom - area.top);
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
