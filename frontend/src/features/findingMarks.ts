/** The evidence of a finding in the charts, while its sentence has the pointer or the focus, or is pressed. */

import type { Chart, Plugin } from "chart.js";
import type { Comparison, Finding } from "#payloads/compare";

const FAINT = 0.2; // of series that are no evidence
const RING = 9; // radius around a point that is evidence, in px

export interface Marked {
  /** Index of the dataset -> places on x of the points that are evidence, as in the data. */
  readonly points: ReadonlyMap<number, ReadonlySet<number>>;
}

/** The points of one chart that are evidence of a finding. `places`: level of the comparison -> place on x. */
export function markedIn(finding: Finding, panel: number, places: ReadonlyMap<number, number>): Marked {
  const points = new Map<number, Set<number>>();
  for (const mark of finding.marks.filter((each) => each.panel === panel)) {
    const known = points.get(mark.series) ?? new Set<number>();
    for (let level = mark.first; level <= mark.last; level++) {
      const place = places.get(level);
      if (place !== undefined) known.add(place);
    }
    points.set(mark.series, known);
  }
  return { points };
}

/** Draws what `marked` returns at that time; nothing for null. */
export function marksOf(marked: () => Marked | null): Plugin {
  return {
    id: "findingMarks",
    beforeDatasetDraw: (chart, { index }) => {
      chart.ctx.save();
      const now = marked();
      if (now && !now.points.has(index)) chart.ctx.globalAlpha = FAINT;
    },
    afterDatasetDraw: (chart, { index }) => {
      chart.ctx.restore();
      const places = marked()?.points.get(index);
      if (places) drawRings(chart, index, places);
    },
  };
}

function drawRings(chart: Chart, index: number, places: ReadonlySet<number>): void {
  const { ctx } = chart;
  const data = chart.data.datasets[index]?.data as readonly { x: number }[];
  ctx.save();
  ctx.strokeStyle = String(chart.data.datasets[index]?.borderColor);
  ctx.lineWidth = 2.5;
  chart.getDatasetMeta(index).data.forEach((point, at) => {
    if (!places.has(data[at]?.x ?? Number.NaN) || !Number.isFinite(point.y)) return;
    ctx.beginPath();
    ctx.arc(point.x, point.y, RING, 0, 2 * Math.PI);
    ctx.stroke();
  });
  ctx.restore();
}

/** Which finding the page shows: that under the pointer or with the focus, else the pressed one. */
export class ShownFinding {
  private passing: Finding | null = null;
  private pressed: Finding | null = null;

  get current(): Finding | null {
    return this.passing ?? this.pressed;
  }

  /** `changed` draws the charts again. */
  listen(comparison: Comparison, changed: () => void): void {
    const buttons = [...document.querySelectorAll<HTMLButtonElement>("button[data-finding]")];
    for (const button of buttons) {
      const finding = comparison.findings[Number(button.dataset.finding)];
      if (!finding) continue;
      const pass = (to: Finding | null) => () => {
        this.passing = to;
        changed();
      };
      for (const event of ["pointerenter", "focus"]) button.addEventListener(event, pass(finding));
      for (const event of ["pointerleave", "blur"]) button.addEventListener(event, pass(null));
      button.addEventListener("click", () => {
        this.pressed = this.pressed === finding ? null : finding;
        for (const each of buttons) each.ariaPressed = String(each === button && this.pressed !== null);
        changed();
      });
    }
  }
}
