/** Buttons that save charts as a picture. `data-save-as` of a button is png or svg. */

import type { Chart } from "../lib/charts";
import { type Picture, type PictureKey, savePng, saveSvg } from "../lib/picture";

interface Drawn {
  readonly label?: string;
  readonly data: readonly unknown[];
  readonly borderColor?: unknown;
  readonly borderDash?: readonly number[];
}

/** The lines of the charts, each name once. */
export function keyOf(lines: readonly Drawn[]): PictureKey[] {
  const shown = lines.filter((line) => line.data.length > 0 && line.label);
  const keys = shown.map((line) => ({
    name: line.label ?? "",
    colour: String(line.borderColor),
    dashed: (line.borderDash ?? []).length > 0,
  }));
  return [...new Map(keys.map((key) => [key.name, key])).values()];
}

export function linesOf(charts: readonly Chart[]): Drawn[] {
  return charts.flatMap((chart) => chart.data.datasets as unknown as Drawn[]);
}

/** `pictureOf` makes the picture when a button is pressed; null saves nothing. */
export function initSavePicture(pictureOf: (button: HTMLButtonElement) => Picture | null): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-save-as]")) {
    button.addEventListener("click", () => {
      const picture = pictureOf(button);
      if (picture) (button.dataset.saveAs === "svg" ? saveSvg : savePng)(picture);
    });
  }
}
