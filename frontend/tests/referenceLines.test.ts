import { expect, test } from "vitest";
import { freeHeight, labelOf, legendOf, placesOf } from "../src/features/referenceLines";

const point = (level: number, value: number) => ({ level, value, text: `${value} MB/s` });
const LINE = { panel: 0, name: "X25-M", points: [point(0, 100), point(1, 200)] };
const AREA = { left: 0, right: 300 };
const across = (level: number): number => 100 * (level + 1);
const up = (value: number): number => 400 - value;

test("a line has its name and its values with the unit", () => {
  expect(labelOf(LINE)).toBe("X25-M: 200 MB/s");
  expect(legendOf(LINE)).toBe("X25-M: 100 MB/s to 200 MB/s");
  expect(legendOf({ ...LINE, points: [point(0, 100)] })).toBe("X25-M: 100 MB/s");
});

test("it goes through the levels that it has", () => {
  expect(placesOf(LINE, across, up, AREA, 2)).toEqual([
    { x: 100, y: 300 },
    { x: 200, y: 200 },
  ]);
});

test("a single level is a short line among other levels, and crosses a chart with one level", () => {
  const single = { ...LINE, points: [point(0, 100)] };
  expect(placesOf(single, across, up, AREA, 3).map((place) => place.x)).toEqual([82, 118]);
  expect(placesOf(single, across, up, AREA, 1).map((place) => place.x)).toEqual([0, 300]);
});

test("labels do not cover each other and stay in the chart", () => {
  expect(freeHeight(50, [], 0)).toBe(50);
  expect(freeHeight(50, [50], 0)).toBe(62);
  expect(freeHeight(2, [], 10)).toBe(22);
});
