/**
 * How long the runtime's allocator keeps memory that was let go before the system has it back.
 *
 * Left to itself it gives pages back within moments, those between live objects too, and the next
 * memtable or request body gets them again by a fault for each 4 KiB. Kept for some seconds they
 * serve again: in rounds by turns (medians, two cores) bulk loads are 1.3 times as fast with a
 * third of the faults, single INSERTs 1.04 times. What it costs is memory under load, up to 1.6
 * times as much after millions of rows in a row; a server that rests has none of it.
 *
 * The allocator reads its settings before any line of a program is run. From source, whoever
 * launches the runtime (`scripts/launch.mjs`) puts them into its environment. An executable has
 * nobody before it: it replaces itself once, by the same program with the settings. Its id and its
 * place under whoever started it stay; of its open files only the first three do.
 */
import settings from "./allocator.json" with { type: "json" };

/** Milliseconds, for pages that are free and for holes between objects. */
export const ALLOCATOR_SETTINGS: Readonly<Record<string, string>> = settings;

/** A file that is open already, which would be gone. Files in /dev/shm are ordinary ones. */
const OPEN_FILE = /^\/(?:dev\/fd|dev\/std(?:in|out|err)|proc)(?:\/|$)/;

/** Where the system's loader was called by name, it counts as the program. */
const LOADER = /\/ld[-.][^/]*$/;

/** Whether the process was started with all of these settings, or deliberately with others. */
export function hasAllocatorSettings(): boolean {
  return Object.keys(ALLOCATOR_SETTINGS).every((name) => process.env[name] !== undefined);
}

/**
 * Begins an executable anew where its environment lacks a setting: what is set was set on purpose,
 * and stays. Returns where nothing is missing, or where the program would not come back the same.
 *
 * @param configPath What the program reads next.
 * @throws The system's error where the program could not be run again.
 */
export function restartWithAllocatorSettings(configPath: string): void {
  const { argv, argv0, env, execPath } = process;
  if (hasAllocatorSettings()) return;
  if (process.platform === "win32" || process.execve === undefined) return;
  if (OPEN_FILE.test(configPath) || LOADER.test(execPath)) return;
  process.execve(execPath, [argv0, ...argv.slice(2)], { ...ALLOCATOR_SETTINGS, ...env });
}
