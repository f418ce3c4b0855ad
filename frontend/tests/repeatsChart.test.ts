import { expect, test } from "vitest";
import { boxOf, inLines, placeOf, quantile } from "../src/features/repeatsChart";

test("quantiles lie between the two nearest values", () => {
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
  expect(quantile([1, 2, 3, 4, 5], 0.25)).toBe(2);
  expect(quantile([7], 0.75)).toBe(7);
});

test("whiskers end at the last value within 1.5 boxes, and few repeats have no box", () => {
  const box = boxOf([12, 10, 11, 13, 100], 0, 0.2);
  expect(box).toMatchObject({ median: 12, lower: 11, upper: 13, low: 10, high: 13, whole: true });
  expect(boxOf([1, 2, 3, 4], 0, 0.2).whole).toBe(false);
});

test("series stand beside each other at a level", () => {
  expect(placeOf(3, 0, 1)).toBe(3);
  expect(placeOf(3, 0, 2)).toBeCloseTo(2.8);
  expect(placeOf(3, 1, 2)).toBeCloseTo(3.2);
});

test("a name that is wider than its place has a line for each word", () => {
  expect(inLines("INTEL SSDPE2KX010T8", 80)).toEqual(["INTEL", "SSDPE2KX010T8"]);
  expect(inLines("INTEL SSDPE2KX010T8", 200)).toBe("INTEL SSDPE2KX010T8");
});
