/** Finds files in a data directory and damages them, for tests of verification and repair. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const WAL_1 = "wal/0000000001.wal";

export const WAL_2 = "wal/0000000002.wal";

export const WAL_3 = "wal/0000000003.wal";

export function damage(path: string, offset: number, mask = 0x55): void {
  const bytes = readFileSync(path);
  bytes[offset] = (bytes[offset] ?? 0) ^ mask;
  writeFileSync(path, bytes);
}

/** Returns a function that maps a data directory to the path of the file `name` in it. */
export function at(name: string): (path: string) => string {
  return (path) => `${path}/${name}`;
}

/**
 * Returns a function that maps a data directory to the path of the first file below `folder` whose
 * name ends in `end`.
 */
export function below(folder: string, end: string): (path: string) => string {
  return (path) => fileIn(`${path}/${folder}`, end);
}

/** Returns the path of the first file below a directory whose name ends in `end`. */
export function fileIn(directory: string, end: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: "utf8" }).toSorted();
  return join(directory, names.find((name) => name.endsWith(end)) ?? "none");
}

/** Returns the offset after the last frame of a log file. Only zeros follow. */
export function endOfFrames(path: string): number {
  const bytes = readFileSync(path);
  let end = bytes.length;
  while (bytes[end - 1] === 0) end -= 1;
  return end;
}
