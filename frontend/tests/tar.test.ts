import { describe, expect, test } from "vitest";
import { packed } from "../src/lib/tar";

const text = (bytes: Uint8Array, from: number, length: number): string =>
  new TextDecoder().decode(bytes.subarray(from, from + length)).replace(/\0.*$/s, "");

describe("a tar archive", () => {
  test("has a header with name, size and checksum before each file, in blocks of 512 bytes", async () => {
    const bytes = new Uint8Array(await packed([{ path: "a/b.json", file: new Blob(["hello"]) }]).arrayBuffer());
    expect(bytes.length).toBe(512 + 512 + 1024);
    expect(text(bytes, 0, 100)).toBe("a/b.json");
    expect(Number.parseInt(text(bytes, 124, 12), 8)).toBe(5);
    expect(text(bytes, 512, 5)).toBe("hello");
    const counted = bytes.slice(0, 512).fill(32, 148, 156);
    expect(Number.parseInt(text(bytes, 148, 6), 8)).toBe(counted.reduce((sum, byte) => sum + byte, 0));
  });

  test("keeps names of more than 100 bytes", async () => {
    const path = `${"ä".repeat(80)}/x.json`;
    const bytes = new Uint8Array(await packed([{ path, file: new Blob([""]) }]).arrayBuffer());
    expect(text(bytes, 156, 1)).toBe("L");
    expect(text(bytes, 512, 200)).toBe(path);
    expect(text(bytes, 1024 + 156, 1)).toBe("0");
  });
});
