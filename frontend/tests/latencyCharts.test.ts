import { expect, test } from "vitest";
import { curve, nines, ninesText, ticksAcross } from "../src/features/latencyCharts";
import { closerAddress, line, spread } from "../src/features/timeLines";

test("nines are counted and said", () => {
  expect(nines(0.9)).toBeCloseTo(1);
  expect(nines(0.999)).toBeCloseTo(3);
  expect([0, 1, 2, 3, 5, 0.5].map(ninesText)).toEqual(["0 %", "90 %", "99 %", "99.9 %", "99.999 %", ""]);
});

test("a latency axis has 1, 2 and 5 of each power of ten as ticks if they fit, else powers of ten", () => {
  const firsts = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9];
  const all = [4, 5, 6].flatMap((power) => firsts.map((first) => first * 10 ** power));
  expect(ticksAcross(all, 400)).toEqual([1e4, 1e5, 1e6]);
  const two = all.slice(0, 15);
  expect(ticksAcross(two, 400)).toEqual([1e4, 2e4, 5e4, 1e5, 2e5]);
  expect(ticksAcross(two, 200)).toEqual([1e4, 1e5]);
});

test("a distribution ends at all of its I/Os, which has no place among nines", () => {
  const series = { cdf_ns: [1000, 2000, 3000], cdf_shares: [0.5, 0.9, 1] };
  expect(curve(series, false)).toEqual([
    { x: 1000, y: 50 },
    { x: 2000, y: 90 },
    { x: 3000, y: 100 },
  ]);
  expect(curve(series, true).map((point) => point.x)).toEqual([1000, 2000]);
});

test("bins stand at their beginning, gaps stay gaps", () => {
  expect(line([5, null, 7], { from_s: 100, bin_s: 10 })).toEqual([
    { x: 100, y: 5 },
    { x: 110, y: null },
    { x: 120, y: 7 },
  ]);
});

test("a bin is drawn from its lowest to its highest second", () => {
  expect(spread({ low: [1, 3], high: [2, 9] }, { from_s: 0, bin_s: 2 })).toEqual([
    { x: 0, y: 1 },
    { x: 0, y: 2 },
    { x: 2, y: 3 },
    { x: 2, y: 9 },
  ]);
});

test("a zoom asks for the whole seconds around it", () => {
  expect(closerAddress("/explore/timeline.json?x=run", -0.2, 9.4)).toBe("/explore/timeline.json?x=run&from=0&to=11");
});
