/** Common parts of all views of a comparison: colours, legend, zoom, and download as a picture. */

import { seriesName } from "#payloads/compare";
import { type Chart, Chart as ChartJs, follow, given } from "../lib/charts";
import { find, readJson } from "../lib/dom";
import { list } from "../lib/schema";
import { type Looks, looksOf, type Named, paintKey } from "./compareKey";
import { initReport } from "./report";
import { initSavePicture } from "./savePicture";

/** What a view does after a zoom and after its reset. */
export interface Zoomed {
  zoomed: () => void;
  reset: () => void;
}
const NOTHING: Zoomed = { zoomed: () => undefined, reset: () => undefined };

export class ComparePage {
  private readonly series: readonly Named[] = readJson("series-names", list(seriesName)) ?? [];
  readonly looks: Looks = looksOf(this.series);
  /** Names of the lines in the charts that are not series: ceilings and references. */
  lines: readonly string[] = [];

  /** Set up the rest of the page after the charts. */
  finish(charts: readonly Chart[], then: Zoomed = NOTHING): void {
    charts.forEach(follow);
    paintKey(this.series, this.looks, () => charts, this.lines);
    initSavePicture();
    initReport();
    if (charts.length > 0) void addZoom(charts, then);
  }
}

/** Drag to zoom; the button resets it. The plugin is loaded after the charts are drawn. */
async function addZoom(charts: readonly Chart[], then: Zoomed): Promise<void> {
  const { default: zoom } = await import("chartjs-plugin-zoom");
  ChartJs.register(zoom);
  const reset = find("compare-reset", HTMLButtonElement);
  const onZoom = (): void => {
    if (reset) reset.hidden = false;
  };
  for (const chart of charts) {
    const options = given(chart);
    options.plugins ??= {};
    const drag = { enabled: true, backgroundColor: "#2f7bd826" };
    options.plugins.zoom = { zoom: { drag, mode: "xy", onZoom, onZoomComplete: then.zoomed } };
    chart.update("none");
  }
  reset?.addEventListener("click", () => {
    for (const chart of charts) chart.resetZoom();
    then.reset();
    reset.hidden = true;
  });
}
