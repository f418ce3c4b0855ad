/** Two metrics against each other: a point for each level, joined in the order of levels. */

import type { ChartConfiguration, TooltipItem } from "chart.js";
import { type ScatterCharts, scatterCharts } from "#payloads/compare";
import { tickText } from "../lib/axis";
import { Chart } from "../lib/charts";
import { lookAt } from "../lib/colours";
import { readJson } from "../lib/dom";
import { SHOW } from "../lib/format";
import type { Looks } from "./compareKey";
import { ComparePage } from "./comparePage";

type Panel = ScatterCharts["panels"][number];
type Point = Panel["series"][number]["points"][number];

function axis(text: string, shownAs: ScatterCharts["x_shown_as"], logarithmic: boolean): object {
  return {
    type: logarithmic ? "logarithmic" : "linear",
    beginAtZero: !logarithmic,
    title: { display: true, text },
    ticks: {
      callback: (value: number | string) => tickText(SHOW[shownAs](Number(value))),
      maxRotation: 0,
      maxTicksLimit: 8,
    },
  };
}

function dataset(series: Panel["series"][number], looks: Looks): object {
  const look = looks.get(series.name) ?? lookAt(0);
  return {
    label: series.is_baseline ? `${series.name} (baseline)` : series.name,
    series: series.name,
    data: series.points,
    borderColor: look.colour,
    backgroundColor: look.colour,
    borderWidth: 1.5,
    pointStyle: look.marker,
    pointRadius: 5,
  };
}

function configuration(data: ScatterCharts, panel: Panel, looks: Looks): ChartConfiguration {
  const label = (item: TooltipItem<"line">): string => {
    const point = item.raw as Point;
    return `${item.dataset.label}, ${point.level}: ${data.x_label} ${point.x_text}, ${data.y_label} ${point.y_text}`;
  };
  const made = {
    type: "line",
    data: { datasets: panel.series.map((series) => dataset(series, looks)) },
    options: {
      interaction: { mode: "nearest", intersect: false },
      scales: {
        x: axis(data.x_label, data.x_shown_as, data.logarithmic),
        y: axis(data.y_label, data.y_shown_as, data.logarithmic),
      },
      plugins: { tooltip: { callbacks: { title: () => "", label } } },
    },
  };
  return made as unknown as ChartConfiguration;
}

export function initScatterCharts(): void {
  const data = readJson("scatter-data", scatterCharts);
  if (!data) return;
  const page = new ComparePage();
  const charts = [...document.querySelectorAll<HTMLCanvasElement>("canvas[data-panel]")].flatMap((canvas) => {
    const panel = data.panels[Number(canvas.dataset.panel)];
    return panel ? [new Chart(canvas, configuration(data, panel, page.looks))] : [];
  });
  page.finish(charts);
}
