/** Colours and markers of products and series. */

import type { PointStyle } from "chart.js";

export interface Look {
  readonly colour: string;
  readonly marker: PointStyle;
}

// Distinct for the colour-blind (after Okabe and Ito), each with a contrast of at least 3 on both backgrounds.
const COLOURS = ["#2f7bd8", "#d9730d", "#0f9d76", "#c0529b", "#8a7a00", "#7a5cd6", "#c4483f", "#1596a8"] as const;
// All have an area, because a hollow mark is doubtful.
const MARKERS: readonly PointStyle[] = ["circle", "rect", "triangle", "rectRot"];

/** By the number that the server gives a product or series (`webapp/core/colours.py`). */
export function lookAt(index: number): Look {
  return {
    colour: COLOURS[index % COLOURS.length] ?? COLOURS[0],
    marker: MARKERS[index % MARKERS.length] ?? "circle",
  };
}

export const DIRECTION_COLOURS: Readonly<Record<string, string>> = {
  read: COLOURS[0],
  write: COLOURS[1],
  trim: COLOURS[2],
  transaction: COLOURS[3],
  resync: COLOURS[4],
};

/** A CSS variable of the page's theme. */
export function themed(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
