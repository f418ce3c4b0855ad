/** Colours and markers of products and series. */

import type { PointStyle } from "chart.js";

export interface Look {
  readonly colour: string;
  readonly marker: PointStyle;
}

// The least distance of two colours in OKLab is 0.16, and 0.06 for protanopes and deuteranopes; each has a contrast of at
// least 3 on both backgrounds. A test of `webapp/core/colours.py` measures it.
const COLOURS = ["#3c60fc", "#e47800", "#30a860", "#e460a8", "#846c54", "#a83cd8", "#e40c30", "#249ccc"] as const;
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
