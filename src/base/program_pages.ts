/**
 * Releases the program's code pages that only its startup needed. Startup touches half of the
 * runtime's 80 MB of code. Releasing the pages reduces the memory use of an idle server that runs
 * from source from 79 to 55 MiB (2026-11-29). If a released page is needed again, the system reads
 * it from the file.
 *
 * Only code pages may be released in this way, because their contents are unchanged in the file.
 * Data pages may have been modified in memory.
 */
import type { Disk } from "./disk.ts";
import { DiskError } from "./errors.ts";
import { loadFromLibc } from "./libc.ts";

export interface ProgramPagesOptions {
  /** Reads `/proc`, which exists only on Linux. */
  readonly disk: Pick<Disk, "readFile">;
  /** The path of the program's executable file. */
  readonly path: string;
  /** Releases the pages in a range of memory. */
  readonly release: (range: MemoryRange) => void;
}

export interface MemoryRange {
  readonly address: number;
  readonly bytes: number;
}

/** The value of MADV_DONTNEED on Linux. */
const MADV_DONTNEED = 4;

export function releaseProgramPages({ disk, path, release }: ProgramPagesOptions): void {
  for (const line of mapsOf(disk).split("\n")) {
    const [, from = "", to = "", rights, file] =
      /^(\w+)-(\w+) (\S+) \w+ \S+ \d+\s+(.*)$/.exec(line) ?? [];
    if (rights !== "r-xp" || file !== path) continue;
    const address = Number.parseInt(from, 16);
    release({ address, bytes: Number.parseInt(to, 16) - address });
  }
}

/** Returns the function that releases pages; undefined if the system has no call for this. */
export function pageRelease(): ProgramPagesOptions["release"] | undefined {
  if (process.platform !== "linux") return undefined;
  const libc = loadFromLibc({ madvise: { args: ["usize", "usize", "i32"], returns: "i32" } });
  if (libc === undefined) return undefined;
  return ({ address, bytes }) => void libc.madvise(address, bytes, MADV_DONTNEED);
}

function mapsOf(disk: ProgramPagesOptions["disk"]): string {
  try {
    return new TextDecoder().decode(disk.readFile("/proc/self/maps"));
  } catch (error) {
    // If the file is missing or cannot be opened, the pages simply stay in memory.
    if (error instanceof DiskError) return "";
    throw error;
  }
}
