import { expect, test } from "vitest";
import { boundsOf, panelData, spreads, tooltipText, xAxisOf } from "../src/features/compareChart";
import { meansCharts } from "../src/payloads/compare";
import example from "./vectors/compare.json";

const data = { ...meansCharts(example), ceilings: [] };
const { levels } = data.comparison;
const panel = data.comparison.panels[0] ?? { key: "", name: "", series: [] };

test("a panel keeps only the levels that it has", () => {
  const part = panelData(data, panel);
  expect(part.levels.map((level) => level.text)).toEqual(["1", "32"]);
  expect(part.series[0]?.cells.map((cell) => cell.level)).toEqual([0, 1]);
});

test("numbers far apart stand on a log2 axis, names and single levels beside each other", () => {
  expect(xAxisOf(panelData(data, panel))).toBe("log2");
  expect(xAxisOf({ kind: "auto", levels })).toBe("names");
  expect(xAxisOf({ kind: "auto", levels: levels.slice(0, 1) })).toBe("names");
  const linear = [1, 2, 3].map((number) => ({ key: String(number), text: String(number), number }));
  expect(xAxisOf({ kind: "auto", levels: linear })).toBe("linear");
  expect(xAxisOf({ ...panelData(data, panel), kind: "bar" })).toBe("names");
});

test("points carry their confidence interval; a single measurement carries none", () => {
  const part = panelData(data, panel);
  const series = part.series[0];
  const made = series ? spreads(series, part, "log2") : [];
  expect(made[0]).toEqual({
    x: 1,
    y: 12345.6,
    yMin: 12000,
    yMax: 12700,
    n: 3,
    text: "12.3k",
    spread_text: "± 350",
    doubts: [],
  });
  expect(made[1]).toMatchObject({ x: 32, y: 98765.4, yMin: 98765.4, yMax: 98765.4, n: 1 });
  expect(made[1]?.doubts).toHaveLength(1);
});

test("the tooltip has the texts of the table, also where the interval reaches below 0", () => {
  const point = { x: 1, y: 62, yMin: 0, yMax: 160, n: 2, text: "62.0", spread_text: "± 98.0", doubts: ["a doubt"] };
  expect(tooltipText("psync", point)).toBe("psync: 62.0 ± 98.0 (95 % CI, n = 2); a doubt");
  expect(tooltipText("psync", { ...point, n: 1, spread_text: "one repeat", doubts: [] })).toBe(
    "psync: 62.0, one repeat",
  );
});

test("charts that share an axis reach to the end of the largest interval", () => {
  const part = panelData(data, panel);
  const other = {
    ...part,
    series: [
      {
        key: "other",
        name: "other",
        is_baseline: true,
        sentence: "",
        against_baseline: null,
        cells: [
          {
            level: 0,
            summary: { values: [8, 10], n: 2, mean: 9, sd: 1, low: -1, high: 2e5 },
            text: "9.00",
            spread_text: "± 1e5",
            doubts: [],
            against_baseline: null,
          },
        ],
      },
    ],
  };
  expect(boundsOf([part, other], false)).toEqual({ min: 0, max: 2e5 * 1.05 });
  expect(boundsOf([part, other], true)?.min).toBeCloseTo(7.2);
  expect(boundsOf([], false)).toBeNull();
  const ceiling = { text: "storage1/raid", value: 3e9, low: null, high: null };
  expect(boundsOf([{ ...part, ceilings: [ceiling] }], false)?.max).toBe(3e9 * 1.05);
});
