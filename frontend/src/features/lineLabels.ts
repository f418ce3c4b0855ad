/** Labels of lines in a chart that are not series. Each label is beside an end of its line, and a leader connects both. */

import type { Chart } from "chart.js";
import { themed } from "../lib/colours";

const HEIGHT = 12; // px of a label
const LIFT = 8; // px from a line to the middle of a label above it
const GAP = 14; // between a label and the end of its line, for the leader
const HALO = 3; // px around the letters, half of it outside
const WIDEST = 320; // px
const SHARE = 0.8; // of the width of the chart, which a label may use
const MOST = 8; // labels in a chart; the lines that are closest to each other share one

export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface LineLabel {
  readonly name: string;
  readonly value: string;
  readonly end: Place; // of the line
}

export interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** What a chart of any type has. */
export interface Drawn {
  readonly scales: Chart["scales"];
  readonly chartArea: Chart["chartArea"];
  readonly ctx: Chart["ctx"];
}

/** At most `most` labels, sorted from top to bottom: lines that are closest to each other get a common label, such as
 * `3 lines: 410 to 420 MB/s`. */
export function merged(labels: readonly LineLabel[], most: number): LineLabel[] {
  const groups = [...labels].sort((a, b) => a.end.y - b.end.y).map((label) => [label]);
  const gap = (at: number): number => (groups[at + 1]?.[0]?.end.y ?? 0) - (groups[at]?.at(-1)?.end.y ?? 0);
  while (groups.length > Math.max(1, most)) {
    const gaps = groups.slice(1).map((_, at) => gap(at));
    const closest = gaps.indexOf(Math.min(...gaps));
    groups.splice(closest, 2, groups.slice(closest, closest + 2).flat());
  }
  return groups.flatMap((group) => commonLabel(group) ?? []);
}

function commonLabel(group: readonly LineLabel[]): LineLabel | undefined {
  const [highest, lowest] = [group[0], group.at(-1)];
  if (!highest || !lowest || group.length === 1) return highest;
  const middle = group[Math.floor(group.length / 2)] ?? highest;
  return { name: `${group.length} lines`, value: range(lowest.value, highest.value), end: middle.end };
}

/** With the unit once, if both have the same: `410 to 420 MB/s`. */
function range(low: string, high: string): string {
  if (low === high) return low;
  const [number = "", unit] = low.split(" ");
  return `${unit === high.split(" ")[1] ? number : low} to ${high}`;
}

/** The middle heights of labels, as near as possible to the wanted ones (ascending) without overlap, between `top` and
 * `bottom`. Least squares: labels that would overlap are moved together, around their mean. */
export function heightsFor(wanted: readonly number[], top: number, bottom: number): number[] {
  const blocks: { sum: number; count: number }[] = [];
  wanted.forEach((height, index) => {
    let block = { sum: height - index * HEIGHT, count: 1 };
    for (let above = blocks.at(-1); above && above.sum / above.count > block.sum / block.count; above = blocks.at(-1)) {
      block = { sum: above.sum + block.sum, count: above.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  const lowest = bottom - HEIGHT / 2 - (wanted.length - 1) * HEIGHT;
  const free = blocks.flatMap(({ sum, count }) => Array.from({ length: count }, () => sum / count));
  return free.map((height, index) => Math.max(top + HEIGHT / 2, Math.min(lowest, height)) + index * HEIGHT);
}

/** `Name: value` in at most `width` pixels. A long name loses its middle, because similar names differ at their ends. */
export function fitted(
  label: Pick<LineLabel, "name" | "value">,
  width: number,
  widthOf: (text: string) => number,
): string {
  const { name, value } = label;
  if (widthOf(`${name}: ${value}`) <= width) return `${name}: ${value}`;
  for (let kept = name.length - 1; kept > 1; kept -= 1) {
    const text = `${name.slice(0, Math.ceil(kept / 2)).trimEnd()}…${name.slice(-Math.floor(kept / 2)).trimStart()}: ${value}`;
    if (widthOf(text) <= width) return text;
  }
  return value;
}

/** The text of a label, and the side of the end of its line: before it if the text has room there, otherwise the side
 * with more room. `x` is the edge of the text that is nearer to the end. */
export function besideEnd(
  { end, ...label }: LineLabel,
  area: Area,
  widthOf: (text: string) => number,
): { text: string; before: boolean; x: number } {
  const widest = Math.min(WIDEST, (area.right - area.left) * SHARE - GAP);
  const [left, right] = [end.x - area.left - GAP, area.right - end.x - GAP];
  const before = left >= right || widthOf(fitted(label, widest, widthOf)) <= left;
  const text = fitted(label, Math.min(widest, before ? left : right), widthOf);
  return { text, before, x: end.x + (before ? -GAP : GAP) };
}

/** Draw all labels of a chart, left of the ends of their lines where there is room, otherwise right of them. */
export function drawLabels(chart: Drawn, labels: readonly LineLabel[]): void {
  const { ctx: pen, chartArea: area } = chart;
  pen.save();
  pen.font = `11px ${themed("--ss-font")}`;
  pen.textBaseline = "middle";
  const most = Math.min(MOST, Math.floor((area.bottom - area.top) / HEIGHT));
  const shown = merged(labels, most);
  const heights = heightsFor(
    shown.map((label) => label.end.y - LIFT),
    area.top,
    area.bottom,
  );
  const drawn = shown.map((label, index) => ({
    ...besideEnd(label, area, (text) => pen.measureText(text).width),
    y: heights[index] ?? label.end.y,
    end: label.end,
  }));
  for (const each of drawn) leader(pen, { x: each.x + (each.before ? 3 : -3), y: each.y }, each.end);
  for (const { text, before, x, y } of drawn) {
    pen.textAlign = before ? "right" : "left";
    write(pen, text, x, y);
  }
  pen.restore();
}

function leader(pen: CanvasRenderingContext2D, from: Place, to: Place): void {
  pen.strokeStyle = themed("--ss-chart-text");
  pen.fillStyle = themed("--ss-chart-text");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(from.x, from.y);
  pen.lineTo(to.x, to.y);
  pen.stroke();
  pen.beginPath();
  pen.arc(to.x, to.y, 2, 0, 2 * Math.PI);
  pen.fill();
}

/** With a halo in the colour of the background, so that lines under the letters do not disturb. */
function write(pen: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  pen.lineJoin = "round";
  pen.lineWidth = HALO;
  pen.strokeStyle = themed("--tblr-bg-surface") || "#ffffff";
  pen.strokeText(text, x, y);
  pen.fillStyle = themed("--ss-chart-text");
  pen.fillText(text, x, y);
}
