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

/** Chart.js's points can also be our shapes. Chart.js keeps the first class that is registered as a point, and the points
 * of its plugins draw with it, so its own `draw` learns them. */
export function addShapes(): void {
  const drawPoint = PointElement.prototype.draw;
  PointElement.prototype.draw = function draw(this: PointElement, pen, area): void {
    const { pointStyle, radius } = this.options;
    const marker: unknown = pointStyle;
    const { x, y } = this.getProps(["x", "y"]);
    if (!isShape(marker) || x === null || y === null) {
      drawPoint.call(this, pen, area);
      return;
    }
    const isInside = x > area.left - 0.5 && x < area.right + 0.5 && y > area.top - 0.5 && y < area.bottom + 0.5;
    if (!this.skip && radius > 0.1 && isInside) drawShape(this, pen, SHAPES[marker], { x, y });
  };
}

function drawShape(
  point: PointElement,
  pen: CanvasRenderingContext2D,
  corners: readonly (readonly [number, number])[],
  at: { x: number; y: number },
): void {
  const { radius, borderColor, borderWidth, backgroundColor } = point.options;
  pen.beginPath();
  for (const [across, down] of corners) pen.lineTo(at.x + across * radius, at.y + down * radius);
  pen.closePath();
  pen.fillStyle = backgroundColor as string;
  pen.fill();
  if (borderWidth > 0) {
    pen.strokeStyle = borderColor as string;
    pen.lineWidth = borderWidth;
    pen.stroke();
  }
}
