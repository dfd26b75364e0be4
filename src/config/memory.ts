/**
 * Implements `performance.memory_bytes`: how much memory the process may use, as configured or
 * detected, and how that memory is divided.
 *
 * The default of each key that limits memory is a fraction of the memory that the runtime leaves,
 * up to an amount that suffices on a large machine. The fractions of all parts, including parts
 * without a key (`layer_limits.ts`), and the heaps of threads add up to about nine tenths of that
 * memory. The remaining tenth is for garbage. The parts are rarely all full at the same time.
 *
 * In a checked configuration, the key is never 0. A limit too low for the server even to start is
 * refused here, before the system can kill the process.
 */
import type { MemoryLimit } from "../base/memory_limit.ts";
import type { KeyRule } from "./key_rule.ts";
import type { Config } from "./keys.ts";

const MIB = 2 ** 20;

/** The path of the configuration key for the process's memory. */
export const MEMORY_KEY = "performance.memory_bytes";

/**
 * The minimum amount of memory that a server needs to start and work. A server running from source
 * needs up to 123 MiB to start, and a reader thread needs at least 25 more. With 192 MiB, a server
 * in a control group could load, group and sort 60,000 rows (2026-11-29). At that size, a
 * statement may use 12 MiB, which an UPDATE of all these rows exceeds.
 */
export const MEMORY_BYTES_MIN: number = 192 * MIB;

/** The memory used by the runtime and the server's code just after starting from source. */
const RUNTIME_BYTES: number = 96 * MIB;

/** The memory used by a reader thread after its first statement. Half of it is garbage. */
const READER_BYTES: number = 48 * MIB;

/** The fraction of the memory limit that all reader threads together may use. */
const READERS_SHARE: number = 1 / 4;

/** The memory limit to assume if none was detected. */
export const PLENTY: MemoryLimit = { bytes: 64 * 1024 * MIB, source: "no limit" };

/**
 * The keys whose memory limits are added up, because all of these limits may be reached at the
 * same time.
 */
const ADDED_KEYS = [
  "performance.total_query_memory_bytes",
  "storage.cache_bytes",
  "storage.memtable_bytes",
  "limits.transaction_max_bytes",
  "files.max_request_bytes",
  "server.workers",
] as const;

/** Returns a fraction of the memory that the runtime leaves, in bytes, rounded to whole MiB. */
export function shareOf(memoryBytes: number, share: number): number {
  const bytes = Math.max(0, memoryBytes - RUNTIME_BYTES) * share;
  return Math.max(MIB, Math.floor(bytes / MIB) * MIB);
}

/** Returns the number of reader threads to use if the configuration does not specify it. */
export function readerCountMax(memoryBytes: number): number {
  return Math.max(1, Math.floor(((memoryBytes - RUNTIME_BYTES) * READERS_SHARE) / READER_BYTES));
}

/** Returns the default of a key, which may depend on the memory of the process. */
export function defaultOf({ initial, min = 0, share }: KeyRule, memoryBytes: number): unknown {
  if (share === undefined || typeof initial !== "number") return initial;
  return Math.min(initial, Math.max(min, shareOf(memoryBytes, share)));
}

/**
 * Returns the sentence that describes how a key's default depends on the available memory. It is
 * appended to the description of the key.
 */
export function shareText({ initial, share }: KeyRule): string {
  if (share === undefined) return "";
  const part = `1/${Math.round(1 / share)}`;
  return `; defaults to ${part} of (${MEMORY_KEY} - ${RUNTIME_BYTES}), but at most ${String(initial)}`;
}

/**
 * Returns a description of the problem with the memory limit, as a message without a position;
 * undefined if the limit is valid.
 */
export function memoryFault({ performance }: Config, found: MemoryLimit): string | undefined {
  const { memory_bytes: bytes } = performance;
  if (bytes >= MEMORY_BYTES_MIN) return undefined;
  if (bytes !== found.bytes) {
    return (
      `${MEMORY_KEY} is ${bytes}, but must be at least ${MEMORY_BYTES_MIN}, or 0 to detect the ` +
      "limit"
    );
  }
  return (
    `the process may use only ${bytes} bytes of memory, according to ${found.source}, but needs ` +
    `at least ${MEMORY_BYTES_MIN}: raise that limit`
  );
}

/** Returns the warnings about the memory limit. */
export function memoryWarnings(config: Config, found: MemoryLimit): readonly string[] {
  const { memory_bytes: bytes } = config.performance;
  const warnings: string[] = [];
  if (bytes > found.bytes) {
    warnings.push(
      `${MEMORY_KEY} is ${bytes}, but the process may use only ${found.bytes} bytes, according ` +
        `to ${found.source}`,
    );
  }
  const given = ADDED_KEYS.filter((path) => config.sources.has(path));
  const sum = given.reduce((total, path) => total + bytesOf(config, path), 0);
  if (sum > bytes) {
    const names = given.join(", ");
    warnings.push(
      `${MEMORY_KEY} is ${bytes}, but the following keys together allow ${sum} bytes: ${names}`,
    );
  }
  return warnings;
}

function bytesOf(
  { files, limits, performance, server, storage }: Config,
  path: (typeof ADDED_KEYS)[number],
): number {
  switch (path) {
    case "performance.total_query_memory_bytes":
      return performance.total_query_memory_bytes;
    case "storage.cache_bytes":
      return storage.cache_bytes;
    case "storage.memtable_bytes":
      return storage.memtable_bytes;
    case "limits.transaction_max_bytes":
      return limits.transaction_max_bytes;
    case "files.max_request_bytes":
      return files.max_request_bytes;
    case "server.workers":
      return server.workers * READER_BYTES;
  }
}
