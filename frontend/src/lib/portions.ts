/** Cuts the files of an import into portions for one request each. */

import type { Packable } from "./tar";

const OVERHEAD_BYTES = 1024; // of a file in a tar archive: its header and the rest of its last block
const LOG = /^(.{0,400})_(?:bw|iops|lat|clat|slat|clat_hist)(?:\.\d{1,6})?\.log(?:\.[\w.-]{1,100})?$/;

/** Files that must be in the same portion. */
interface Group<T> {
  readonly files: T[];
  bytes: number;
}

/**
 * Portions of about `bytes`, 2.json before 16.json. A folder is in one portion if it fits. Otherwise its logs of fio come
 * after its other files, and those of one trial stay together: the server then knows the tests that they belong to.
 */
export function portions<T extends Packable>(files: readonly T[], bytes: number): T[][] {
  const cut: Group<T>[] = [];
  for (const [, folder] of grouped(files, (file) => folderOf(file.path))) {
    const parts = folder.bytes <= bytes ? [folder] : trialsOf(folder.files);
    for (const part of parts) {
      const last = cut.at(-1);
      if (last && last.bytes + part.bytes <= bytes) {
        last.files.push(...part.files);
        last.bytes += part.bytes;
      } else cut.push({ files: [...part.files], bytes: part.bytes });
    }
  }
  return cut.map((portion) => portion.files);
}

/** Single files, and then the logs of each trial, in the natural order of their names. */
function trialsOf<T extends Packable>(folder: readonly T[]): Group<T>[] {
  const logs = folder.filter((file) => LOG.test(nameOf(file.path)));
  const others = folder.filter((file) => !LOG.test(nameOf(file.path)));
  return [
    ...grouped(others, (file) => file.path).map(([, group]) => group),
    ...grouped(logs, (file) => LOG.exec(nameOf(file.path))?.[1] ?? "").map(([, group]) => group),
  ];
}

/** In the natural order of the keys and, in a group, of the paths. */
function grouped<T extends Packable>(files: readonly T[], keyOf: (file: T) => string): [string, Group<T>][] {
  const found = new Map<string, Group<T>>();
  for (const file of files) {
    const key = keyOf(file);
    const group = found.get(key) ?? { files: [], bytes: 0 };
    group.files.push(file);
    group.bytes += file.file.size + OVERHEAD_BYTES;
    found.set(key, group);
  }
  for (const { files } of found.values()) files.sort((one, other) => inNaturalOrder(one.path, other.path));
  return [...found].sort(([one], [other]) => inNaturalOrder(one, other));
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** Compare texts and numbers in turn. */
function inNaturalOrder(one: string, other: string): number {
  const [ours, theirs] = [one.split(/(\d+)/), other.split(/(\d+)/)];
  for (const [place, piece] of ours.entries()) {
    const against = theirs[place];
    if (against === undefined) return 1;
    const difference = place % 2 ? Number(piece) - Number(against) : Number(piece > against) - Number(piece < against);
    if (difference !== 0) return difference;
  }
  return ours.length - theirs.length;
}
