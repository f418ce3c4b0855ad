/** Shapes under the points of a chart, such as boxes and violins. */

import type { Chart, Plugin } from "chart.js";

export interface Places {
  readonly across: (value: number) => number; // px
  readonly up: (value: number) => number;
}

/** A plugin that draws a shape for each visible dataset, in its colour and inside the chart's area. `fill` is the
 * opacity of its colour, two hexadecimal digits. */
export function shapes<Dataset>(
  id: string,
  fill: string,
  draw: (pen: CanvasRenderingContext2D, dataset: Dataset, index: number, places: Places) => void,
): Plugin {
  return { id, beforeDatasetsDraw: (chart) => drawInside(chart, fill, draw) };
}

function drawInside<Dataset>(
  chart: Chart,
  fill: string,
  draw: (pen: CanvasRenderingContext2D, dataset: Dataset, index: number, places: Places) => void,
): void {
  const { x, y } = chart.scales;
  if (!x || !y) return;
  const pen = chart.ctx;
  const { left, top, width, height } = chart.chartArea;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  chart.data.datasets.forEach((each, index) => {
    if (!chart.isDatasetVisible(index)) return;
    const { borderColor } = each as unknown as { borderColor: string };
    pen.strokeStyle = borderColor;
    pen.fillStyle = `${borderColor}${fill}`;
    pen.lineWidth = 1.5;
    draw(pen, each as unknown as Dataset, index, {
      across: (value) => x.getPixelForValue(value),
      up: (value) => y.getPixelForValue(value),
    });
  });
  pen.restore();
}
