import { expect, test } from "vitest";
import { looksOf, named } from "../src/features/compareKey";
import { cellText, spreadText } from "../src/features/runCells";
import { lastMeasured, notStarted } from "../src/features/runNow";
import { pauseMs } from "../src/lib/poll";

const value = {
  direction: "read",
  iops: 45678,
  bytes_per_s: 187e6,
  mean_ns: 21_000,
  p99_ns: null,
  own: null,
  own_text: "",
};

test("a finished cell shows the chosen metric of each direction", () => {
  const cell = {
    trial: 0,
    state: "done",
    state_label: "Done",
    reason: "",
    invalid: "",
    kernel_lines: 0,
    values: [value, { ...value, iops: 10 }],
  };
  expect(cellText(cell, "iops")).toBe("45.7k / 10.0");
  expect(cellText(cell, "p99")).toBe("no value");
  const copied = { ...cell, values: [value, { ...value, own: 2.5, own_text: "2.50 s" }] };
  expect(cellText(copied, "own")).toBe("2.50 s");
  expect(spreadText([copied, copied], "own")).toBe("± 0 %");
  const nothing = { ...copied, values: copied.values.map((value) => ({ ...value, own: 0 })) };
  expect(spreadText([nothing, copied, copied], "own")).toBe("± 0 %");
  expect(spreadText([nothing, nothing], "own")).toBe("");
});

test("a cell that has no numbers says its state, a planned one nothing", () => {
  const cell = {
    trial: 0,
    state: "failed",
    state_label: "Failed",
    reason: "no engine",
    invalid: "",
    kernel_lines: 0,
    values: [],
  };
  expect(cellText(cell, "iops")).toBe("Failed");
  expect(cellText({ ...cell, state: "planned" }, "iops")).toBe("");
});

test("the tiles show the newest trial that has a second, and nothing of an older one", () => {
  const sample = {
    host: "store-1",
    trial: 3,
    attempt: 1,
    stream: 0,
    stream_name: "",
    offset_ms: 1000,
    length_ms: 1000,
    estimated: false,
    at_s: 10,
    direction: "read",
    iops: 100,
    bytes_per_s: 409_600,
    p50_ns: null,
    p99_ns: null,
    p999_ns: null,
    queue_depth: null,
    utilisation_percent: null,
    telemetry: [],
  };
  const older = { ...sample, trial: 2, at_s: 5, direction: "write" };
  expect(lastMeasured([older, sample])).toEqual([sample]);
  expect(lastMeasured([sample, older])).toEqual([sample]);
  expect(lastMeasured([])).toEqual([]);
});

test("series have the colours that the server gives them, and keep apart", () => {
  const looks = looksOf(["a", "b", "c"].map((name, colour) => ({ name, is_baseline: name === "b", colour })));
  const colours = ["a", "b", "c"].map((name) => looks.get(name)?.colour);
  expect(new Set(colours).size).toBe(3);
  expect(looks.get("a")?.marker).not.toBe(looks.get("c")?.marker);
});

test("pauses double after failures up to a limit, and never shorten", () => {
  expect([0, 1, 2, 3, 10].map((failures) => pauseMs(1000, failures))).toEqual([1000, 2000, 4000, 8000, 15000]);
  expect(pauseMs(30_000, 3)).toBe(30_000);
});

test("the dialog speaks of one trial as of one", () => {
  expect([0, 1, 2].map(notStarted)).toEqual([
    "0 planned trials will not start.",
    "1 planned trial will not start.",
    "2 planned trials will not start.",
  ]);
});

test("a legend names each of several series once, and a single one not at all", () => {
  const series = ["a", "b", "a"].map((name, place) => ({ name, is_baseline: place === 0, colour: place }));
  expect(named(series).map((each) => each.name)).toEqual(["a", "b"]);
  expect(named([{ name: "all", is_baseline: true, colour: 0 }])).toEqual([]);
});
