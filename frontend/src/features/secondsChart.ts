/** Per-second charts on one time axis: IOPS, MB/s, latency percentiles, the device's queue and utilisation. */

import type { ChartOptions, ScatterDataPoint } from "chart.js";
import annotation, { type AnnotationOptions } from "chartjs-plugin-annotation";
import zoom from "chartjs-plugin-zoom";
import type { ChartCeiling, ChartSpan } from "#payloads/charts";
import type { LiveSample } from "#payloads/live";
import { tickText, timeTicks } from "../lib/axis";
import { Chart, follow, given } from "../lib/charts";
import { directionColour, lookAt, themed } from "../lib/colours";
import { find, setText } from "../lib/dom";
import { clock } from "../lib/format";
import { dotSizes, points, type SampleStore, type Stream } from "../lib/samples";
import { ceilingLines, highest } from "./ceilingLines";
import { initSavePicture } from "./savePicture";
import { type Line, PANELS, type Panel, type Series } from "./secondsPanels";
import { TelemetryPanel } from "./secondsTelemetry";
import { inWords, rateName, tableRow } from "./secondsText";

Chart.register(annotation, zoom);

const AXIS_WIDTH = 66;
const RIGHT_WIDTH = 48;
const MAX_SPANS = 500; // trials; more would be narrower than a pixel
const EDGE_PX = 6; // points and lines at the edge of the chart are drawn whole
const ROOM = 0.01; // share of the time axis that stays free after the last sample
const TABLE_ROWS = 300;

export class SecondsChart {
  private readonly charts: Chart<"line", ScatterDataPoint[]>[] = [];
  private readonly telemetry = new TelemetryPanel();
  private readonly panels = [...PANELS, this.telemetry.panel];
  private cursor: number | null = null;
  /** Seconds shown up to the newest; null shows all. */
  private windowS: number | null = null;
  private zoomed: { min: number; max: number } | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly store: SampleStore,
    private readonly ceilings: readonly ChartCeiling[] = [],
    private readonly evidence: readonly ChartSpan[] = [],
  ) {
    for (const panel of this.panels) this.addPanel(panel);
    this.telemetry.onChoice = () => this.draw();
    this.listen();
  }

  private addPanel(panel: Panel): void {
    const canvas = find(panel.id, HTMLCanvasElement);
    if (!canvas) return;
    const chart = new Chart<"line", ScatterDataPoint[]>(canvas, {
      type: "line",
      data: { datasets: [] },
      options: this.options(panel),
      plugins: [
        { id: "cursor", afterDatasetsDraw: (drawn) => this.drawCursor(drawn) },
        ...(panel.id === "seconds-rate" ? [ceilingLines<"line">(this.ceilings)] : []),
      ],
    });
    this.charts.push(chart);
    follow(chart as unknown as Chart);
  }

  private options(panel: Panel): ChartOptions<"line"> {
    const last = panel.id === "seconds-device";
    return {
      parsing: false,
      normalized: true,
      spanGaps: false,
      elements: { point: { radius: 0, hitRadius: 0 }, line: { borderWidth: 1.5 } },
      layout: { padding: { right: last ? 0 : RIGHT_WIDTH, top: panel.id === "seconds-iops" ? 14 : 6 } },
      scales: {
        x: {
          type: "linear",
          ticks: {
            display: last || panel.series !== undefined,
            callback: (value) => clock(Number(value)),
            maxRotation: 0,
          },
          afterBuildTicks: (axis) => {
            axis.ticks = timeTicks(axis.min, axis.max, axis.width < 400 ? 4 : 8).map((value) => ({ value }));
          },
        },
        y: {
          type: panel.log ? "logarithmic" : "linear",
          ...(panel.log ? {} : { beginAtZero: true }),
          ...(panel.id === "seconds-rate" ? { suggestedMax: highest(this.ceilings) } : {}),
          ticks: { callback: (value) => axisTick(panel, Number(value)), maxTicksLimit: 5 },
          afterFit: (axis) => {
            axis.width = AXIS_WIDTH;
          },
        },
        ...(last ? { right: rightAxis() } : {}),
      },
      plugins: {
        legend: { display: false },
        tooltip: { enabled: false },
        zoom: {
          zoom: { drag: { enabled: true, backgroundColor: "rgba(47,123,216,0.15)" }, mode: "x", onZoom: this.zoomedTo },
        },
      },
    };
  }

  private readonly zoomedTo = ({ chart }: { chart: Chart }): void => {
    const { min, max } = chart.scales.x ?? {};
    if (min === undefined || max === undefined) return;
    this.zoomed = { min, max };
    const reset = find("seconds-reset", HTMLButtonElement);
    if (reset) reset.hidden = false;
    this.draw();
  };

  private listen(): void {
    this.root.addEventListener("mousemove", (event) => this.pointAt(event));
    this.root.addEventListener("mouseleave", () => this.moveCursor(null));
    this.root.addEventListener("keydown", (event) => this.key(event));
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-window]")) {
      button.addEventListener("click", () => this.setWindow(button));
    }
    const reset = find("seconds-reset", HTMLButtonElement);
    reset?.addEventListener("click", () => {
      this.zoomed = null;
      reset.hidden = true;
      this.draw();
    });
    initSavePicture(() => this.shownSeconds());
    find("seconds-table", HTMLDetailsElement)?.addEventListener("toggle", () => this.fillTable());
  }

  /** The visible part of the time axis, as parameters of an address. */
  private shownSeconds(): string {
    const { min = 0, max = 0 } = this.charts[0]?.scales.x ?? {};
    return `from=${Math.max(0, Math.floor(min))}&to=${Math.ceil(max)}`;
  }

  private setWindow(pressed: HTMLButtonElement): void {
    for (const button of document.querySelectorAll<HTMLButtonElement>("[data-window]")) {
      button.setAttribute("aria-pressed", String(button === pressed));
    }
    this.windowS = Number(pressed.dataset.window) || null;
    this.zoomed = null;
    this.draw();
  }

  private pointAt(event: MouseEvent): void {
    const chart = this.charts.find((each) => each.canvas === event.target) ?? this.charts[0];
    const axis = chart?.scales.x;
    if (!chart || !axis) return;
    const left = event.clientX - chart.canvas.getBoundingClientRect().left;
    this.moveCursor(axis.getValueForPixel(left) ?? null);
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const span = this.store.span();
    if (step === undefined || !span) return;
    event.preventDefault();
    this.moveCursor(Math.min(span.to, Math.max(span.from, (this.cursor ?? span.to) + step)));
  }

  private moveCursor(time: number | null): void {
    this.cursor = time;
    this.readOut();
    for (const chart of this.charts) chart.draw();
  }

  private readOut(): void {
    const samples = this.cursor === null ? [] : this.store.at(this.cursor);
    const telemetry = samples.map((sample) => this.telemetry.inWords(this.store, sample));
    const text = [...samples.map(inWords), ...telemetry].filter((words) => words !== "").join("   ");
    setText(
      find("seconds-readout", HTMLElement),
      text || "Point at the chart, or use ← → on it, to read a second. Drag to zoom.",
    );
  }

  private drawCursor(chart: Chart<"line">): void {
    if (this.cursor === null || !chart.scales.x) return;
    const x = chart.scales.x.getPixelForValue(this.cursor);
    const { top, bottom, left, right } = chart.chartArea;
    if (x < left || x > right) return;
    chart.ctx.save();
    chart.ctx.strokeStyle = themed("--ss-chart-text");
    chart.ctx.lineWidth = 1;
    chart.ctx.beginPath();
    chart.ctx.moveTo(x, top);
    chart.ctx.lineTo(x, bottom);
    chart.ctx.stroke();
    chart.ctx.restore();
  }

  /** Draws the current content of the store. */
  draw(): void {
    const span = this.store.span();
    const empty = find("seconds-empty", HTMLElement);
    if (empty) empty.hidden = span !== null;
    const streams = find("seconds-streams", HTMLElement);
    if (streams) streams.hidden = !this.store.hosts.some((host) => this.store.streams(host).length > 1);
    this.root.classList.toggle("is-empty", span === null);
    if (!span) return;
    this.nameDirections();
    const begin = span.from - 1;
    const from = this.windowS === null ? begin : Math.max(begin, span.to - this.windowS);
    const shown = this.zoomed ?? { min: from, max: Math.max(span.to + ROOM * (span.to - from), from + 3) };
    this.telemetry.paint(this.store);
    this.charts.forEach((chart) => {
      const panel = this.panels.find((each) => each.id === chart.canvas.id);
      const options = given(chart as Chart);
      if (!panel || !options.scales?.x || !options.plugins) return;
      chart.data.datasets = this.series(panel, from);
      Object.assign(options.scales.x, shown);
      if (panel.most) Object.assign(options.scales.y ?? {}, { max: panel.most() });
      options.plugins.annotation = { clip: false, annotations: this.shades(shown, panel) };
      chart.update("none");
    });
    this.readOut();
    this.fillTable();
    this.root.dataset.drawn = this.store.newest();
  }

  /** The heading, the table's column and the key of the first chart, which depend on the directions measured. */
  private nameDirections(): void {
    const seen = [...new Set(this.store.hosts.flatMap((host) => this.store.directions(host)))];
    const name = rateName(seen);
    for (const each of this.root.parentElement?.querySelectorAll("[data-rate-name]") ?? []) setText(each, name);
    find("seconds-iops", HTMLCanvasElement)?.setAttribute("aria-label", name);
    for (const each of this.root.querySelectorAll<HTMLElement>("[data-direction]"))
      each.hidden = !seen.includes(each.dataset.direction ?? "");
    for (const each of this.root.querySelectorAll<HTMLElement>("[data-bandwidth]"))
      each.hidden = seen.every((direction) => direction === "transaction");
  }

  private series(panel: Panel, from: number): Series[] {
    if (panel.series) return panel.series(this.store, from);
    return this.store.hosts.flatMap((host, index) =>
      this.store
        .streams(host)
        .flatMap((stream, place) =>
          panel.lines.flatMap((line) => this.ofStream(line, host, index, [stream, place], from)),
        ),
    );
  }

  private ofStream(line: Line, host: string, index: number, [stream, place]: [Stream, number], from: number): Series[] {
    const owner = { direction: "", host: index, stream, place };
    if (line.ofDevice) return [dataset(line, this.store.deviceLine(host, stream), owner, from)];
    return this.store
      .directions(host)
      .map((direction) => dataset(line, this.store.line(host, direction, stream), { ...owner, direction }, from));
  }

  /** The evidence of findings; and every second trial is shaded, so that trials can be told apart. */
  private shades(shown: { min: number; max: number }, panel: Panel): Record<string, AnnotationOptions> {
    const evidence = this.evidence
      .filter((span) => span.to_s > shown.min && span.from_s < shown.max)
      .map((span, index): [string, AnnotationOptions] => [`evidence${index}`, band(span, shown)]);
    return { ...Object.fromEntries(evidence), ...this.trialShades(shown, panel) };
  }

  private trialShades(shown: { min: number; max: number }, panel: Panel): Record<string, AnnotationOptions> {
    const all = this.store.attempts().map((attempt, index) => ({ ...attempt, shaded: index % 2 === 1 }));
    const seen = all.filter((attempt) => attempt.to > shown.min && attempt.from < shown.max);
    if (all.length < 2 || seen.length > MAX_SPANS) return {};
    const label = panel.id === "seconds-iops" && seen.length <= 14;
    return Object.fromEntries(seen.map((one) => [`trial${one.trial}at${one.from}`, shade(one, shown, label)]));
  }

  private fillTable(): void {
    const details = find("seconds-table", HTMLDetailsElement);
    const body = details?.querySelector("tbody");
    if (!details?.open || !body) return;
    const rows = this.store.hosts
      .flatMap((host) => this.store.everything(host))
      .sort((a, b) => b.at_s - a.at_s)
      .slice(0, TABLE_ROWS);
    body.replaceChildren(...rows.map((row) => tableRow(row, this.telemetry.inWords(this.store, row))));
  }
}

function axisTick(panel: Panel, value: number): string {
  if (panel.log && !/^[125]/.test(String(value / 10 ** Math.floor(Math.log10(value))))) return "";
  return tickText(panel.tick(value));
}

function rightAxis(): object {
  return {
    type: "linear",
    position: "right",
    min: 0,
    max: 100,
    grid: { drawOnChartArea: false },
    ticks: { callback: (value: number | string) => `${value} %`, maxTicksLimit: 3 },
    afterFit: (axis: { width: number }) => {
      axis.width = RIGHT_WIDTH;
    },
  };
}

/** The line's host, by its index among the shown hosts, and its stream: lines of later places are fainter. */
interface Owner {
  readonly direction: string;
  readonly host: number;
  readonly stream: Stream;
  readonly place: number;
}

function dataset(line: Line, samples: readonly LiveSample[], owner: Owner, from: number): Series {
  const { direction, host, stream, place } = owner;
  const plain = line.ofDevice ? (line.axis ? themed("--ss-planned") : lookAt(5).colour) : directionColour(direction);
  const colour = `${plain}${place > 0 ? opacity(place) : ""}`;
  const data = points(samples, line.field, from);
  return {
    label: `${line.ofDevice ? line.label : `${direction} ${line.label}`}${ofStream(stream)}`,
    data: data as ScatterDataPoint[],
    borderColor: colour,
    borderWidth: line.width ?? 1.5,
    borderDash: line.dash ?? (host > 0 ? [2 + host, 2] : []),
    yAxisID: line.axis ?? "y",
    clip: EDGE_PX,
    pointRadius: dotSizes(data),
    pointBackgroundColor: colour,
  };
}

function ofStream(stream: Stream): string {
  if (typeof stream === "string") return ` of ${stream}`;
  return stream > 0 ? ` of stream ${stream + 1}` : "";
}

/** The opacity as two hexadecimal digits: three quarters of the previous stream's, at least a third. */
function opacity(place: number): string {
  return Math.round(255 * Math.max(1 / 3, 0.75 ** place))
    .toString(16)
    .padStart(2, "0");
}

function band(span: ChartSpan, shown: { min: number; max: number }): AnnotationOptions {
  return {
    type: "box",
    xMin: Math.max(span.from_s, shown.min),
    xMax: Math.min(span.to_s, shown.max),
    drawTime: "beforeDatasetsDraw",
    backgroundColor: `${themed("--ss-link")}26`,
    borderWidth: 0,
  };
}

function shade(
  attempt: { from: number; to: number; trial: number; shaded: boolean },
  shown: { min: number; max: number },
  labelled: boolean,
): AnnotationOptions {
  return {
    type: "box",
    xMin: Math.max(attempt.from, shown.min),
    xMax: Math.min(attempt.to, shown.max),
    drawTime: "beforeDatasetsDraw",
    backgroundColor: attempt.shaded ? themed("--ss-chart-shade") : "transparent",
    borderWidth: 0,
    label: {
      display: labelled,
      content: `#${attempt.trial}`,
      position: { x: "start", y: "start" },
      yAdjust: -13,
      padding: 1,
      font: { size: 9, weight: "normal" },
      color: themed("--ss-chart-text"),
    },
  };
}
