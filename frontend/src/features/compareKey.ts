/** The colours of series: the legend above the charts, and the marks in the tables. */

import type { Chart } from "../lib/charts";
import { type Look, lookAt } from "../lib/colours";
import { find } from "../lib/dom";

export type Looks = ReadonlyMap<string, Look>;

export interface Named {
  readonly name: string;
  readonly is_baseline: boolean;
  readonly colour: number;
}

export function looksOf(series: readonly Named[]): Looks {
  return new Map(series.map((each) => [each.name, lookAt(each.colour)]));
}

/** Colour the marks next to the names of series. */
export function paintMarks(looks: Looks): void {
  for (const mark of document.querySelectorAll<HTMLElement>("[data-series]")) {
    mark.style.backgroundColor = looks.get(mark.dataset.series ?? "")?.css ?? "transparent";
  }
}

/** Buttons that show and hide a series in all charts, and the names of lines. Datasets have the name of their series in
 * `series`. A single series needs no button: the title of the chart says what it is. */
export function paintKey(
  series: readonly Named[],
  looks: Looks,
  charts: () => readonly Chart[],
  lines: readonly string[] = [],
): void {
  const holder = find("compare-key", HTMLElement);
  holder?.replaceChildren(...named(series).map((each) => keyButton(each, looks, charts)), ...lines.map(keyLine));
  paintMarks(looks);
}

/** Each series once; none if there is only one. */
export function named(series: readonly Named[]): Named[] {
  const unique = [...new Map(series.map((each) => [each.name, each])).values()];
  return unique.length > 1 ? unique : [];
}

function keyLine(name: string): HTMLElement {
  const entry = document.createElement("span");
  entry.className = "key-line small";
  const mark = document.createElement("span");
  mark.className = "mark-line";
  entry.append(mark, name);
  return entry;
}

function keyButton(series: Named, looks: Looks, charts: () => readonly Chart[]): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn btn-sm key";
  button.setAttribute("aria-pressed", "true");
  const mark = document.createElement("span");
  mark.className = "mark";
  mark.style.backgroundColor = looks.get(series.name)?.css ?? "transparent";
  button.append(mark, series.is_baseline ? `${series.name} (baseline)` : series.name);
  button.addEventListener("click", () => {
    const visible = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(visible));
    for (const chart of charts()) show(chart, series.name, visible);
  });
  return button;
}

function show(chart: Chart, name: string, visible: boolean): void {
  chart.data.datasets.forEach((each, index) => {
    if ((each as { series?: string }).series === name) chart.setDatasetVisibility(index, visible);
  });
  chart.update("none");
}
