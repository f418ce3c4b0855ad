import { describe, expect, test } from "vitest";
import { besideEnd, fitted, heightsFor, type LineLabel, merged } from "../src/features/lineLabels";

const label = (name: string, y: number): LineLabel => ({ name, value: `${1000 - y} MB/s`, end: { x: 300, y } });
const widthOf = (text: string): number => text.length * 6;
const rounded = (heights: readonly number[]): number[] => heights.map(Math.round);

describe("heights of labels", () => {
  test("labels with room are level with their lines", () => {
    expect(heightsFor([20, 60, 100], 0, 160)).toEqual([20, 60, 100]);
  });

  test("labels of close lines are moved together, around the middle of their lines", () => {
    expect(rounded(heightsFor([79, 80, 81], 0, 160))).toEqual([68, 80, 92]);
  });

  test("eight labels of close lines stay within 42 pixels of their lines and do not overlap", () => {
    const wanted = [80, 80, 81, 81, 82, 82, 83, 83];
    const heights = heightsFor(wanted, 0, 160);
    expect(Math.max(...heights.map((height, index) => Math.abs(height - (wanted[index] ?? 0))))).toBeLessThan(42);
    expect(rounded(heights.slice(1).map((height, index) => height - (heights[index] ?? 0)))).toEqual(Array(7).fill(12));
  });

  test("labels stay in the chart", () => {
    expect(heightsFor([1, 2], 0, 160)).toEqual([6, 18]);
    expect(heightsFor([159, 160], 0, 160)).toEqual([142, 154]);
  });
});

describe("common labels", () => {
  test("each line has its own label if there is room", () => {
    expect(merged([label("b", 60), label("a", 20)], 2).map(({ name }) => name)).toEqual(["a", "b"]);
  });

  test("the closest lines share a label with the range of their values", () => {
    const [first, second] = merged([label("a", 20), label("b", 580), label("c", 585), label("d", 590)], 2);
    expect(first?.name).toBe("a");
    expect(second).toEqual({ name: "3 lines", value: "410 to 420 MB/s", end: { x: 300, y: 585 } });
  });

  test("lines with the same value have it once", () => {
    expect(merged([label("a", 20), label("b", 20)], 1)).toEqual([
      { name: "2 lines", value: "980 MB/s", end: { x: 300, y: 20 } },
    ]);
  });
});

test("a range has its unit once, unless the units differ", () => {
  const [one] = merged([{ ...label("a", 20), value: "1.20 GB/s" }, label("b", 30)], 1);
  expect(one?.value).toBe("970 MB/s to 1.20 GB/s");
});

test("a name that is too long loses its middle, and the value stays", () => {
  expect(fitted(label("X25-M", 580), 200, widthOf)).toBe("X25-M: 420 MB/s");
  expect(fitted(label("Old drive, queue depth 16", 580), 120, widthOf)).toBe("Old d…h 16: 420 MB/s");
  expect(fitted(label("X25-M", 580), 10, widthOf)).toBe("420 MB/s");
});

test("a label is left of the end of its line if it has room there, and never outside the chart", () => {
  const area = { left: 0, right: 300, top: 0, bottom: 160 };
  const at = (x: number, name: string) => besideEnd({ ...label(name, 580), end: { x, y: 80 } }, area, widthOf);
  expect(at(300, "X25-M")).toEqual({ text: "X25-M: 420 MB/s", before: true, x: 286 });
  expect(at(0, "X25-M")).toEqual({ text: "X25-M: 420 MB/s", before: false, x: 14 });
  expect(at(140, "Old drive, queue depth 16")).toEqual({ text: "Old dri…pth 16: 420 MB/s", before: false, x: 154 });
  expect(at(160, "Old drive, queue depth 16")).toEqual({ text: "Old dri…pth 16: 420 MB/s", before: true, x: 146 });
});
