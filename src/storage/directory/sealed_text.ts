/**
 * Small files of one line of JSON and its checksum, written whole or not at all.
 *
 *     <JSON on one line>
 *     <CRC-32 of the line above, as 8 hex digits>
 */
import { crc32 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { readable } from "./readable.ts";
import { runNow, type SyncSteps } from "./sync_steps.ts";

/** Puts a file in its place, durably; whatever had its name is replaced. @throws {DiskError} */
export function writeSealedText(disk: Disk, path: string, body: string): void {
  runNow(disk, sealedTextSteps(disk, path, body));
}

/** The same, in steps. */
export function* sealedTextSteps(disk: Disk, path: string, body: string): SyncSteps<void> {
  const bytes = Buffer.from(body);
  const draft = `${path}.new`;
  const file = disk.open(draft, { create: true });
  try {
    file.truncate(0);
    file.write(Buffer.concat([bytes, Buffer.from(`\n${hexOf(crc32(bytes))}\n`)]), 0);
    yield file;
  } finally {
    file.close();
  }
  disk.rename(draft, path);
  yield path.slice(0, path.lastIndexOf("/"));
}

/** The line of JSON. @throws {CorruptionError} @throws {DiskError} */
export function readSealedText(disk: Disk, path: string): string {
  const text = Buffer.from(readable(path, () => disk.readFile(path))).toString("utf8");
  const [body = "", sum = "", rest, ...more] = text.split("\n");
  const isWhole = rest === "" && more.length === 0 && hexOf(crc32(Buffer.from(body))) === sum;
  if (!isWhole) throw new CorruptionError(path, 0, "the list does not match its checksum");
  return body;
}

function hexOf(crc: number): string {
  return crc.toString(16).padStart(8, "0");
}
