import { expect, test } from "vitest";
import { labelOf, legendOf, placesOf } from "../src/features/referenceLines";

const point = (level: number, value: number) => ({ level, value, text: `${value} MB/s` });
const LINE = { panel: 0, name: "X25-M", points: [point(0, 100), point(1, 200)] };
const AREA = { left: 0, right: 300, top: 0, bottom: 400 };
const across = (level: number): number => 100 * (level + 1);
const up = (value: number): number => 400 - value;

test("a line has its name and its values with the unit", () => {
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

test("the label is at the last visible level, with the value of the last level", () => {
  const places = placesOf(LINE, across, up, AREA, 2);
  expect(labelOf(LINE, places, AREA)).toEqual({ name: "X25-M", value: "200 MB/s", end: { x: 200, y: 200 } });
  expect(labelOf(LINE, places, { ...AREA, top: 250 })?.end).toEqual({ x: 100, y: 300 });
  expect(labelOf(LINE, places, { ...AREA, top: 350 })).toBeUndefined();
});
