import { describe, expect, it } from "vitest";
import { remaining } from "../src/features/countdown";

describe("remaining", () => {
  it.each([
    [3_599_000, "59:59"],
    [3_600_000, "1:00:00"],
    [3_723_999, "1:02:03"],
    [9_400, "0:09"],
    [-5, "0:00"],
  ])("%d ms is %s", (milliseconds, text) => {
    expect(remaining(milliseconds)).toBe(text);
  });
});
