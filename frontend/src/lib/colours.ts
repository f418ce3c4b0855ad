/** Colours and markers of products and series. `styles/tokens.css` and `webapp/pictures/elements.py` have the same. */

import { MARKERS, type Marker } from "./markers";

export interface Look {
  readonly colour: string; // in the present theme, for canvases
  readonly css: string; // for elements, which follow the theme
  readonly marker: Marker;
}

const LIGHT = ["#1572db", "#e66700", "#1f4820", "#b135b1", "#705b21", "#571974", "#066374", "#917a75"] as const;
const DARK = ["#5599f3", "#fd9156", "#b0f6da", "#db4b71", "#f9e93a", "#a66db3", "#57cef7", "#b7baa4"] as const;

function colours(): readonly string[] {
  return globalThis.document?.documentElement.dataset.bsTheme === "dark" ? DARK : LIGHT;
}

/** By the number that the server gives a product or series (`webapp/pictures/elements.py`). */
export function lookAt(index: number): Look {
  const number = index % LIGHT.length;
  return {
    colour: colours()[number] ?? LIGHT[0],
    css: `var(--ss-product-${number})`,
    marker: MARKERS[number] ?? "circle",
  };
}

/** A colour of a product, with or without opacity, in the present theme. Other colours stay as they are. */
export function inTheme(colour: string): string {
  const [, solid = "", opacity = ""] = /^(#[0-9a-f]{6})(.*)$/.exec(colour) ?? [];
  const themes: readonly (readonly string[])[] = [LIGHT, DARK];
  const number = themes.map((each) => each.indexOf(solid)).find((at) => at >= 0);
  return number === undefined ? colour : `${colours()[number]}${opacity}`;
}

const DIRECTIONS: readonly string[] = ["read", "write", "trim", "transaction", "resync"];

export function directionColour(direction: string): string {
  const index = DIRECTIONS.indexOf(direction);
  return index < 0 ? themed("--ss-planned") : lookAt(index).colour;
}

/** A CSS variable of the page's theme. */
export function themed(variable: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}
