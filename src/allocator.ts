/**
 * How long the runtime's allocator keeps memory that was let go before the system has it back.
 *
 * Left to itself it gives pages back within moments, those between live objects too, and the next
 * memtable or request body gets them again by a fault for each 4 KiB. Kept for some seconds they
 * serve again: in rounds by turns (medians, two cores) bulk loads are 1.3 times as fast with a
 * third of the faults, single INSERTs 1.04 times. What it costs is memory under load, up to 1.6
 * times as much after millions of rows in a row; a server that rests has none of it.
 *
 * The allocator reads its settings before any line of a program is run. So the process replaces
 * itself once, by the same program with the settings in its environment; its id, its files and its
 * place under whoever started it stay.
 */

const KEPT_MS = "10000";

/** Of the runtime's allocator, mimalloc: for pages that are free, and for holes between objects. */
export const ALLOCATOR_SETTINGS: Readonly<Record<string, string>> = {
  MIMALLOC_PURGE_DELAY: KEPT_MS,
  MIMALLOC_PURGE_HOLES_MIN_INTERVAL: KEPT_MS,
};

/**
 * Begins the process anew where its environment lacks a setting: what is set already was set on
 * purpose, and stays. Returns where it has all, or where a system cannot replace a process.
 *
 * @throws The system's error where this system can, and this program could not be run again.
 */
export function settleAllocator(isExecutable: boolean): void {
  const { argv, argv0, env, execArgv, execPath } = process;
  if (Object.keys(ALLOCATOR_SETTINGS).every((name) => env[name] !== undefined)) return;
  if (process.platform === "win32" || process.execve === undefined) return;
  // From source the runtime is what runs, and is told how, and what; an executable is both.
  const args = isExecutable ? argv.slice(2) : [...execArgv, ...argv.slice(1)];
  process.execve(execPath, [argv0, ...args], { ...ALLOCATOR_SETTINGS, ...env });
}
