/** The tables of a run, one for each pattern: each cell has the mean of a point's repeats, coloured by its size. */

import type { LiveCell } from "#payloads/live";
import { setText } from "../lib/dom";
import { bytesPerSecond, iops, latency } from "../lib/format";
import { MISSING } from "../lib/labels";
import { addsUp, cellText, cellTitle, type Metric, meanOf, NUMBER } from "./runCells";

const STEPS = 9; // colours in heat.css
const FORMAT: Readonly<Record<Exclude<Metric, "own">, (value: number | null) => string>> = {
  iops,
  rate: bytesPerSecond,
  p99: latency,
  mean: latency,
};

/** The meaning of the colours. An engine's own metric may be better or worse if it is higher. */
export const CONTRAST: Readonly<Record<Metric, string>> = {
  iops: "Darker: more IOPS",
  rate: "Darker: a higher bandwidth",
  p99: "Darker: a higher latency, which is worse",
  mean: "Darker: a higher latency, which is worse",
  own: "Darker: a higher value",
};

export function paintPivots(known: ReadonlyMap<number, LiveCell>, metric: Metric): void {
  setText(document.getElementById("pivot-colours"), CONTRAST[metric]);
  for (const table of document.querySelectorAll<HTMLTableElement>("#run-pivots table"))
    paintTable(table, known, metric);
}

function paintTable(table: HTMLTableElement, known: ReadonlyMap<number, LiveCell>, metric: Metric): void {
  const places = [...table.querySelectorAll<HTMLTableCellElement>("[data-trials]")].map((place) => {
    const numbers = (place.dataset.trials ?? "").split(" ").map(Number);
    const cells = numbers.map((number) => known.get(number)).filter((cell) => cell !== undefined);
    return { place, cells, size: sizeOf(cells, metric) };
  });
  const sizes = places.map(({ size }) => size).filter((size) => size !== null);
  for (const { place, cells, size } of places) {
    if (cells.length > 0) paintCell(place, cells, metric, size === null ? null : heatStep(size, sizes));
  }
}

function paintCell(place: HTMLTableCellElement, cells: readonly LiveCell[], metric: Metric, step: number | null): void {
  const state = stateOf(cells);
  const marks = [
    step === null ? `trial state-${state}` : `heat-s${step}`,
    step !== null && state === "running" ? "is-running" : "",
    cells.some((cell) => cell.kernel_lines > 0) ? "is-troubled" : "",
    step === null && cells.some((cell) => cell.invalid !== "") ? "is-invalid" : "",
  ];
  place.className = marks.filter((mark) => mark !== "").join(" ");
  const link = place.querySelector("a");
  if (!link) return;
  link.textContent = meanText(cells, metric) || "·";
  link.title = cells.map(cellTitle).join("\n");
}

/** The state that needs attention first. */
function stateOf(cells: readonly LiveCell[]): string {
  const states = cells.map((cell) => cell.state);
  return ["running", "failed", "lost", "planned"].find((state) => states.includes(state)) ?? states[0] ?? "planned";
}

function valid(cells: readonly LiveCell[]): LiveCell[] {
  return cells.filter((cell) => cell.state === "done" && cell.values.length > 0 && !cell.invalid);
}

/** The geometric mean of the valid repeats by direction, or the state; the same as in `grid.mean_text`. */
export function meanText(cells: readonly LiveCell[], metric: Metric): string {
  const measured = valid(cells);
  const only = measured[0] ?? cells.find((cell) => cell.state === stateOf(cells));
  if (only?.state === "cancelled") return "–"; // its label would widen every column of a cancelled run
  if (measured.length < 2) return only ? cellText(only, metric) : "";
  if (metric === "own") return measured.map((cell) => cellText(cell, metric)).join(" ");
  if (mean(measured.flatMap((cell) => cell.values.map(NUMBER[metric]))) === null) return MISSING.noValue;
  const directions = [...new Set(measured.flatMap((cell) => cell.values.map((value) => value.direction)))];
  return directions
    .map((direction) => {
      const values = measured.flatMap((cell) => cell.values).filter((value) => value.direction === direction);
      return meanAndZeros(values.map(NUMBER[metric]), metric);
    })
    .join(" / ");
}

/** `619 (0 in 1 of 3)`: a value of 0 is not in the mean. */
function meanAndZeros(numbers: readonly (number | null)[], metric: Exclude<Metric, "own">): string {
  const average = mean(numbers);
  const zeros = numbers.filter((number) => number === 0).length;
  const note = zeros > 0 && average ? ` (0 in ${zeros} of ${numbers.filter((number) => number !== null).length})` : "";
  return FORMAT[metric](average) + note;
}

/** One number for the colour: the mean over repeats of the sum over directions, of latencies of the largest. */
export function sizeOf(cells: readonly LiveCell[], metric: Metric): number | null {
  const sizes = valid(cells).map((cell) => {
    const numbers = cell.values.map(NUMBER[metric]).filter((value) => value !== null);
    if (numbers.length === 0) return null;
    return addsUp(metric) ? numbers.reduce((sum, value) => sum + value, 0) : Math.max(...numbers);
  });
  const found = mean(sizes);
  return found !== null && found > 0 ? found : null;
}

function mean(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length ? meanOf(known) : null;
}

/** The colour of a value among all values of its table, on a log scale. */
export function heatStep(size: number, sizes: readonly number[]): number {
  const low = Math.log(Math.min(...sizes));
  const high = Math.log(Math.max(...sizes));
  if (high - low < 1e-9) return 0;
  return Math.min(STEPS - 1, Math.floor(((Math.log(size) - low) / (high - low)) * STEPS));
}
