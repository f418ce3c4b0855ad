/** One colour and one marker a configuration on every chart of a page; the baseline is neutral grey. */

import type { PointStyle } from "chart.js";

export interface Look {
  readonly colour: string;
  readonly marker: PointStyle;
}

// Distinct for the colour-blind (after Okabe and Ito), each with contrast of 3 or more on both grounds.
const COLOURS = ["#2f7bd8", "#d9730d", "#0f9d76", "#c0529b", "#8a7a00", "#7a5cd6", "#c4483f", "#1596a8"] as const;
const MARKERS: readonly PointStyle[] = ["circle", "rect", "triangle", "rectRot", "crossRot", "star"];
const BASELINE: Look = { colour: "#8a929c", marker: "circle" };

/** Looks by name: the baseline's is grey, the others' follow the order of the names. */
export function assignLooks(names: readonly string[], baseline: string | null): ReadonlyMap<string, Look> {
  const others = [...new Set(names)].filter((name) => name !== baseline);
  const first: [string, Look][] = baseline === null ? [] : [[baseline, BASELINE]];
  return new Map([...first, ...others.map((name, index): [string, Look] => [name, lookAt(index)])]);
}

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
};

/** A CSS variable of the page's theme. */
export function themed(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
