/**
 * Reads and writes small files that consist of one line of JSON and its checksum. They are written
 * completely or not at all.
 *
 *     <JSON on one line>
 *     <CRC-32 of the line above, as 8 hex digits>
 */
import { crc32 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { readable } from "./readable.ts";
import { runNow, type SyncSteps } from "./sync_steps.ts";

/** Durably writes a file under its final name, replacing any existing file. @throws {DiskError} */
export function writeSealedText(disk: Disk, path: string, body: string): void {
  runNow(disk, sealedTextSteps(disk, path, body));
}

/** Writes a file like {@linkcode writeSealedText}, but in steps. */
export function* sealedTextSteps(disk: Disk, path: string, body: string): SyncSteps<void> {
  const bytes = Buffer.from(body);
  const pendingPath = `${path}.new`;
  const file = disk.open(pendingPath, { create: true });
  try {
    file.truncate(0);
    file.write(Buffer.concat([bytes, Buffer.from(`\n${hexOf(crc32(bytes))}\n`)]), 0);
    yield file;
  } finally {
    file.close();
  }
  disk.rename(pendingPath, path);
  yield path.slice(0, path.lastIndexOf("/"));
}

/**
 * Reads a sealed file's line of JSON and verifies its checksum.
 * @throws {CorruptionError}
 * @throws {DiskError}
 */
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
