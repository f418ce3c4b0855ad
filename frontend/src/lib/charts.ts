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
import { themed } from "./colours";

Chart.register(CategoryScale, LinearScale, LineController, LineElement, LogarithmicScale, PointElement, Tooltip);
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.font.size = 11;

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

function paint(chart: Chart): void {
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

/** Applies the page's colours to the chart now and after each change of the theme. */
export function follow(chart: Chart): void {
  if (charts.size === 0) {
    document.addEventListener("sweetspot:theme", () => {
      for (const each of charts) {
        paint(each);
        each.update("none");
      }
    });
  }
  charts.add(chart);
  paint(chart);
  chart.update("none");
}

export function forget(chart: Chart): void {
  charts.delete(chart);
  chart.destroy();
}
