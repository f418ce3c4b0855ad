/** The chart of percentiles, and the cumulative distribution of latency on a log axis. */

import type { ChartConfiguration, Scale, TooltipItem } from "chart.js";
import { type LatencyCharts, latencyCharts } from "#payloads/compare";
import { tickText } from "../lib/axis";
import { Chart } from "../lib/charts";
import { lookAt } from "../lib/colours";
import { find, readJson } from "../lib/dom";
import { latency, significant } from "../lib/format";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";
import { violinChart } from "./violins";

type Series = LatencyCharts["series"][number];

/** Nines: 0.9 is 1, 0.99 is 2, 0.999 is 3. For 1 the number is infinite. */
export function nines(share: number): number {
  return -Math.log10(1 - share);
}

/** The text of a tick: 1 is 90 %, 3 is 99.9 %. */
export function ninesText(value: number): string {
  return Number.isInteger(value) ? `${significantShare(1 - 10 ** -value)} %` : "";
}

function significantShare(share: number): string {
  return String(Number((share * 100).toFixed(6)));
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** x: latency, y: share. The last point is 100 %, which an axis of nines cannot show. */
export function curve(series: Pick<Series, "cdf_ns" | "cdf_shares">, asNines: boolean): Point[] {
  return series.cdf_ns.flatMap((x, index) => {
    const share = series.cdf_shares[index] ?? 1;
    if (!asNines) return [{ x, y: share * 100 }];
    return share < 1 ? [{ x, y: nines(share) }] : [];
  });
}

const TICK_PX = 48; // for the text of a tick

/** The ticks of a horizontal latency axis: 1, 2 and 5 of each power of ten if their texts fit into this width, else
 * powers of ten. */
export function ticksAcross(values: readonly number[], widthPx: number): number[] {
  const powers = Math.log10(Math.max(...values) / Math.min(...values));
  const shown = powers * TICK_PX <= Math.log10(2) * widthPx ? [1, 2, 5] : [1];
  return values.filter((value) => shown.includes(significand(value)));
}

/** 2.5 of 2,500. */
function significand(value: number): number {
  return Number((value / 10 ** Math.floor(Math.log10(value) + 1e-9)).toPrecision(6));
}

/** Ticks of a latency axis: 1, 2 and 5 of each power of ten. */
function latencyTick(value: number): string {
  return [1, 2, 5].includes(significand(value)) ? tickText(latency(value)) : "";
}

function latencyAxis(text: string): object {
  return {
    type: "logarithmic",
    title: { display: true, text },
    ticks: { callback: (value: number | string) => latencyTick(Number(value)), maxRotation: 0, maxTicksLimit: 10 },
  };
}

function base(series: Series, looks: Looks): object {
  const look = looks.get(series.name) ?? lookAt(0);
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    borderColor: look.colour,
    backgroundColor: look.colour,
    pointStyle: look.marker,
    borderWidth: 2,
  };
}

function ladder(data: LatencyCharts, looks: Looks): ChartConfiguration {
  const made = {
    type: "line",
    data: {
      labels: data.percents.map((percent) => `p${percent}`),
      datasets: data.series.map((each) => ({ ...base(each, looks), data: each.percentiles_ns, pointRadius: 5 })),
    },
    options: {
      interaction: { mode: "index", intersect: false },
      scales: { x: { type: "category", title: { display: true, text: "Percentile" } }, y: latencyAxis("Latency") },
      plugins: {
        tooltip: {
          callbacks: { label: (item: TooltipItem<"line">) => `${item.dataset.label}: ${latency(item.parsed.y)}` },
        },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

function cdf(data: LatencyCharts, looks: Looks): ChartConfiguration {
  const share = (value: number): string =>
    data.nines ? significantShare(1 - 10 ** -value) : significant(Math.min(100, value));
  const made = {
    type: "line",
    data: {
      datasets: data.series.map((each) => ({
        ...base(each, looks),
        data: curve(each, data.nines),
        pointRadius: 0,
        stepped: "before",
      })),
    },
    options: {
      parsing: false,
      interaction: { mode: "nearest", axis: "x", intersect: false },
      scales: {
        x: {
          ...latencyAxis("Latency"),
          afterBuildTicks: (axis: Scale) => {
            const values = axis.ticks.map((tick) => tick.value);
            const kept = new Set(ticksAcross(values, axis.width));
            axis.ticks = axis.ticks.filter((tick) => kept.has(tick.value));
          },
        },
        y: {
          type: "linear",
          min: 0,
          ...(data.nines ? {} : { max: 100 }),
          title: { display: true, text: "Share of I/Os, %" },
          ticks: data.nines
            ? { stepSize: 1, callback: (value: number | string) => ninesText(Number(value)) }
            : { callback: (value: number | string) => `${value} %` },
        },
      },
      plugins: {
        tooltip: {
          callbacks: {
            title: () => "",
            label: (item: TooltipItem<"line">) =>
              `${item.dataset.label}: ${share(item.parsed.y ?? 0)} % within ${latency(item.parsed.x)}`,
          },
        },
      },
    },
  };
  return made as unknown as ChartConfiguration;
}

export function initLatencyCharts(): void {
  const data = readJson("latency-data", latencyCharts);
  if (!data) return;
  const page = new ComparePage();
  const steps = find("latency-ladder", HTMLCanvasElement);
  const shares = find("latency-cdf", HTMLCanvasElement);
  const spread = find("latency-violins", HTMLCanvasElement);
  if (!steps || !shares || !spread) {
    page.finish([]);
    return;
  }
  const charts = [
    new Chart(steps, ladder(data, page.looks)),
    new Chart(shares, cdf(data, page.looks)),
    new Chart(spread, violinChart(data, page.looks, latencyAxis("Latency"))),
  ];
  page.finish(charts);
}
