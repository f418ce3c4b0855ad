/** All repeats of each series at each level: points, with a box where there are enough of them. */

import type { TooltipItem } from "chart.js";
import type { Series } from "#payloads/compare";
import type { Look } from "../lib/colours";
import { type Places, shapes } from "../lib/shapes";

/** A box of fewer repeats would show quartiles that are only guesses. */
export const MIN_REPEATS_OF_BOX = 5;
const WIDTH = 0.8; // of the place of a level, shared by its series

export interface Box {
  readonly x: number;
  readonly half: number; // half of its width
  readonly median: number;
  readonly lower: number; // quartiles
  readonly upper: number;
  readonly low: number; // whiskers
  readonly high: number;
  readonly whole: boolean; // else only the median is drawn
}

/** The quantile between the two nearest values (type 7 of Hyndman and Fan 1996). */
export function quantile(sorted: readonly number[], share: number): number {
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? low;
  return low + (high - low) * (at - Math.floor(at));
}

/** Whiskers reach to the last value within 1.5 times the height of the box (Tukey 1977). */
export function boxOf(values: readonly number[], x: number, half: number): Box {
  const sorted = [...values].sort((a, b) => a - b);
  const lower = quantile(sorted, 0.25);
  const upper = quantile(sorted, 0.75);
  const reach = 1.5 * (upper - lower);
  const inside = sorted.filter((value) => value >= lower - reach && value <= upper + reach);
  return {
    x,
    half,
    median: quantile(sorted, 0.5),
    lower,
    upper,
    low: inside[0] ?? lower,
    high: inside.at(-1) ?? upper,
    whole: sorted.length >= MIN_REPEATS_OF_BOX,
  };
}

export interface Repeat {
  readonly x: number;
  readonly y: number;
  readonly text: string; // mean and interval, as in the table
}

/** The middle of one of several series at a level. */
export function placeOf(level: number, index: number, count: number): number {
  return level + (index - (count - 1) / 2) * (WIDTH / count);
}

/** The dataset of one of several series. */
export function repeatsDataset(series: Series, index: number, count: number, look: Look): object {
  const half = (WIDTH / count) * 0.35;
  const data: Repeat[] = [];
  const boxes: Box[] = [];
  for (const { level, summary, text, spread_text } of series.cells) {
    const x = placeOf(level, index, count);
    const { values } = summary;
    boxes.push(boxOf(values, x, half));
    values.forEach((y, place) => {
      const shift = values.length > 1 ? (place / (values.length - 1) - 0.5) * half : 0;
      data.push({
        x: x + shift,
        y,
        text: `mean ${text} (${summary.n > 1 ? `95 % CI ${spread_text}, ` : ""}n = ${summary.n})`,
      });
    });
  }
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    data,
    boxes,
    showLine: false,
    borderColor: look.colour,
    backgroundColor: `${look.colour}b0`,
    pointStyle: look.marker,
    pointRadius: 3,
  };
}

/** x: the places of levels, with their names as ticks. */
export function placesScale(texts: readonly string[], title: object): object {
  return {
    type: "linear",
    min: -0.5,
    max: texts.length - 0.5,
    afterBuildTicks: (scale: { ticks: unknown }) => {
      scale.ticks = texts.map((_, value) => ({ value }));
    },
    ticks: {
      callback(this: { width: number }, value: number | string) {
        return inLines(texts[Number(value)] ?? "", this.width / texts.length);
      },
      maxRotation: 0,
      autoSkip: true,
    },
    grid: { display: false },
    title,
  };
}

const LETTER_PX = 8.5; // width in the font of the ticks, for names in capitals

/** A line for each word if the text is wider than its place. */
export function inLines(text: string, widthPx: number): string | string[] {
  return text.length * LETTER_PX > widthPx ? text.split(" ") : text;
}

export const repeatsTooltip = {
  title: (): string => "",
  label: (item: TooltipItem<"line">): string => `${item.dataset.label}: ${(item.raw as Repeat).text}`,
};

export const boxes = shapes<{ boxes?: readonly Box[] }>("boxes", "22", (pen, { boxes: made = [] }, _, places) => {
  for (const box of made) drawBox(pen, box, places);
});

function drawBox(pen: CanvasRenderingContext2D, box: Box, { across, up }: Places): void {
  const [left, middle, right] = [across(box.x - box.half), across(box.x), across(box.x + box.half)];
  pen.beginPath();
  pen.moveTo(left, up(box.median));
  pen.lineTo(right, up(box.median));
  if (box.whole) {
    pen.moveTo(middle, up(box.high));
    pen.lineTo(middle, up(box.upper));
    pen.moveTo(middle, up(box.lower));
    pen.lineTo(middle, up(box.low));
    pen.rect(left, up(box.upper), right - left, up(box.lower) - up(box.upper));
    pen.fill();
  }
  pen.stroke();
}
