import { describe, expect, test } from "vitest";
import { benchCharts, shares } from "#payloads/bench";
import { latencyCharts, meansCharts, scatterCharts, timeCharts } from "#payloads/compare";
import { enrolment, logTail } from "#payloads/hosts";
import { added, begun, columnPreview, importProblem, labelPreview } from "#payloads/imports";
import { liveRun } from "#payloads/live";
import { marks } from "#payloads/marks";
import { planAnswer, planJobs } from "#payloads/plan";
import { searchHits } from "#payloads/search";
import { trendChart } from "#payloads/trend";
import benchExample from "./vectors/bench.json";
import columnPreviewExample from "./vectors/columnPreview.json";
import compareExample from "./vectors/compare.json";
import enrolmentExample from "./vectors/enrolment.json";
import importAddedExample from "./vectors/importAdded.json";
import importBegunExample from "./vectors/importBegun.json";
import importProblemExample from "./vectors/importProblem.json";
import labelPreviewExample from "./vectors/labelPreview.json";
import latencyExample from "./vectors/latency.json";
import liveExample from "./vectors/live.json";
import logTailExample from "./vectors/logTail.json";
import marksExample from "./vectors/marks.json";
import planAnswerExample from "./vectors/planAnswer.json";
import planJobsExample from "./vectors/planJobs.json";
import scatterExample from "./vectors/scatter.json";
import searchHitsExample from "./vectors/searchHits.json";
import sharesExample from "./vectors/shares.json";
import timeExample from "./vectors/timeline.json";
import trendExample from "./vectors/trend.json";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Path = readonly (string | number)[];

/** Paths of every field of every object in the example. */
function fields(value: Json, path: Path = []): Path[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => fields(item, [...path, index]));
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, item]) => [[...path, key], ...fields(item, [...path, key])]);
}

function changed(value: Json, path: Path, change: (holder: Record<string, Json>, key: string) => void): Json {
  const copy = structuredClone(value);
  const holder = path.slice(0, -1).reduce<Json>((at, key) => (at as Record<string | number, Json>)[key] as Json, copy);
  change(holder as Record<string, Json>, String(path.at(-1)));
  return copy;
}

describe.each([
  ["live", liveRun, liveExample as Json],
  ["bench", benchCharts, benchExample as Json],
  ["compare", meansCharts, compareExample as Json],
  ["enrolment", enrolment, enrolmentExample as Json],
  ["scatter", scatterCharts, scatterExample as Json],
  ["latency", latencyCharts, latencyExample as Json],
  ["timeline", timeCharts, timeExample as Json],
  ["log tail", logTail, logTailExample as Json],
  ["marks", marks, marksExample as Json],
  ["searchHits", searchHits, searchHitsExample as Json],
  ["begun import", begun, importBegunExample as Json],
  ["added files", added, importAddedExample as Json],
  ["import problem", importProblem, importProblemExample as Json],
  ["plan jobs", planJobs, planJobsExample as Json],
  ["plan answer", planAnswer, planAnswerExample as Json],
  ["shares", shares, sharesExample as Json],
  ["trend", trendChart, trendExample as Json],
  ["column preview", columnPreview, columnPreviewExample as Json],
  ["label preview", labelPreview, labelPreviewExample as Json],
])("the %s payload", (_name, check, example) => {
  test("is taken as the server writes it", () => {
    expect(check(example)).toEqual(example);
  });

  test.each(fields(example).map((path) => [path.join("."), path] as const))("is refused without %s", (_text, path) => {
    const broken = changed(example, path, (holder, key) => {
      delete holder[key];
    });
    expect(() => check(broken)).toThrow(/response is invalid/);
  });

  test("is refused with a field that is not known", () => {
    expect(() => check({ ...(example as object), extra: 1 })).toThrow(/extra/);
  });

  test("is refused with a number that is none", () => {
    expect(() => check(JSON.parse('"NaN"'))).toThrow(/response is invalid/);
  });
});

test.each([
  ["enum", meansCharts, { ...compareExample, kind: "pie" }],
  ["Literal", enrolment, { ...enrolmentExample, state: "lost" }],
  ["Literal of another file", trendChart, { ...trendExample, shown_as: "parsecs" }],
  ["list", trendChart, { ...trendExample, levels: { 0: 1 } }],
  ["number in a list", trendChart, { ...trendExample, levels: ["1"] }],
  ["true or false", scatterCharts, { ...scatterExample, logarithmic: "yes" }],
  ["text in a struct of a list", logTail, { ...logTailExample, lines: [{ ...logTailExample.lines[0], text: null }] }],
])("a wrong %s is refused", (_kind, check, wrong) => {
  expect(() => check(wrong)).toThrow(/response is invalid/);
});
