/** The last panel: telemetry of the host, one kind at a time. */

import type { LiveSample } from "#payloads/live";
import { lookAt } from "../lib/colours";
import { find } from "../lib/dom";
import { binaryBytes, iops, percent, significant } from "../lib/format";
import { dotSizes, type SampleStore, telemetryPoints } from "../lib/samples";
import type { Panel, Series } from "./secondsPanels";

const UNITS: Readonly<Record<string, (value: number) => string>> = {
  cpu: percent,
  utilisation: percent,
  queue_depth: significant,
  interrupts: (value) => `${iops(value)}/s`,
  temperature: (value) => `${significant(value)} °C`,
  memory: binaryBytes,
  power: (value) => `${significant(value)} W`,
};

export class TelemetryPanel {
  onChoice: () => void = () => undefined;
  private chosen = "";
  private readonly buttons = [...document.querySelectorAll<HTMLButtonElement>("[data-telemetry]")];
  readonly panel: Panel = {
    id: "seconds-telemetry",
    lines: [],
    tick: (value) => this.text(value),
    most: () => (UNITS[this.chosen] === percent ? 100 : undefined),
    series: (store, from) => this.series(store, from),
  };

  constructor() {
    for (const button of this.buttons) {
      button.addEventListener("click", () => {
        this.chosen = button.dataset.telemetry ?? "";
        this.onChoice();
      });
    }
  }

  /** Shows buttons for the kinds with values, and the legend of the chosen kind. */
  paint(store: SampleStore): void {
    const there = this.buttons.filter((button) => names(store, button.dataset.telemetry ?? "").length > 0);
    const block = find("seconds-telemetry-block", HTMLElement);
    if (block) block.hidden = there.length === 0;
    if (!there.some((button) => button.dataset.telemetry === this.chosen))
      this.chosen = there[0]?.dataset.telemetry ?? "";
    for (const button of this.buttons) {
      button.hidden = !there.includes(button);
      button.setAttribute("aria-pressed", String(button.dataset.telemetry === this.chosen));
    }
    find("seconds-telemetry-names", HTMLElement)?.replaceChildren(
      ...names(store, this.chosen).map((name, index) => entry(index, name)),
    );
  }

  /** The values of the chosen sensors in the second of a sample; "" if there are none. */
  inWords(store: SampleStore, sample: LiveSample): string {
    const told = store.told(sample, this.chosen);
    return told.map(([name, value]) => `${name} ${this.text(value)}`).join(" · ");
  }

  private text(value: number): string {
    return (UNITS[this.chosen] ?? significant)(value);
  }

  private series(store: SampleStore, from: number): Series[] {
    const all = names(store, this.chosen);
    return store.hosts.flatMap((host, place) =>
      store.sensors(host, this.chosen).map((name): Series => {
        const data = telemetryPoints(store.readings(host, this.chosen, name), from);
        const { colour } = lookAt(all.indexOf(name));
        return {
          label: name,
          data: data as Series["data"],
          borderColor: colour,
          pointBackgroundColor: colour,
          borderDash: place > 0 ? [2 + place, 2] : [],
          pointRadius: dotSizes(data),
        };
      }),
    );
  }
}

function names(store: SampleStore, panel: string): string[] {
  return [...new Set(store.hosts.flatMap((host) => store.sensors(host, panel)))];
}

/** A line's mark and its name, without a line break between them. */
function entry(index: number, name: string): HTMLElement {
  const mark = document.createElement("span");
  mark.className = "dash";
  mark.style.color = lookAt(index).css;
  const both = document.createElement("span");
  both.className = "chart-entry";
  both.append(mark, name);
  return both;
}
