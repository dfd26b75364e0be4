/**
 * Reads ZIP archives, to check the archives that the server writes: the directory, the local
 * header that corresponds to each of its records, checksums and sizes, including the ZIP64 fields.
 */
import { inflateRawSync } from "node:zlib";
import { crc32 } from "../../src/base/checksum.ts";

const SEE_ZIP64 = 0xffff_ffff;

/**
 * Returns the contents of an archive by name, in directory order. @throws {Error} If the archive
 * is malformed.
 */
export function readZip(bytes: Uint8Array): Map<string, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { count, offset } = directoryOf(view);
  const entries = new Map<string, Uint8Array>();
  let at = offset;
  for (let index = 0; index < count; index += 1) {
    expectNumber("the signature of a record", view.getUint32(at, true), 0x02014b50);
    const nameBytes = view.getUint16(at + 28, true);
    const extraBytes = view.getUint16(at + 30, true);
    const name = textAt(bytes, at + 46, nameBytes);
    if (entries.has(name)) throw new Error(`The archive has two entries ${name}`);
    const sizes = sizesOf(view, at, at + 46 + nameBytes);
    entries.set(name, contentOf(bytes, view, { at, name, ...sizes }));
    at += 46 + nameBytes + extraBytes;
  }
  return entries;
}

/** Returns the text of an entry. @throws {Error} If there is no entry with this name. */
export function textOf(entries: ReadonlyMap<string, Uint8Array>, name: string): string {
  const content = entries.get(name);
  if (content === undefined) throw new Error(`${name} is not in ${[...entries.keys()].join(", ")}`);
  return new TextDecoder().decode(content);
}

function directoryOf(view: DataView): { count: number; offset: number } {
  const end = view.byteLength - 22;
  expectNumber("the signature of the end", view.getUint32(end, true), 0x06054b50);
  const count = view.getUint16(end + 10, true);
  const size = view.getUint32(end + 12, true);
  const offset = view.getUint32(end + 16, true);
  if (count !== 0xffff && size !== SEE_ZIP64 && offset !== SEE_ZIP64) {
    expectNumber("the end of the directory", offset + size, end);
    return { count, offset };
  }
  expectNumber("the signature of the locator", view.getUint32(end - 20, true), 0x07064b50);
  const record = Number(view.getBigUint64(end - 12, true));
  expectNumber("the signature of the long end", view.getUint32(record, true), 0x06064b50);
  return {
    count: Number(view.getBigUint64(record + 32, true)),
    offset: Number(view.getBigUint64(record + 48, true)),
  };
}

interface Sizes {
  readonly storedBytes: number;
  readonly plainBytes: number;
  readonly headerAt: number;
}

function sizesOf(view: DataView, at: number, extraAt: number): Sizes {
  let next = extraAt + 4;
  const whole = (short: number): number => {
    if (short !== SEE_ZIP64) return short;
    expectNumber("the extra field", view.getUint16(extraAt, true), 1);
    next += 8;
    return Number(view.getBigUint64(next - 8, true));
  };
  const plainBytes = whole(view.getUint32(at + 24, true));
  const storedBytes = whole(view.getUint32(at + 20, true));
  return { plainBytes, storedBytes, headerAt: whole(view.getUint32(at + 42, true)) };
}

function contentOf(
  bytes: Uint8Array,
  view: DataView,
  { at, headerAt, name, plainBytes, storedBytes }: Sizes & { at: number; name: string },
): Uint8Array {
  expectNumber("the signature of a header", view.getUint32(headerAt, true), 0x04034b50);
  // Flags, method, time, date and checksum are in both the local header and the directory.
  for (let each = 0; each < 12; each += 2) {
    const inHeader = view.getUint16(headerAt + 6 + each, true);
    expectNumber("a field of a header", inHeader, view.getUint16(at + 8 + each, true));
  }
  const nameBytes = view.getUint16(headerAt + 26, true);
  if (textAt(bytes, headerAt + 30, nameBytes) !== name) throw new Error(`${name} has another name`);
  const extraAt = headerAt + 30 + nameBytes;
  const isLong = view.getUint32(headerAt + 18, true) === SEE_ZIP64;
  const [plain, stored] = isLong
    ? [view.getBigUint64(extraAt + 4, true), view.getBigUint64(extraAt + 12, true)]
    : [view.getUint32(headerAt + 22, true), view.getUint32(headerAt + 18, true)];
  expectNumber(`the size of ${name}`, Number(plain), plainBytes);
  expectNumber(`the stored size of ${name}`, Number(stored), storedBytes);
  const start = extraAt + view.getUint16(headerAt + 28, true);
  const content = bytes.subarray(start, start + storedBytes);
  const isDeflated = view.getUint16(at + 10, true) === 8;
  const read = isDeflated ? new Uint8Array(inflateRawSync(content)) : content;
  expectNumber(`the length of ${name}`, read.length, plainBytes);
  expectNumber(`the checksum of ${name}`, crc32(read), view.getUint32(at + 16, true));
  return read;
}

function textAt(bytes: Uint8Array, start: number, length: number): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(start, start + length));
}

function expectNumber(what: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${what} is ${found}, but should be ${expected}`);
}
