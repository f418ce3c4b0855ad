import { describe, expect, test } from "vitest";
import { planAnswer, planJobs } from "#payloads/plan";
import { nextRow } from "../src/features/planJobs";
import { Latest } from "../src/features/planPreview";
import { toggled } from "../src/features/planRows";
import answerExample from "./vectors/planAnswer.json";
import jobsExample from "./vectors/planJobs.json";

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

describe.each([
  ["jobs", planJobs, jobsExample],
  ["answer", planAnswer, answerExample],
] as const)("the payload of %s", (_name, check, example) => {
  test("is taken as the server writes it", () => {
    expect(check(example)).toEqual(example);
  });

  test.each(Object.keys(example))("is refused without %s", (key) => {
    expect(() => check({ ...example, [key]: undefined })).toThrow(/response is invalid/);
  });

  test("is refused with a field that is not known", () => {
    expect(() => check({ ...example, extra: 1 })).toThrow(/extra/);
  });
});
