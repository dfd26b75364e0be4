/**
 * Prints the frames of log files, one line each, and says where a file stops making sense.
 *
 *     bun scripts/dump_wal.ts <data_path>/wal/0000000001.wal …
 */
import { bunDisk } from "../src/base/bun_disk.ts";
import { unixMsFromSeq } from "../src/base/seq.ts";
import {
  decodeFrame,
  decodeWalHeader,
  type Frame,
  WAL_HEADER_BYTES,
} from "../src/storage/local_wal/format.ts";
import { decodeWrites } from "../src/storage/local_wal/logged_writes.ts";
import { runDump } from "./support/dump.ts";

const USAGE = "usage: bun scripts/dump_wal.ts <data_path>/wal/<number>.wal …";

/** The lines that describe one log file. @throws {CorruptionError} If its header is damaged. */
export function describeWal(bytes: Uint8Array, path: string): string[] {
  const { fileNumber, baseSeq } = decodeWalHeader(bytes, path);
  const lines = [`${path}: file ${fileNumber}, after seq ${baseSeq}`];
  let offset = WAL_HEADER_BYTES;
  let frameNumber = 0;
  for (;;) {
    const frame = decodeFrame(bytes, { path, offset, fileNumber });
    if (frame === undefined || frame.frameNumber !== frameNumber) break;
    lines.push(describeFrame(frame));
    offset += frame.length;
    frameNumber += 1;
  }
  const isZero = bytes.subarray(offset, offset + 48).every((byte) => byte === 0);
  lines.push(`ends at byte ${offset}: ${isZero ? "zeros follow" : "no valid frame follows"}`);
  return lines;
}

function describeFrame(frame: Frame): string {
  const { offset, length, kind, frameNumber, durableFrames, firstSeq, lastSeq } = frame;
  const at = new Date(unixMsFromSeq(lastSeq)).toISOString();
  const head = `${offset} +${length} #${frameNumber} (${durableFrames} durable) ${kind}`;
  const writes = decodeWrites(frame).map(
    ({ operation, rows, tableId, owner }) =>
      `${operation} ${rows.length} of table ${tableId} owner ${owner}`,
  );
  return `${head} ${firstSeq}..${lastSeq} ${at} ${writes.join(", ")}`;
}

function* linesOfAll(paths: readonly string[]): Generator<string> {
  for (const path of paths) yield* describeWal(bunDisk.readFile(path), path);
}

function linesOf(paths: readonly string[]): Iterable<string> | undefined {
  const isMisused = paths.length === 0 || paths.some((path) => path.startsWith("-"));
  return isMisused ? undefined : linesOfAll(paths);
}

if (import.meta.main) process.exitCode = runDump(USAGE, process.argv.slice(2), linesOf);
