import { describe, expect, test } from "vitest";
import { portions } from "../src/lib/portions";

const KIB = 1024; // the size of a file in a portion, in addition to its bytes

describe("portions", () => {
  const file = (path: string, size: number) => ({ path, file: new Blob(["x".repeat(size)]) });
  const cut = (names: readonly string[], size: number, bytes: number): string[][] =>
    portions(
      names.map((name) => file(name, size)),
      bytes,
    ).map((portion) => portion.map((each) => each.path));

  test("are cut when they are full", () => {
    expect(cut(["c", "a", "b"], 6, 2 * (KIB + 6))).toEqual([["a", "b"], ["c"]]);
  });

  test("count what an archive needs for each file", () => {
    expect(cut(["a", "b", "c"], 0, 2 * KIB)).toEqual([["a", "b"], ["c"]]);
  });

  test("are in the natural order of the names", () => {
    const names = ["a2/1.json", "a10/1.json", "b/1.json", "b/2.json", "b/16.json", "b/16.json.b"];
    expect(cut([...names].sort(), 1, 100 * KIB)).toEqual([names]);
  });

  test("never cut the logs of a trial", () => {
    const names = ["d/r_bw.1.log", "d/r_bw.2.log", "d/r_lat.1.log", "d/s_bw.1.log"];
    expect(cut(names, 6, 2 * KIB).map((portion) => portion.length)).toEqual([3, 1]);
  });

  test("never cut a folder that fits", () => {
    const names = ["d/1.json", "e/1.json", "e/r_bw.1.log", "e/s_bw.1.log", "f/1.json"];
    expect(cut(names, 1, 3.5 * KIB)).toEqual([["d/1.json"], names.slice(1, 4), ["f/1.json"]]);
  });

  test("have the tests of a folder before their logs if the folder is too large", () => {
    const names = ["d/r_bw.1.log", "d/r_bw.2.log", "d/sub/1.json", "d/z.json", "d/a_bw.1.log", "d/a_x_bw.1.log"];
    expect(cut([...names, "d/a_iops.1.log"], 1, 3.5 * KIB)).toEqual([
      ["d/z.json", "d/a_bw.1.log", "d/a_iops.1.log"],
      ["d/a_x_bw.1.log", "d/r_bw.1.log", "d/r_bw.2.log"],
      ["d/sub/1.json"],
    ]);
  });

  test("of nothing are none", () => {
    expect(portions([], 10)).toEqual([]);
  });
});
