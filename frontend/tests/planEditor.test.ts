import { expect, test } from "vitest";
import { nextRow } from "../src/features/planJobs";
import { Latest } from "../src/features/planPreview";
import { toggled } from "../src/features/planRows";

test("a picked name goes in and out again, the others stay as they were typed", () => {
  expect(toggled("randread", "randwrite")).toBe("randread, randwrite");
  expect(toggled("randread,randwrite", "randread")).toBe("randwrite");
  expect(toggled(" ", "none")).toBe("none");
});

test("an answer counts only while no newer question was asked", () => {
  const latest = new Latest();
  const first = latest.next();
  const second = latest.next();
  expect(latest.isLatest(first)).toBe(false);
  expect(latest.isLatest(second)).toBe(true);
});

test("arrow keys lead through the rows and stop at the ends", () => {
  expect(nextRow("ArrowDown", 0, 3)).toBe(1);
  expect(nextRow("ArrowUp", 0, 3)).toBeNull();
  expect(nextRow("ArrowDown", 2, 3)).toBeNull();
  expect(nextRow("a", 1, 3)).toBeNull();
});
