import { expect, test } from "vitest";
import { log2Bounds, powersOfTwo, tickText, timeTicks, wantsLog2 } from "../src/lib/axis";

test("powers of two cover block sizes from 512 B to 4 MiB", () => {
  const ticks = powersOfTwo(512, 4 * 2 ** 20);
  expect(ticks).toHaveLength(14);
  expect([ticks[0], ticks.at(-1)]).toEqual([512, 4194304]);
});

test("powers of two are thinned to the limit and cover values between them", () => {
  expect(powersOfTwo(1, 1024, 6)).toEqual([1, 4, 16, 64, 256, 1024]);
  expect(powersOfTwo(10, 40)).toEqual([8, 16, 32, 64]);
});

test("powers of two do not exist for what has no logarithm", () => {
  expect(powersOfTwo(0, 8)).toEqual([]);
  expect(powersOfTwo(8, 1)).toEqual([]);
});

test("a log2 axis is for positive levels a factor of four apart", () => {
  expect(wantsLog2([1, 32])).toBe(true);
  expect(wantsLog2([1, 2])).toBe(false);
  expect(wantsLog2([0, 100])).toBe(false);
  expect(wantsLog2([8])).toBe(false);
});

test("bounds of a log2 axis leave room at both ends", () => {
  const { min, max } = log2Bounds([1, 32]);
  expect(min).toBeLessThan(1);
  expect(max).toBeGreaterThan(32);
});

test("time ticks are round", () => {
  expect(timeTicks(0, 60)).toEqual([0, 10, 20, 30, 40, 50, 60]);
  expect(timeTicks(3, 9)).toEqual([3, 4, 5, 6, 7, 8, 9]);
  expect(timeTicks(5, 5)).toEqual([]);
});

test("ticks carry no zeros that say nothing", () => {
  const texts = ["60.0k", "5.50k", "1.00 GB/s", "100k", "0.0500", "12.3 µs"];
  expect(texts.map(tickText)).toEqual(["60k", "5.5k", "1 GB/s", "100k", "0.05", "12.3 µs"]);
});
