import { expect, test } from "vitest";
import type { ChartCeiling } from "#payloads/charts";
import { highest, placed } from "../src/features/ceilingLines";

const RAID: ChartCeiling = { text: "storage1/raid", value: 3.63e9, low: 3.2e9, high: 3.4e9 };
const NVME: ChartCeiling = { text: "storage1/nvme0", value: 7e9, low: null, high: null };

/** 4 GB/s at the top of 400 pixels. */
const pixel = (value: number): number => 400 - value / 1e7;

test("the axis reaches the highest ceiling", () => {
  expect(highest([RAID, NVME])).toBe(7e9);
  expect(highest([])).toBe(0);
});

test("a ceiling stands at its value, its band between what is had in practice", () => {
  expect(placed([RAID], pixel, { top: 0, bottom: 400 })).toEqual([
    { name: "storage1/raid", value: "3.63 GB/s", y: 37, band: { top: 60, bottom: 80 } },
  ]);
});

test("one that is outside the axis is not drawn, and a band ends at the axis", () => {
  expect(placed([NVME], pixel, { top: 0, bottom: 400 })).toEqual([]);
  expect(placed([RAID], pixel, { top: 0, bottom: 70 })[0]?.band).toEqual({ top: 60, bottom: 70 });
});

test("nothing is drawn where the scale knows no place", () => {
  expect(placed([RAID], () => Number.NaN, { top: 0, bottom: 400 })).toEqual([]);
});
