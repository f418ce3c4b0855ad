import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { axisOf, isGap, spreadsOf, tooltipOf } from "../src/features/benchCharts";
import { inFacets, matches } from "../src/features/benchPicker";
import { needed } from "../src/features/compareSelected";
import { lookAt } from "../src/lib/colours";

const levels = (...numbers: (number | null)[]): { text: string; number: number | null }[] =>
  numbers.map((number) => ({ text: String(number), number }));
const point = { level: 1, mean: 10, low: null, high: null, text: "10", spread_text: "n = 1" };

describe("the charts of products", () => {
  test("have a log2 axis for wide ranges, a linear one for narrow ones, and names otherwise", () => {
    expect(axisOf({ levels: levels(1, 2, 32) })).toBe("log2");
    expect(axisOf({ levels: levels(10, 20, 30) })).toBe("linear");
    expect(axisOf({ levels: levels(1, null) })).toBe("names");
    expect(axisOf({ levels: levels(1) })).toBe("names");
  });

  test("draw a value without repeats without an interval", () => {
    expect(spreadsOf([point], { levels: levels(1, 32) })).toEqual([{ x: 32, y: 10, yMin: 10, yMax: 10, of: point }]);
  });

  test("have one entry for each name, also for those that were not measured", () => {
    const named = { levels: levels(null, null, null) };
    expect(spreadsOf([point], named).map(({ x, y }) => [x, y])).toEqual([
      [0, Number.NaN],
      [1, 10],
      [2, Number.NaN],
    ]);
  });

  test("have a dashed line where a level was not measured", () => {
    expect(isGap({ level: 0 }, { level: 1 })).toBe(false);
    expect(isGap({ level: 0 }, { level: 2 })).toBe(true);
  });

  test("say the interval and the number of repeats", () => {
    expect(tooltipOf("storage1", point)).toBe("storage1: 10 (n = 1)");
  });
});

describe("colours of products", () => {
  test("are the same in style sheet and charts", () => {
    const style = readFileSync("src/styles/tokens.css", "utf8");
    for (let index = 0; index < 8; index++) {
      expect(style).toMatch(new RegExp(`--ss-product-${index}: ${lookAt(index).colour};`));
    }
  });
});

describe("the search for products", () => {
  test("finds all words in any order and case", () => {
    expect(matches("Drive models SAMSUNG MZQL21T9HCJR", "mzql samsung")).toBe(true);
    expect(matches("Drive models SAMSUNG MZQL21T9HCJR", "intel")).toBe(false);
    expect(matches("anything", "  ")).toBe(true);
  });

  test("shows a card that has a chosen value of each facet", () => {
    const card = new Set(["kind:model", "source:own", "source:import"]);
    expect(inFacets(card, new Map())).toBe(true);
    expect(inFacets(card, new Map([["source", new Set(["source:import", "source:reference"])]]))).toBe(true);
    expect(inFacets(card, new Map([["source", new Set(["source:reference"])]]))).toBe(false);
    const other = new Map([
      ["kind", new Set(["kind:host"])],
      ["source", new Set(["source:own"])],
    ]);
    expect(inFacets(card, other)).toBe(false);
    expect(inFacets(card, other, "kind")).toBe(true);
  });
});

describe("selected rows", () => {
  test("can be compared if there are two to eight", () => {
    expect([2, 8].map(needed)).toEqual(["", ""]);
    expect(needed(0)).toBe("Select 2 to 8 rows.");
    expect(needed(1)).toMatch(/at least one more/);
    expect(needed(9)).toMatch(/at most 8/);
  });
});
