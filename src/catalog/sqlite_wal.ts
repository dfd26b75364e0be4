/**
 * Checks the log that SQLite keeps next to a database (`catalog.sqlite-wal`) after the process
 * that used it was killed. SQLite reads the log up to the first invalid frame and silently ignores
 * the rest, so damage would look like an earlier state.
 *
 *     header 32 bytes   all big-endian: magic, version, page size, checkpoint, salt (2 u32),
 *                       checksum (2 u32) of bytes 0 to 24
 *     frame  24 bytes   page number, pages of the database if this ends a transaction or else 0,
 *                       the header's salt, checksum of everything so far; then the page
 *
 * Frames with a different salt were left over from an earlier use of the file. See
 * https://sqlite.org/walformat.html
 */
import { CorruptionError } from "../base/errors.ts";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;

/** The running checksum, which consists of two 32-bit sums. */
interface WalChecksum {
  readonly first: number;
  readonly second: number;
}

/** Returns the first damage to a committed transaction in the log; undefined if there is none. */
export function sqliteWalDamage(bytes: Uint8Array, path: string): CorruptionError | undefined {
  if (bytes.length === 0) return undefined;
  if (bytes.length < HEADER_BYTES) return new CorruptionError(path, 0, "the file is too short");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = view.getUint32(0);
  // The lowest bit of the magic number determines the byte order in which the checksums are
  // computed.
  const isLittleEndian = magic === MAGIC;
  if (!isLittleEndian && magic !== MAGIC + 1) {
    return new CorruptionError(path, 0, "the file is not an SQLite write-ahead log");
  }
  let sums = added({ first: 0, second: 0 }, view, { start: 0, end: 24, isLittleEndian });
  if (!isEqual(sums, view, 24)) {
    return new CorruptionError(path, 24, "the checksum of the file header does not match");
  }
  const frameBytes = FRAME_HEADER_BYTES + view.getUint32(8);
  let at = HEADER_BYTES;
  for (; at + frameBytes <= bytes.length; at += frameBytes) {
    const start = at + FRAME_HEADER_BYTES;
    const before = added(sums, view, { start: at, end: at + 8, isLittleEndian });
    const now = added(before, view, { start, end: at + frameBytes, isLittleEndian });
    const holds = isEqual(now, view, at + 16);
    if (holds && !hasSalt(view, at)) {
      return new CorruptionError(path, at + 8, "the salt of a frame does not match");
    }
    if (!holds) break;
    sums = now;
  }
  return damageAt(view, { path, at, frameBytes });
}

/**
 * Decides whether an invalid frame means that committed data is damaged. A transaction is synced
 * before the next one begins, so if more frames follow the end of the transaction, it was durable.
 * If none follow, its last write may simply be incomplete. A transaction without a final frame was
 * never committed.
 */
function damageAt(
  view: DataView,
  { at, frameBytes, path }: { at: number; frameBytes: number; path: string },
): CorruptionError | undefined {
  let hasEnded = false;
  for (let next = at; next + frameBytes <= view.byteLength; next += frameBytes) {
    if (!hasSalt(view, next)) continue;
    if (hasEnded) {
      return new CorruptionError(path, at, "the checksum of a frame does not match");
    }
    hasEnded = view.getUint32(next + 4) !== 0;
  }
  if (!hasEnded) return undefined;
  const what =
    "the checksum of a frame in the last transaction does not match: the frame is damaged, or " +
    "was only partly written when the power failed, before the transaction was acknowledged";
  return new CorruptionError(path, at, what);
}

function hasSalt(view: DataView, at: number): boolean {
  return (
    view.getUint32(at + 8) === view.getUint32(16) && view.getUint32(at + 12) === view.getUint32(20)
  );
}

function isEqual({ first, second }: WalChecksum, view: DataView, at: number): boolean {
  return view.getUint32(at) === first && view.getUint32(at + 4) === second;
}

function added(
  sums: WalChecksum,
  view: DataView,
  { start, end, isLittleEndian }: { start: number; end: number; isLittleEndian: boolean },
): WalChecksum {
  let { first, second } = sums;
  for (let at = start; at < end; at += 8) {
    first = (first + view.getUint32(at, isLittleEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, isLittleEndian) + first) >>> 0;
  }
  return { first, second };
}
