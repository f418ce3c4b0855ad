import { expect, test } from "vitest";
import type { LiveCell } from "#payloads/live";
import { matching } from "../src/features/palette";
import { CONTRAST, heatStep, meanText, sizeOf } from "../src/features/runPivot";
import { ring } from "../src/features/tabProgress";

function cell(iops: number, changes: Partial<LiveCell> = {}): LiveCell {
  const value = { direction: "read", iops, bytes_per_s: 1, mean_ns: 1, p99_ns: null, own: null, own_text: "" };
  const plain = { trial: 1, state: "done", state_label: "Done", reason: "", invalid: "", kernel_lines: 0 };
  return { ...plain, values: [value], ...changes };
}

test("a cell of a table is the geometric mean of its valid repeats", () => {
  expect(meanText([cell(1000), cell(4000)], "iops")).toBe("2.00k");
  expect(meanText([cell(1000), cell(3000, { invalid: "wrong cable" })], "iops")).toBe("1.00k");
  expect(meanText([cell(1000), cell(3000, { state: "running", values: [] })], "iops")).toBe("1.00k");
});

test("a value of 0 is not in the mean, and its number is stated", () => {
  expect(meanText([cell(1000), cell(4000), cell(0)], "iops")).toBe("2.00k (0 in 1 of 3)");
  expect(meanText([cell(0), cell(0)], "iops")).toBe("0");
});

test("a cell without numbers says its state, and a cancelled one a dash", () => {
  const failed = cell(0, { state: "failed", state_label: "Failed", values: [] });
  const planned = cell(0, { state: "planned", state_label: "Planned", values: [] });
  expect(meanText([planned, failed], "iops")).toBe("Failed");
  expect(meanText([planned], "iops")).toBe("");
  expect(meanText([cell(0, { state: "cancelled", state_label: "Cancelled", values: [] })], "iops")).toBe("–");
});

test("a latency is not called better where its colour is stronger", () => {
  expect([CONTRAST.iops, CONTRAST.p99]).toEqual(["Darker: more IOPS", "Darker: a higher latency, which is worse"]);
});

test("directions have a mean each, and the colour follows their sum", () => {
  const both = (read: number, write: number): LiveCell => {
    const [value] = cell(read).values;
    return value ? cell(0, { values: [value, { ...value, direction: "write", iops: write }] }) : cell(0);
  };
  const cells = [both(1000, 100), both(4000, 400)];
  expect(meanText(cells, "iops")).toBe("2.00k / 200");
  expect(sizeOf(cells, "iops")).toBeCloseTo(2200);
  expect(sizeOf(cells, "p99")).toBeNull();
});

test("colours are spread over the values of the table on a log scale", () => {
  const sizes = [1, 10, 100, 1000];
  expect(sizes.map((size) => heatStep(size, sizes))).toEqual([0, 3, 6, 8]);
  expect(heatStep(5, [5])).toBe(0);
});

test("the icon of the tab fills with the progress and is grey in a pause", () => {
  expect(decodeURIComponent(ring(0.5, false))).toContain('stroke-dasharray="25.1 50.3"');
  expect(decodeURIComponent(ring(0.5, true))).toContain("#8a929c");
});

test("commands are found by all words in any order", () => {
  const entries = ["Audit log", "Log out", "Runs"].map((title) => ({ group: "", title, detail: "", address: "" }));
  expect(matching(entries, "LOG aud").map((entry) => entry.title)).toEqual(["Audit log"]);
  expect(matching(entries, "").length).toBe(3);
});
