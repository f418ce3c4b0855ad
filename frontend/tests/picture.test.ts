import { expect, test } from "vitest";
import { cut } from "../src/lib/picture";

test("an address is cut into lines that fit and lose nothing", () => {
  const text = "x".repeat(95);
  const lines = cut(text, 40, (each) => each.length);
  expect(lines.join("")).toBe(text);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(40);
  expect(cut("", 40, (each) => each.length)).toEqual([]);
});
