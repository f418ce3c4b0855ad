/** Markers of products: those of Chart.js, and four more with an area, because a hollow mark is doubtful. */

import { PointElement, type PointStyle } from "chart.js";

const SHAPES = {
  triangleDown: [
    [-1, -0.9],
    [1, -0.9],
    [0, 1],
  ],
  plus: [
    [-0.35, -1],
    [0.35, -1],
    [0.35, -0.35],
    [1, -0.35],
    [1, 0.35],
    [0.35, 0.35],
    [0.35, 1],
    [-0.35, 1],
    [-0.35, 0.35],
    [-1, 0.35],
    [-1, -0.35],
    [-0.35, -0.35],
  ],
  pentagon: [
    [0, -1],
    [0.95, -0.31],
    [0.59, 0.81],
    [-0.59, 0.81],
    [-0.95, -0.31],
  ],
  times: [
    [-0.6, -1],
    [0, -0.4],
    [0.6, -1],
    [1, -0.6],
    [0.4, 0],
    [1, 0.6],
    [0.6, 1],
    [0, 0.4],
    [-0.6, 1],
    [-1, 0.6],
    [-0.4, 0],
    [-1, -0.6],
  ],
} as const; // corners, in radii from the centre

type Shape = keyof typeof SHAPES;
export type Marker = PointStyle | Shape;

export const MARKERS: readonly Marker[] = [
  "circle",
  "rect",
  "triangle",
  "rectRot",
  "triangleDown",
  "plus",
  "pentagon",
  "times",
];

function isShape(marker: unknown): marker is Shape {
  return typeof marker === "string" && marker in SHAPES;
}

/** Chart.js's point, which can also be one of our shapes. */
export class MarkerElement extends PointElement {
  override draw(pen: CanvasRenderingContext2D, area: Parameters<PointElement["draw"]>[1]): void {
    const { pointStyle, radius, borderColor, borderWidth, backgroundColor } = this.options;
    const marker: unknown = pointStyle;
    if (!isShape(marker)) {
      super.draw(pen, area);
      return;
    }
    const { x, y } = this.getProps(["x", "y"]);
    if (x === null || y === null) return;
    const isInside = x > area.left - 0.5 && x < area.right + 0.5 && y > area.top - 0.5 && y < area.bottom + 0.5;
    if (this.skip || !(radius > 0.1) || !isInside) return;
    pen.beginPath();
    for (const [across, down] of SHAPES[marker]) pen.lineTo(x + across * radius, y + down * radius);
    pen.closePath();
    pen.fillStyle = backgroundColor as string;
    pen.fill();
    if (borderWidth > 0) {
      pen.strokeStyle = borderColor as string;
      pen.lineWidth = borderWidth;
      pen.stroke();
    }
  }
}
