import type { Chart } from "chart.js";
import { expect, test } from "vitest";
import type { Finding } from "#payloads/compare";
import { markedIn, marksOf } from "../src/features/findingMarks";

const mark = (panel: number, series: number, first: number, last: number) => ({ panel, series, first, last });
const finding = (...marks: ReturnType<typeof mark>[]): Finding => ({
  kind: "saturation",
  sentence: "",
  single: false,
  size: 1,
  value: null,
  level: null,
  marks,
  about: "",
  matches: [],
  claim: "",
  certainty: "",
  doubt: "",
});

test("evidence is at the places of its levels, in its own chart", () => {
  const places = new Map([
    [1, 8],
    [2, 16],
    [4, 64],
  ]);
  const { points } = markedIn(finding(mark(0, 1, 2, 4), mark(1, 0, 0, 9), mark(0, 1, 1, 1)), 0, places);
  expect([...points.keys()]).toEqual([1]);
  expect([...(points.get(1) ?? [])].sort((a, b) => a - b)).toEqual([8, 16, 64]);
});

/** What is drawn of two series: whether each is faint, and the rings. */
function drawn(marked: ReturnType<typeof markedIn> | null): { faint: boolean[]; rings: [number, number][] } {
  const rings: [number, number][] = [];
  const alphas: number[] = [];
  const ctx = {
    globalAlpha: 1,
    save: () => alphas.push(ctx.globalAlpha),
    restore: () => {
      ctx.globalAlpha = alphas.pop() ?? 1;
    },
    beginPath: () => undefined,
    stroke: () => undefined,
    arc: (x: number, y: number) => rings.push([x, y]),
  };
  const points = [
    { x: 10, y: 1 },
    { x: 20, y: 2 },
  ];
  const datasets = [{ data: [{ x: 1 }, { x: 2 }] }, { data: [{ x: 1 }, { x: 2 }] }];
  const chart = { ctx, data: { datasets }, getDatasetMeta: () => ({ data: points }) } as unknown as Chart;
  const plugin = marksOf(() => marked);
  const faint = [0, 1].map((index) => {
    const args = { index, meta: {} } as Parameters<NonNullable<typeof plugin.afterDatasetDraw>>[1];
    plugin.beforeDatasetDraw?.(chart, args, {});
    const before = ctx.globalAlpha < 1;
    plugin.afterDatasetDraw?.(chart, args, {});
    return before;
  });
  expect(ctx.globalAlpha).toBe(1);
  return { faint, rings };
}

test("the evidence has rings, and series without evidence are faint", () => {
  const places = new Map([
    [0, 1],
    [1, 2],
  ]);
  expect(drawn(markedIn(finding(mark(0, 1, 1, 1)), 0, places))).toEqual({ faint: [true, false], rings: [[20, 2]] });
});

test("without a finding, nothing is drawn", () => {
  expect(drawn(null)).toEqual({ faint: [false, false], rings: [] });
});
