/** Files that a person drops or chooses, with their paths inside a dropped folder. */

import type { Packable } from "./tar";

const MAX_FILES = 1_000_000; // they are in the memory of the browser

export interface Chosen extends Packable {
  readonly file: File;
}

/** Of a file input; `webkitRelativePath` is set if it is for folders. */
export function fromInput(files: FileList): Chosen[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** Everything that was dropped, folders with all that is in them. Throws Error if there is too much. */
export async function fromDrop(items: DataTransferItemList): Promise<Chosen[]> {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  const found: Chosen[] = [];
  for (const entry of entries) await collect(entry, found);
  return found;
}

async function collect(entry: FileSystemEntry, found: Chosen[]): Promise<void> {
  if (found.length >= MAX_FILES) throw new Error(`More than ${MAX_FILES.toLocaleString("en")} files: pack them.`);
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const each of some) await collect(each, found);
  }
}
