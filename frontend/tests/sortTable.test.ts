import { expect, test } from "vitest";
import { ordered } from "../src/features/sortTable";

test("rows are ordered by number, and those without a value are last in both directions", () => {
  const rows = [3, null, 1, 20];
  const value = (row: number | null): number | null => row;
  expect(ordered(rows, value, "ascending")).toEqual([1, 3, 20, null]);
  expect(ordered(rows, value, "descending")).toEqual([20, 3, 1, null]);
});
