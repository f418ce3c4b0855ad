import { expect, test } from "vitest";
import * as format from "../src/lib/format";
import vectors from "./vectors/format.json";

const FORMATTERS = {
  significant: format.significant,
  iops: format.iops,
  bytes: format.bytes,
  bytesPerSecond: format.bytesPerSecond,
  binaryBytes: format.binaryBytes,
  latency: format.latency,
  duration: format.duration,
  ratio: format.ratio,
  percent: format.percent,
} as const;

test.each(Object.entries(FORMATTERS))("%s says what the Python side says", (name, formatter) => {
  const examples = vectors[name as keyof typeof vectors] as [number | null, string][];
  const said = examples.map(([value]) => [value, (formatter as (value: number | null) => string)(value)]);
  expect(said).toEqual(examples);
});

test("every group of examples has its formatter", () => {
  expect(Object.keys(vectors).sort()).toEqual(Object.keys(FORMATTERS).sort());
});

test("clock counts minutes, and hours from the first on", () => {
  expect([0, 59.6, 61, 3661, -5].map(format.clock)).toEqual(["0:00", "1:00", "1:01", "1:01:01", "−0:05"]);
});

test("a counted noun has its plural and grouped digits", () => {
  expect([0, 1, 2, 2300].map((count) => format.counted(count, "file"))).toEqual([
    "0 files",
    "1 file",
    "2 files",
    "2,300 files",
  ]);
});
