/** Reads the memory use of processes, as measured by Linux. */
import { readFileSync } from "node:fs";

/** Returns the resident memory of a process, in bytes. @throws If the process does not exist. */
export function residentBytes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1024;
}

export function mebibytes(bytes: number): number {
  return Math.round(bytes / 2 ** 20);
}
