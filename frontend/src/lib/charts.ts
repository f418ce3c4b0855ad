/** Common parts of all charts: the registered parts of Chart.js, the page's theme, axes with units. */

import {
  CategoryScale,
  Chart,
  type ChartOptions,
  LinearScale,
  LineController,
  LineElement,
  LogarithmicScale,
  PointElement,
  Tooltip,
} from "chart.js";
import { inTheme, themed } from "./colours";
import { addShapes } from "./markers";

Chart.register(CategoryScale, LinearScale, LineController, LineElement, LogarithmicScale, PointElement, Tooltip);
addShapes();
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.size = 12;

export { Chart };

const charts = new Set<Chart>();

/** The options given to the chart, not Chart.js's resolver around them. */
export function given(chart: Chart): ChartOptions {
  chart.config.options ??= {};
  return chart.config.options;
}

interface Coloured {
  ticks?: object;
  grid?: object;
  title?: object;
}

/** Data sets were made with the colours of the theme that the page had then. */
function paintData(chart: Chart): void {
  for (const dataset of chart.data.datasets) {
    for (const [name, value] of Object.entries(dataset)) {
      if (!name.endsWith("Color")) continue;
      if (typeof value === "string") Object.assign(dataset, { [name]: inTheme(value) });
      if (Array.isArray(value)) Object.assign(dataset, { [name]: value.map((each) => inTheme(String(each))) });
    }
  }
}

function paint(chart: Chart): void {
  paintData(chart);
  const text = themed("--ss-chart-text");
  const grid = themed("--ss-chart-grid");
  for (const scale of Object.values(given(chart).scales ?? {})) {
    const coloured = scale as Coloured | undefined;
    if (!coloured) continue;
    coloured.ticks = Object.assign(coloured.ticks ?? {}, { color: text });
    coloured.grid = Object.assign(coloured.grid ?? {}, { color: grid });
    coloured.title = Object.assign(coloured.title ?? {}, { color: text });
  }
}

function paintAll(): void {
  for (const chart of charts) {
    paint(chart);
    chart.update("none");
  }
}

/** Applies the page's colours and font to the chart now, after each change of the theme, and when the font arrives. */
export function follow(chart: Chart): void {
  if (charts.size === 0) {
    Chart.defaults.font.family = themed("--ss-font");
    document.addEventListener("sweetspot:theme", paintAll);
    document.fonts.load('12px "Inter Variable"').then(paintAll, () => undefined); // a page that is left stops loading
  }
  charts.add(chart);
  paint(chart);
  chart.update("none");
}

export function forget(chart: Chart): void {
  charts.delete(chart);
  chart.destroy();
}
