import { describe, expect, it } from "vitest";
import { bounds, corners, powers } from "../src/features/benchLoad";

const AREA = { left: 0, right: 100, top: 0, bottom: 100 };
const AXES = { x: (value: number): number => value, y: (value: number): number => 100 - value };

describe("load curves", () => {
  it("leave room on both sides of a logarithmic axis", () => {
    const { min, max } = bounds([10, 1000]);
    expect(min).toBeLessThan(10);
    expect(max).toBeGreaterThan(1000);
    expect(min * max).toBeCloseTo(10 * 1000);
  });

  it("have ticks at 1, 2 and 5 times powers of ten, and at powers alone on a wide axis", () => {
    expect(powers(150, 6000)).toEqual([200, 500, 1000, 2000, 5000]);
    expect(powers(1, 1e5)).toEqual([1, 10, 100, 1000, 10000, 100000]);
  });

  it("show a narrow limit as a band that is seen, over the whole chart", () => {
    const band = corners({ along: "x", low: 50, high: 51 }, AXES, AREA, { min: 1, max: 100 });
    expect(band).toEqual([
      [47.5, 0],
      [53.5, 0],
      [53.5, 100],
      [47.5, 100],
    ]);
    const across = corners({ along: "y", low: 20, high: 40 }, AXES, AREA, { min: 1, max: 100 });
    expect(across.map(([, down]) => down)).toEqual([60, 60, 80, 80]);
  });

  it("show a limit of bandwidth as a diagonal: the rate falls as blocks become larger", () => {
    const [[, first = 0] = [], [, second = 0] = []] = corners({ along: "product", low: 90, high: 90 }, AXES, AREA, {
      min: 1,
      max: 10,
    });
    expect(100 - first).toBeCloseTo(90 / 1.06);
    expect(100 - second).toBeCloseTo(9 / 1.06);
  });
});
