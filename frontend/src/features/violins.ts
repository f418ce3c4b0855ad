/** Violins of latency: how the I/Os of each series are spread, from the merged histograms of its repeats. */

import type { ChartConfiguration, TooltipItem } from "chart.js";
import type { LatencyCharts } from "#payloads/compare";
import { lookAt } from "../lib/colours";
import { latency } from "../lib/format";
import { shapes } from "../lib/shapes";
import type { Looks } from "./compareKey";
import { placesScale } from "./repeatsChart";

type Series = LatencyCharts["series"][number];

/** Classes per octave. A bucket of the histogram is at most 1/64 wide, so a class has several of them. */
const PER_OCTAVE = 8;
const BUCKET = 1 / 64;
const HALF_WIDTH = 0.42; // of the place of a series

/** One class of latencies. */
export interface Slice {
  readonly from: number; // ns
  readonly to: number;
  readonly share: number; // of the I/Os
}

const classOf = (ns: number): number => Math.floor(Math.log2(Math.max(ns, 1)) * PER_OCTAVE);

/** The share of I/Os in classes of equal ratio, from the lowest to the highest class with I/Os. I/Os between two known
 * latencies are spread evenly between these, on a log axis. */
export function slicesOf(series: Pick<Series, "cdf_ns" | "cdf_shares">): Slice[] {
  const shares = new Map<number, number>();
  let [below, counted] = [0, 0];
  series.cdf_ns.forEach((ns, index) => {
    const share = (series.cdf_shares[index] ?? 1) - counted;
    const low = index === 0 ? ns * (1 - BUCKET) : below;
    spread(shares, Math.max(low, 1), Math.max(ns, 1), share);
    [below, counted] = [ns, counted + share];
  });
  const known = [...shares.keys()];
  if (known.length === 0) return [];
  const first = Math.min(...known);
  const count = Math.max(...known) - first + 1;
  return Array.from({ length: count }, (_, index) => ({
    from: 2 ** ((first + index) / PER_OCTAVE),
    to: 2 ** ((first + index + 1) / PER_OCTAVE),
    share: shares.get(first + index) ?? 0,
  }));
}

function spread(shares: Map<number, number>, low: number, high: number, share: number): void {
  const [first, last] = [classOf(low * (1 + 1e-9)), classOf(high)];
  const width = Math.log2(high / low) * PER_OCTAVE;
  for (let each = first; each <= last; each += 1) {
    const [from, to] = [Math.max(each, Math.log2(low) * PER_OCTAVE), Math.min(each + 1, Math.log2(high) * PER_OCTAVE)];
    const part = first === last || width <= 0 ? 1 / (last - first + 1) : (to - from) / width;
    shares.set(each, (shares.get(each) ?? 0) + share * part);
  }
}

interface Violin {
  readonly slices: readonly Slice[];
  readonly median: number | null;
  readonly p99: number | null;
}

function dataset(series: Series, place: number, percents: readonly number[], looks: Looks): object {
  const look = looks.get(series.name) ?? lookAt(0);
  const at = (percent: number): number | null => series.percentiles_ns[percents.indexOf(percent)] ?? null;
  const slices = slicesOf(series);
  const fullest = slices.reduce<Slice | null>((best, each) => (best && best.share >= each.share ? best : each), null);
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    data: [{ x: place, y: at(50) ?? fullest?.from ?? null }],
    violin: { slices, median: at(50), p99: at(99) } satisfies Violin,
    borderColor: look.colour,
    backgroundColor: look.colour,
    pointStyle: look.marker,
    pointRadius: 4,
    showLine: false,
  };
}

/** `y` is the axis of latency. */
export function violinChart(data: LatencyCharts, looks: Looks, y: object): ChartConfiguration {
  const datasets = data.series.map((each, place) => dataset(each, place, data.percents, looks));
  const ends = data.series.flatMap((each) => slicesOf(each).flatMap((slice) => [slice.from, slice.to]));
  const range = ends.length > 0 ? { min: Math.min(...ends), max: Math.max(...ends) } : {};
  const made = {
    type: "line",
    data: { datasets },
    options: {
      interaction: { mode: "nearest", intersect: false },
      scales: {
        x: placesScale(
          data.series.map((each) => each.name),
          { display: false },
        ),
        y: { ...y, ...range },
      },
      plugins: { tooltip: { callbacks: { title: () => "", label } } },
    },
    plugins: [violins],
  };
  return made as unknown as ChartConfiguration;
}

function label(item: TooltipItem<"line">): string {
  const { median, p99 } = (item.dataset as unknown as { violin: Violin }).violin;
  const texts = [median === null ? "too few I/Os for a median" : `median ${latency(median)}`];
  if (p99 !== null) texts.push(`p99 ${latency(p99)}`);
  return `${item.dataset.label}: ${texts.join(", ")}`;
}

const violins = shapes<{ violin: Violin }>("violins", "44", (pen, { violin }, place, { across, up }) => {
  const beside = (share: number): number => across(place + share);
  outline(pen, violin.slices, beside, up);
  if (violin.p99 === null) return;
  pen.beginPath();
  pen.moveTo(beside(-HALF_WIDTH / 3), up(violin.p99));
  pen.lineTo(beside(HALF_WIDTH / 3), up(violin.p99));
  pen.stroke();
});

/** Every violin is equally wide at its fullest class. */
function outline(
  pen: CanvasRenderingContext2D,
  slices: readonly Slice[],
  across: (share: number) => number,
  up: (ns: number) => number,
): void {
  const most = Math.max(...slices.map((slice) => slice.share));
  if (slices.length === 0 || !(most > 0)) return;
  const edge = slices.map(({ from, to, share }) => ({ ns: Math.sqrt(from * to), half: (HALF_WIDTH * share) / most }));
  pen.beginPath();
  pen.moveTo(across(0), up(slices[0]?.from ?? 1));
  for (const { ns, half } of edge) pen.lineTo(across(half), up(ns));
  pen.lineTo(across(0), up(slices.at(-1)?.to ?? 1));
  for (const { ns, half } of edge.reverse()) pen.lineTo(across(-half), up(ns));
  pen.closePath();
  pen.fill();
  pen.stroke();
}
