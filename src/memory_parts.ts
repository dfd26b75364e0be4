/**
 * Lists the memory of the process, part by part, for `system.memory` and `/metrics`.
 *
 * The owner of each part measures or, in some cases, estimates it. The remaining memory is
 * reported as `rest`, so that the parts add up to the resident memory.
 */
import type { ProcessMemory } from "./base/process_memory.ts";
import type { Config } from "./config/mod.ts";
import type { ServerMemoryUse } from "./server/mod.ts";
import type { MemoryPart, ReaderMemory } from "./sql/mod.ts";
import type { StoreMemory } from "./storage/mod.ts";

export interface MemoryUse {
  readonly process: ProcessMemory;
  readonly statementBytes: number;
  readonly plans: { readonly bytes: number; readonly bytesMax: number };
  readonly store: StoreMemory;
  readonly readers: ReaderMemory;
  /** The memory used by the HTTP server; undefined until the server listens. */
  readonly server: ServerMemoryUse | undefined;
}

type MemoryRow = readonly [
  part: string,
  usedBytes: number,
  allowedBytes: number | undefined,
  description: string,
];

/** Returns the resident memory and its parts. */
export function memoryParts(
  { performance, storage }: Pick<Config, "performance" | "storage">,
  use: MemoryUse,
): readonly MemoryPart[] {
  const { process, readers, server, statementBytes, store } = use;
  const known: readonly MemoryRow[] = [
    [
      "statements",
      statementBytes,
      performance.total_query_memory_bytes,
      "rows that statements and open transactions keep in memory, in all threads",
    ],
    [
      "memtables",
      store.memtableBytes,
      storage.memtable_bytes,
      "row versions that are not in a segment yet, and their keys",
    ],
    ["chunk_cache", store.cacheBytes, storage.cache_bytes, "uncompressed parts of segments"],
    [
      "reader_caches",
      readers.cacheBytes,
      Math.floor(storage.cache_bytes / 2),
      "uncompressed parts of segments in the reader threads, measured after each thread's last " +
        "statement",
    ],
    [
      "replacement_notes",
      store.replacementBytes,
      undefined,
      "records of the segment rows that newer versions have replaced",
    ],
    ...(server === undefined ? [] : serverRows(server)),
    ...threadRows(use),
    ...heapRows(use),
    [
      "files",
      process.fileBytes ?? 0,
      undefined,
      "memory-mapped pages of segments and of the program, which the system reclaims when it " +
        "needs memory",
    ],
  ];
  const rows: readonly MemoryRow[] = [
    [
      "resident",
      process.residentBytes,
      performance.memory_bytes,
      "all memory of the process: the sum of the parts below",
    ],
    ...known,
    ...otherRows(use, process.residentBytes - known.reduce((sum, [, bytes]) => sum + bytes, 0)),
  ];
  return rows.map(([part, usedBytes, allowedBytes, description]) => ({
    part,
    usedBytes,
    allowedBytes,
    description,
  }));
}

/**
 * Returns the rows of `system.memory` for memory outside the database's own parts.
 * @param unknownBytes The resident memory that no part accounts for.
 */
function otherRows(
  { process, statementBytes, store }: MemoryUse,
  unknownBytes: number,
): MemoryRow[] {
  const { cacheBytes, memtableBytes, replacementBytes } = store;
  const counted = cacheBytes + memtableBytes + replacementBytes + statementBytes;
  // The unused capacity of an array takes up no pages, so the estimate is capped.
  const arrays = Math.max(0, Math.min(unknownBytes, process.arrayBytes - counted));
  return [
    [
      "array_garbage",
      arrays,
      undefined,
      "other arrays and strings of the event loop, nearly all of them garbage",
    ],
    [
      "rest",
      Math.max(0, unknownBytes - arrays),
      undefined,
      "freed memory that is still held, compiled code, stacks and runtime buffers",
    ],
  ];
}

function serverRows({ bodies, messages, sendQueues }: ServerMemoryUse): readonly MemoryRow[] {
  return [
    ["bodies", bodies.usedBytes, bodies.allowedBytes, "request bodies, including uploads"],
    [
      "messages",
      messages.usedBytes,
      messages.allowedBytes,
      "client messages that are unfinished or waiting to be processed",
    ],
    ["send_queues", sendQueues.usedBytes, sendQueues.allowedBytes, "bytes waiting to be sent"],
  ];
}

function threadRows({ readers, store }: MemoryUse): readonly MemoryRow[] {
  return [
    [
      "reader_heaps",
      readers.heapBytes,
      undefined,
      "objects of the reader threads, measured after each thread's last statement",
    ],
    [
      "segment_thread_heaps",
      store.threadHeapBytes,
      undefined,
      "objects of the threads that write segments, measured after each thread's last job",
    ],
  ];
}

/**
 * Returns the rows for heap objects. Plans are heap objects, too: they are live, but counted
 * separately.
 */
function heapRows({ plans, process: { heapBytes, liveBytes } }: MemoryUse): readonly MemoryRow[] {
  return [
    ["plans", plans.bytes, plans.bytesMax, "cached statement plans (estimated)"],
    [
      "heap_live",
      Math.max(0, liveBytes - plans.bytes),
      undefined,
      "other live objects of the event loop: the minimum within the last minute",
    ],
    [
      "heap_garbage",
      heapBytes - liveBytes,
      undefined,
      "garbage of the event loop, and gaps between its live objects",
    ],
  ];
}
