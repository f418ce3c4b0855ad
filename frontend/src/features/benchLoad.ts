/** Load curves of Bench: what a product reaches, and at what latency; a line for each product, a label at each point. */

import type { Chart as AnyChart, ChartConfiguration, Plugin, TooltipItem } from "chart.js";
import { type LoadChart, type LoadChartBand, type LoadChartPoint, loadCharts } from "#payloads/bench";
import { tickText } from "../lib/axis";
import { Chart, follow } from "../lib/charts";
import { lookAt, themed } from "../lib/colours";
import { readJson } from "../lib/dom";
import { SHOW } from "../lib/format";

const LEAST_BAND_PX = 6;
const DIAGONAL_ROOM = 1.06; // beside a diagonal band, so that it is seen
const MOST_NAMES = 4; // of more, the names stand above the page's plot only
const ROOM = 1.35; // beside the values of a logarithmic axis, as a factor

const labelFont = (bold = false): string => `${bold ? "600 " : ""}11px ${themed("--ss-font")}`;

interface Spot {
  readonly x: number;
  readonly y: number;
  readonly of: LoadChartPoint;
}

/** The ends of a logarithmic axis, with room on both sides. */
export function bounds(values: readonly number[]): { min: number; max: number } {
  return { min: Math.min(...values) / ROOM, max: Math.max(...values) * ROOM };
}

/** The corners of a band on the chart, in pixels; a diagonal one where x times y is limited. */
export function corners(
  band: Pick<LoadChartBand, "along" | "low" | "high">,
  axes: { x: (value: number) => number; y: (value: number) => number },
  area: { left: number; right: number; top: number; bottom: number },
  ends: { min: number; max: number },
): [number, number][] {
  if (band.along === "product") {
    const place = (x: number, limit: number): [number, number] => [axes.x(x), axes.y(limit / x)];
    return [
      place(ends.min, band.low / DIAGONAL_ROOM),
      place(ends.max, band.low / DIAGONAL_ROOM),
      place(ends.max, band.high * DIAGONAL_ROOM),
      place(ends.min, band.high * DIAGONAL_ROOM),
    ];
  }
  const [from, to] = [axes[band.along](band.low), axes[band.along](band.high)];
  const room = Math.max(0, LEAST_BAND_PX - Math.abs(to - from)) / 2;
  const [low, high] = [Math.min(from, to) - room, Math.max(from, to) + room];
  return band.along === "x"
    ? [
        [low, area.top],
        [high, area.top],
        [high, area.bottom],
        [low, area.bottom],
      ]
    : [
        [area.left, low],
        [area.right, low],
        [area.right, high],
        [area.left, high],
      ];
}

function bands(given: LoadChart): Plugin {
  return {
    id: "limits",
    beforeDatasetsDraw: (chart) => {
      const { x, y } = chart.scales;
      if (!x || !y) return;
      const { left, top, width, height } = chart.chartArea;
      const pen = chart.ctx;
      pen.save();
      pen.beginPath();
      pen.rect(left, top, width, height);
      pen.clip();
      pen.fillStyle = themed("--ss-chart-shade");
      const axes = { x: (value: number) => x.getPixelForValue(value), y: (value: number) => y.getPixelForValue(value) };
      for (const band of given.bands) {
        pen.beginPath();
        for (const [across, down] of corners(band, axes, chart.chartArea, x)) pen.lineTo(across, down);
        pen.closePath();
        pen.fill();
      }
      pen.restore();
    },
    afterDatasetsDraw: (chart) => {
      write(chart, given);
    },
  };
}

interface Point {
  readonly across: number;
  readonly down: number;
}

function isOn(point: Point, text: { left: number; right: number; y: number }): boolean {
  const { across, down } = point;
  return across > text.left - 3 && across < text.right + 3 && down > text.y - 13 && down < text.y + 5;
}

/** Points along a line, close enough to keep texts away from it. */
function along(points: readonly Point[]): Point[] {
  return points.flatMap((from, index) => {
    const to = points[index + 1];
    if (!to) return [from];
    const steps = Math.max(1, Math.ceil(Math.hypot(to.across - from.across, to.down - from.down) / 6));
    return Array.from({ length: steps }, (_, step) => ({
      across: from.across + ((to.across - from.across) * step) / steps,
      down: from.down + ((to.down - from.down) * step) / steps,
    }));
  });
}

/** Writes texts where no other text stands yet. */
class Writer {
  private readonly taken: { left: number; right: number; y: number }[] = [];

  constructor(
    private readonly pen: CanvasRenderingContext2D,
    private readonly width: number,
    private readonly left: number,
    private readonly top: number,
  ) {
    pen.font = labelFont();
    pen.textAlign = "left";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    pen.strokeStyle = themed("--ss-card");
  }

  /** At the first of these places (left end, baseline) that is free and on the chart. `away`: also of these points. */
  put(text: string, places: readonly (readonly [number, number])[], bold = false, away: readonly Point[] = []): void {
    this.pen.font = labelFont(bold);
    this.pen.fillStyle = themed(bold ? "--ss-ink" : "--ss-chart-text");
    const { width } = this.pen.measureText(text);
    for (const [x, y] of places) {
      const place = { left: x, right: x + width, y };
      if (
        x < this.left ||
        y < this.top ||
        place.right > this.width ||
        !this.isFree(place) ||
        away.some((one) => isOn(one, place))
      )
        continue;
      this.taken.push(place);
      this.pen.strokeText(text, x, y);
      this.pen.fillText(text, x, y);
      return;
    }
  }

  /** Keeps texts away from a mark. */
  keep(x: number, y: number): void {
    this.taken.push({ left: x - 4, right: x + 4, y: y + 4 });
  }

  widthOf(text: string, bold = false): number {
    this.pen.font = labelFont(bold);
    return this.pen.measureText(text).width;
  }

  private isFree(place: { left: number; right: number; y: number }): boolean {
    return this.taken.every(
      (one) => Math.abs(one.y - place.y) >= 11 || place.left > one.right + 2 || place.right + 2 < one.left,
    );
  }
}

/** The texts of limits, of lines and of points. */
function write(chart: AnyChart, given: LoadChart): void {
  const { x, y } = chart.scales;
  if (!x || !y) return;
  const pen = chart.ctx;
  const { left, right, top } = chart.chartArea;
  pen.save();
  const writer = new Writer(pen, chart.width, left, Math.max(top - 8, 11));
  const spots = given.series.map((series) =>
    series.points.map((point) => ({ across: x.getPixelForValue(point.x), down: y.getPixelForValue(point.y), point })),
  );
  for (const { across, down } of spots.flat()) writer.keep(across, down);
  for (const band of given.bands) {
    const width = writer.widthOf(band.text);
    if (band.along === "x") writer.put(band.text, [[x.getPixelForValue(band.high) - width, top - 5]]);
    if (band.along === "y") writer.put(band.text, [[left + 8, y.getPixelForValue(band.low) + 18]]);
    if (band.along === "product") {
      const xs = [3, 6, 12, 24, 48].map((part) => x.max / part);
      writer.put(
        band.text,
        xs.map((at) => [Math.min(x.getPixelForValue(at) + 14, right - width), y.getPixelForValue(band.high / at)]),
      );
    }
  }
  const lines = spots.flatMap((own) => along(own));
  if (given.series.length <= MOST_NAMES) {
    given.series.forEach((series, index) => {
      const width = writer.widthOf(series.name, true);
      const places = (spots[index] ?? []).flatMap(({ across, down }) => {
        const sides = [across + 10, Math.min(across - width / 2, right - width), across - width - 10];
        return [-22, 22, 30, 5].flatMap((far) => sides.map((side) => [side, down + far] as const));
      });
      writer.put(series.name, places, true, lines);
    });
  }
  for (const own of spots) {
    own.forEach(({ across, down, point }, place) => {
      if (point.label === "") return;
      const next = own[place + 1] ?? own[place - 1];
      const isSteep = next !== undefined && Math.abs(next.across - across) < 16;
      const width = writer.widthOf(point.label);
      const beside = [across + 9, down + 4] as const;
      const above = [across - width / 2, down - 9] as const;
      const below = [across - width / 2, down + 17] as const;
      writer.put(point.label, isSteep ? [beside, [across - width - 9, down + 4]] : [above, below, beside]);
    });
  }
  pen.restore();
}

/** 1, 2 and 5 times powers of ten. */
export function powers(min: number, max: number): number[] {
  const first = Math.floor(Math.log10(min));
  const last = Math.ceil(Math.log10(max));
  const all = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
  const wide = max / min > 3000;
  const steps = wide ? [1] : [1, 2, 5];
  return all.flatMap((power) => steps.map((step) => step * power)).filter((value) => value >= min && value <= max);
}

function configuration(given: LoadChart): ChartConfiguration {
  const points = given.series.flatMap((series) => series.points);
  const xIsLog = given.x_shown_as === null;
  const show = SHOW[given.y_shown_as];
  const ends = bounds(points.map((point) => point.y));
  const step = Math.ceil(given.ticks.length / 5);
  return {
    type: "line",
    data: {
      datasets: given.series.map((series) => {
        const look = lookAt(series.colour);
        return {
          label: series.name,
          data: series.points.map((point) => ({ x: point.x, y: point.y, of: point })),
          borderColor: look.colour,
          backgroundColor: look.colour,
          borderWidth: 2,
          pointStyle: look.marker,
          pointRadius: 5,
          pointHoverRadius: 6,
          pointHitRadius: 12,
        };
      }),
    },
    options: {
      layout: { padding: { top: given.bands.some((band) => band.along === "x") ? 14 : 4 } },
      interaction: { mode: "nearest", intersect: false },
      scales: {
        x: {
          type: xIsLog ? "logarithmic" : "linear",
          ...(xIsLog
            ? bounds(points.map((point) => point.x))
            : { min: 0, suggestedMax: 1.1 * Math.max(...points.map((point) => point.x)) }),
          title: { display: true, text: given.x_label },
          ...(xIsLog
            ? {
                afterBuildTicks: (scale: { ticks: unknown }) => {
                  scale.ticks = given.ticks.filter((_, index) => index % step === 0).map(({ value }) => ({ value }));
                },
              }
            : {}),
          ticks: {
            callback: (value: number | string) =>
              given.x_shown_as === null
                ? (given.ticks.find((tick) => tick.value === Number(value))?.text ?? "")
                : tickText(SHOW[given.x_shown_as](Number(value))),
            maxRotation: 0,
            maxTicksLimit: 5,
          },
        },
        y: {
          type: "logarithmic",
          ...ends,
          title: { display: true, text: `${given.y_label}, log` },
          afterBuildTicks: (scale: { ticks: unknown }) => {
            scale.ticks = powers(ends.min, ends.max).map((value) => ({ value }));
          },
          ticks: { callback: (value: number | string) => tickText(show(Number(value))), autoSkip: false },
        },
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: () => "",
            label: (item: TooltipItem<"line">) => `${item.dataset.label ?? ""}, ${(item.raw as Spot).of.text}`,
          },
        },
      },
    },
    plugins: [bands(given)],
  } as unknown as ChartConfiguration;
}

export function initBenchLoad(): void {
  const data = readJson("load-data", loadCharts);
  const canvases = [...document.querySelectorAll<HTMLCanvasElement>("canvas[data-load-chart]")];
  for (const canvas of canvases) {
    const given = data?.charts[Number(canvas.dataset.loadChart)];
    if (given) follow(new Chart(canvas, configuration(given)));
  }
}
