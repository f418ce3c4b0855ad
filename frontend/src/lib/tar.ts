/** Packs files into a tar archive without copying them: POSIX ustar headers, and GNU's long names. */

const BLOCK = 512;
const NAME_BYTES = 100;

export interface Packable {
  readonly path: string;
  readonly file: Blob;
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

function header(name: Uint8Array, size: number, type: string): Uint8Array<ArrayBuffer> {
  const block = new Uint8Array(BLOCK);
  const write = (text: string, at: number): void => block.set(new TextEncoder().encode(text), at);
  block.set(name.subarray(0, NAME_BYTES), 0);
  write(octal(0o644, 8), 100);
  write(octal(0, 8) + octal(0, 8), 108);
  write(octal(size, 12), 124);
  write(octal(0, 12), 136);
  write(" ".repeat(8), 148); // the checksum counts as spaces
  write(type, 156);
  write("ustar\0", 257);
  write("00", 263);
  const sum = block.reduce((total, byte) => total + byte, 0);
  write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function padding(size: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}

/** A tar archive of these files, at their paths. */
export function packed(files: readonly Packable[]): Blob {
  const parts: BlobPart[] = [];
  for (const { path, file } of files) {
    const name = new TextEncoder().encode(path);
    if (name.length > NAME_BYTES) {
      const whole = new Uint8Array([...name, 0]);
      parts.push(header(new TextEncoder().encode("././@LongLink"), whole.length, "L"), whole, padding(whole.length));
    }
    parts.push(header(name, file.size, "0"), file, padding(file.size));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts);
}
