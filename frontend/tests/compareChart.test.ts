import { expect, test } from "vitest";
import { meansCharts } from "#payloads/compare";
import {
  boundsOf,
  dataset,
  labelLines,
  onePerLevel,
  panelData,
  roundedUp,
  spreads,
  tooltipText,
  xAxisOf,
} from "../src/features/compareChart";
import example from "./vectors/compare.json";

const data = { ...meansCharts(example), ceilings: [], references: [] };
const { levels } = data.comparison;
const panel = data.comparison.panels[0] ?? { key: "", name: "", scaling: [], series: [] };

test("a panel keeps only the levels that it has", () => {
  const part = panelData(data, panel);
  expect(part.levels.map((level) => level.text)).toEqual(["1", "32"]);
  expect(part.series[0]?.cells.map((cell) => cell.level)).toEqual([0, 1]);
});

test("the axis of entered values names their unit", () => {
  const comparison = { ...data.comparison, metric_label: "New orders", shown_as: "entered" as const, unit: "1/min" };
  expect(panelData({ ...data, comparison }, panel).metric_label).toBe("New orders, 1/min");
  expect(panelData(data, panel).metric_label).toBe(data.comparison.metric_label);
});

test("numbers far apart stand on a log2 axis, names and single levels beside each other", () => {
  expect(xAxisOf(panelData(data, panel))).toBe("log2");
  expect(xAxisOf({ kind: "auto", levels })).toBe("names");
  expect(xAxisOf({ kind: "auto", levels: levels.slice(0, 1) })).toBe("names");
  const linear = [1, 2, 3].map((number) => ({ key: String(number), text: String(number), number }));
  expect(xAxisOf({ kind: "auto", levels: linear })).toBe("linear");
  expect(xAxisOf({ ...panelData(data, panel), kind: "bar" })).toBe("names");
});

test("zero and wide numbers are evenly spaced lines, not a log axis that cannot show the zero", () => {
  const ahead = [0, 128, 4096].map((number) => ({ key: String(number), text: String(number), number }));
  expect(xAxisOf({ kind: "auto", levels: ahead })).toBe("even");
  const part = panelData(data, panel);
  const series = part.series[0];
  expect(series ? spreads(series, part, "even").map((each) => each.x) : []).toEqual([0, 1]);
  expect(roundedUp(1234)).toBe(1300);
});

test("a logarithmic axis has points instead of bars, whose length would be arbitrary", () => {
  const part = { ...panelData(data, panel), kind: "bar" as const };
  const series = part.series[0];
  const look = { colour: "#000000", css: "#000000", marker: "circle" as const };
  const made = (logarithmic: boolean) => (series ? dataset(series, { ...part, logarithmic }, "names", look) : {});
  expect(made(false)).toHaveProperty("maxBarThickness");
  expect(made(true)).not.toHaveProperty("maxBarThickness");
  expect(made(true)).toMatchObject({ showLine: false, pointStyle: "circle" });
});

test("a series without the first level keeps its place on an axis of names", () => {
  const part = panelData(data, panel);
  const cells = part.series[0]?.cells.filter((cell) => cell.level === 1) ?? [];
  const made = part.series[0] ? spreads({ ...part.series[0], cells }, part, "names") : [];
  const filled = onePerLevel(made, part.levels.length);
  expect(filled.map((each) => each.x)).toEqual([0, 1]);
  expect(filled.map((each) => each.y)).toEqual([Number.NaN, 98765.4]);
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
    spread_text: "12.0k to 12.7k",
    doubts: [],
  });
  expect(made[1]).toMatchObject({ x: 32, y: 98765.4, yMin: 98765.4, yMax: 98765.4, n: 1 });
  expect(made[1]?.doubts).toHaveLength(1);
});

test("the tooltip has the texts of the table", () => {
  const spread_text = "41.0 to 93.8";
  const point = { x: 1, y: 62, yMin: 41, yMax: 93.8, n: 2, text: "62.0", spread_text, doubts: ["a doubt"] };
  expect(tooltipText("psync", point)).toBe("psync: 62.0 (95 % CI 41.0 to 93.8, n = 2); a doubt");
  expect(tooltipText("psync", { ...point, n: 1, spread_text: "n = 1", doubts: [] })).toBe("psync: 62.0 (n = 1)");
});

test("charts that share an axis reach to the end of the largest interval", () => {
  const part = panelData(data, panel);
  const other = (n: number) => ({
    ...part,
    series: [
      {
        key: "other",
        name: "other",
        is_baseline: true,
        sentence: "",
        conclusion: "none" as const,
        headline: "",
        against_baseline: null,
        points: 0,
        order: "",
        claim: "",
        certainty: "",
        doubt: "",
        cells: [
          {
            level: 0,
            summary: { values: [8, 10], n, mean: 9, sd: 1, low: 8, high: 2e5 },
            text: "9.00",
            spread_text: "8.00 to 200k",
            doubts: [],
            against_baseline: null,
            other_rate: "",
            results: n,
            lagging: 0,
            lagging_beside: 0,
          },
        ],
      },
    ],
  });
  expect(boundsOf([part, other(3)], false)).toEqual({ min: 0, max: 2e5 * 1.05 });
  expect(boundsOf([part, other(3)], true)?.min).toBeCloseTo(6.4);
  // two repeats that differ by chance have a wide interval: it does not set the axis
  expect(boundsOf([other(2)], false)).toEqual({ min: 0, max: 10 * 1.05 });
  expect(boundsOf([], false)).toBeNull();
  const ceiling = { text: "storage1/raid", value: 2e5, low: null, high: null };
  expect(boundsOf([{ ...part, ceilings: [ceiling] }], false)?.max).toBe(2e5 * 1.05);
});

test("a ceiling or reference far above the values does not flatten them", () => {
  const part = panelData(data, panel);
  const without = boundsOf([part], false);
  const far = { text: "storage1/raid", value: 3e9, low: null, high: null };
  const reference = (value: number) => ({ panel: 0, name: "X25-M", points: [{ level: 0, value, text: "" }] });
  expect(boundsOf([{ ...part, ceilings: [far], references: [reference(9e8)] }], false)).toEqual(without);
  expect(boundsOf([{ ...part, references: [reference(2e5)] }], false)?.max).toBe(2e5 * 1.05);
});

test("a panel has its own references, at its own levels", () => {
  const line = {
    panel: 0,
    name: "X25-M",
    points: data.comparison.levels.map((_, level) => ({ level, value: 1, text: "" })),
  };
  const part = panelData({ ...data, references: [line, { ...line, panel: 1 }] }, panel);
  expect(part.references).toHaveLength(1);
  expect(part.references[0]?.points.map((point) => point.level)).toEqual([0, 1]);
});

test("a doubtful mark is hollow, by options that a point with an error bar has", () => {
  const part = panelData(data, panel);
  const [first, second] = part.series[0]?.cells ?? [];
  if (!part.series[0] || !first || !second) throw new Error("The example lacks cells.");
  const series = { ...part.series[0], cells: [first, { ...second, doubts: ["noisy"] }] };
  const made = dataset(series, part, "log2", { colour: "#2f7bd8", css: "#2f7bd8", marker: "circle" });
  expect(made).toMatchObject({ backgroundColor: ["#2f7bd8", "#2f7bd822"], radius: 5 });
  expect(Object.keys(made).filter((name) => name.startsWith("point"))).toEqual(["pointStyle"]);
});

test("labels of several parts have a line for each part that differs", () => {
  expect(labelLines(["a/nvme0 · 4 KiB · psync", "a/nvme0 · 4 KiB · io_uring"])).toEqual([["psync"], ["io_uring"]]);
  expect(labelLines(["a · 1", "a · 2", "b"])).toEqual([["a", "1"], ["a", "2"], ["b"]]);
  expect(labelLines(["this-machine/scratch · 1", "other/scratch · 2"])).toEqual([
    ["…machine/scratch", "1"],
    ["other/scratch", "2"],
  ]);
  expect(labelLines(["a · 1"])).toEqual([["a", "1"]]);
});
