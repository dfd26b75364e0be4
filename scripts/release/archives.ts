/**
 * Creates archives as bytes: `.tar.gz` (POSIX ustar) and `.zip`. The same files with the same time
 * produce the same bytes, so that anyone can reproduce a release and compare checksums.
 */
import { crc32, deflateRawSync, gzipSync } from "node:zlib";

export interface ArchivedFile {
  /**
   * The path inside the archive, separated by `/`, at most 100 bytes long. The path of a folder
   * ends with `/`.
   */
  readonly path: string;
  /** The contents of the file; empty for a folder. */
  readonly bytes: Uint8Array;
  /** The permission bits of the file, for example `0o644`. */
  readonly mode: number;
}

const BLOCK_BYTES = 512;
const PATH_BYTES_MAX = 100;

/** The first year that a `.zip` date can represent. */
const ZIP_FIRST_YEAR = 1980;

/**
 * Creates a `.tar.gz` archive.
 * @param seconds The modification time for every file, in seconds since 1970.
 */
export function tarGz(files: readonly ArchivedFile[], seconds: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const file of files) {
    const padding = (BLOCK_BYTES - (file.bytes.length % BLOCK_BYTES)) % BLOCK_BYTES;
    parts.push(tarHeader(file, seconds), file.bytes, new Uint8Array(padding));
  }
  // A tar archive ends with two empty blocks.
  parts.push(new Uint8Array(2 * BLOCK_BYTES));
  return gzipSync(Buffer.concat(parts));
}

/**
 * Returns the header block of a file in a tar archive.
 *
 *     OFFSET SIZE  numbers are octal text
 *          0   100   path
 *        100     8   mode, then 8 of owner, 8 of group
 *        124    12   bytes, then 12 of seconds since 1970
 *        148     8   sum of the header's bytes, with spaces here
 *        156     1   "0": a file, "5": a folder
 *        257     8   "ustar\0" "00"
 */
function tarHeader(file: ArchivedFile, seconds: number): Uint8Array {
  requireShortPath(file.path);
  const header = Buffer.alloc(BLOCK_BYTES);
  const number = (value: number, offset: number, size: number): void => {
    header.write(value.toString(8).padStart(size - 1, "0"), offset, "latin1");
  };
  header.write(file.path, 0, "utf8");
  number(file.mode, 100, 8);
  number(0, 108, 8);
  number(0, 116, 8);
  number(file.bytes.length, 124, 12);
  number(seconds, 136, 12);
  header.write(" ".repeat(8), 148, "latin1");
  header.write(file.path.endsWith("/") ? "5" : "0", 156, "latin1");
  header.write("ustar\u{0}00", 257, "latin1");
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, "0")}\u{0} `, 148, "latin1");
  return header;
}

function requireShortPath(path: string): void {
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) {
    throw new Error(`Cannot archive "${path}": a path has at most ${PATH_BYTES_MAX} bytes`);
  }
}

/**
 * Creates a `.zip` archive.
 * @param seconds The modification time for every file, in seconds since 1970.
 */
export function zip(files: readonly ArchivedFile[], seconds: number): Uint8Array {
  const parts: Uint8Array[] = [];
  const entries: Uint8Array[] = [];
  let offset = 0;
  for (const file of files) {
    requireShortPath(file.path);
    const packed = deflateRawSync(file.bytes);
    const name = Buffer.from(file.path);
    const common = zipFields(file, { packedBytes: packed.length, nameBytes: name.length, seconds });
    const local = Buffer.concat([u32(0x04034b50), common, name, packed]);
    // The "made by" field is set to version 2.0 on Unix (3), so that readers take the file mode
    // from the upper half of the attributes.
    const kind = file.path.endsWith("/") ? 0o40000 : 0o100000;
    const mode = (kind | file.mode) * 0x10000;
    const place = Buffer.concat([u16(0), u16(0), u16(0), u32(mode), u32(offset)]);
    entries.push(Buffer.concat([u32(0x02014b50), u16(0x0314), common, place, name]));
    parts.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(entries);
  const count = u16(files.length);
  const end = [u32(0x06054b50), u16(0), u16(0), count, count, u32(directory.length), u32(offset)];
  return Buffer.concat([...parts, directory, ...end, u16(0)]);
}

/**
 * Returns the header fields that precede a file's bytes in a `.zip` archive and are repeated in
 * its central directory.
 */
function zipFields(
  file: ArchivedFile,
  { packedBytes, nameBytes, seconds }: { packedBytes: number; nameBytes: number; seconds: number },
): Uint8Array {
  const date = new Date(seconds * 1000);
  const year = Math.max(date.getUTCFullYear() - ZIP_FIRST_YEAR, 0);
  const day = (year << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  const time =
    (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  // The first three fields mean ZIP version 2.0, file names in UTF-8, and compression by deflate.
  const kind = [u16(20), u16(0x0800), u16(8), u16(time), u16(day)];
  const sizes = [u32(crc32(file.bytes)), u32(packedBytes), u32(file.bytes.length)];
  return Buffer.concat([...kind, ...sizes, u16(nameBytes), u16(0)]);
}

function u16(value: number): Uint8Array {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function u32(value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
