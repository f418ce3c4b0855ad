import { expect, test } from "vitest";
import { slicesOf } from "../src/features/violins";

const total = (slices: readonly { share: number }[]): number => slices.reduce((sum, each) => sum + each.share, 0);

test("a violin has all I/Os, where they are", () => {
  const slices = slicesOf({ cdf_ns: [1000, 1010, 64_000], cdf_shares: [0.4, 0.8, 1] });
  expect(total(slices)).toBeCloseTo(1);
  const fullest = slices.reduce((best, each) => (best.share >= each.share ? best : each));
  expect(fullest.from).toBeLessThan(1010);
  expect(fullest.to).toBeGreaterThan(980);
  expect(fullest.share).toBeGreaterThan(0.6);
});

test("classes follow one another without gaps", () => {
  const slices = slicesOf({ cdf_ns: [100, 200, 90_000], cdf_shares: [0.5, 0.9, 1] });
  slices.slice(1).forEach((slice, index) => {
    expect(slice.from).toBeCloseTo(slices[index]?.to ?? 0);
  });
});

test("one latency is one narrow violin, and no I/Os are none", () => {
  const slices = slicesOf({ cdf_ns: [1000], cdf_shares: [1] });
  expect(slices.length).toBeLessThanOrEqual(2);
  expect(total(slices)).toBeCloseTo(1);
  expect(slicesOf({ cdf_ns: [], cdf_shares: [] })).toEqual([]);
  expect(total(slicesOf({ cdf_ns: [0, 1], cdf_shares: [0.5, 1] }))).toBeCloseTo(1);
});
