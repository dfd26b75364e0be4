/** Prints the frames of log files, one line each, and reports where a file stops being valid. */
import { bunDisk } from "../src/base/bun_disk.ts";
import { unixMsFromSeq } from "../src/base/seq.ts";
import {
  decodeFrame,
  decodeWalHeader,
  type Frame,
  WAL_HEADER_BYTES,
} from "../src/storage/local_wal/format.ts";
import { decodeWrites } from "../src/storage/local_wal/logged_writes.ts";
import { readArguments } from "./support/arguments.ts";
import { printLines } from "./support/dump.ts";

/**
 * Returns the lines that describe a log file.
 * @throws {CorruptionError} If the file's header is damaged.
 */
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

if (import.meta.main) {
  const { words } = readArguments(
    {},
    { form: "<file> …", about: "a file in <data_path>/wal", countMin: 1 },
  );
  process.exitCode = printLines(linesOfAll(words));
}
