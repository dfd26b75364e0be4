/**
 * Caches decoded chunks, decompressed blocks of chunks, and sort orders of rows. When the cache is
 * full, the least recently used entry is evicted.
 *
 * All readers of a thread use the same cache, so a single limit covers all open segments.
 */
import { assert } from "../../base/assert.ts";
import type { Vector } from "../../types/mod.ts";
import { heapBytesOf } from "./chunk_decoder.ts";
import { ColumnOrder } from "./column_order.ts";

const CACHE_BYTES_MAX: number = 64 * 1024 * 1024;

/** The maximum number of chunks per reader, or of blocks per chunk. */
const CHUNKS_MAX: number = 2 ** 24;

/** The approximate memory in bytes that an entry takes in addition to its payload. */
const ENTRY_BYTES = 200;

interface Entry {
  readonly item: Vector | Uint8Array | ColumnOrder;
  readonly byteCount: number;
}

/**
 * Maps a reader and a chunk index to vectors and sort orders, and a chunk and a block index to
 * decompressed bytes.
 */
export class ChunkCache {
  #bytesMax: number;
  /** The entries, least recently used first. */
  readonly #entries = new Map<number, Entry>();
  #byteCount = 0;
  #readerCount = 0;

  constructor(bytesMax: number = CACHE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Changes the size limit, and immediately evicts entries until the cache is within it. */
  bound(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#shrink();
  }

  /** Removes all entries from the cache. */
  clear(): void {
    this.#entries.clear();
    this.#byteCount = 0;
  }

  /** Issues a number that identifies a new reader or compressed chunk. */
  addReader(): number {
    this.#readerCount += 1;
    return this.#readerCount;
  }

  get(reader: number, chunkIndex: number): Vector | undefined {
    const item = this.#used(keyOf(reader, chunkIndex));
    assert(!(item instanceof Uint8Array), "chunk cache: cache key of a vector holds bytes");
    assert(!(item instanceof ColumnOrder), "chunk cache: cache key of a vector holds a sort order");
    return item;
  }

  /**
   * Caches a decoded chunk.
   * @param aliasedBytes The size of the memory that the vector keeps alive in addition to its own.
   */
  put(reader: number, chunkIndex: number, item: Vector, aliasedBytes = 0): void {
    this.#put(keyOf(reader, chunkIndex), { item, byteCount: heapBytesOf(item) + aliasedBytes });
  }

  bytes(reader: number, blockIndex: number): Uint8Array | undefined {
    const item = this.#used(keyOf(reader, blockIndex));
    assert(
      item === undefined || item instanceof Uint8Array,
      "chunk cache: cache key of a block does not hold bytes",
    );
    return item;
  }

  order(reader: number, chunkIndex: number): ColumnOrder | undefined {
    const item = this.#used(keyOf(reader, chunkIndex));
    assert(
      item === undefined || item instanceof ColumnOrder,
      "chunk cache: cache key of a sort order holds another item",
    );
    return item;
  }

  putOrder(reader: number, chunkIndex: number, item: ColumnOrder): void {
    this.#put(keyOf(reader, chunkIndex), { item, byteCount: item.byteCount + ENTRY_BYTES });
  }

  putBytes(reader: number, blockIndex: number, item: Uint8Array): void {
    this.#put(keyOf(reader, blockIndex), { item, byteCount: item.byteLength + ENTRY_BYTES });
  }

  /** Removes the chunks of a reader that is about to release its file. */
  removeReader(reader: number, chunkCount: number): void {
    for (let index = 0; index < chunkCount; index += 1) this.#remove(keyOf(reader, index));
  }

  #used(key: number): Entry["item"] | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.item;
  }

  #put(key: number, entry: Entry): void {
    // An entry that takes up a large part of the cache would evict too many other entries.
    if (entry.byteCount * 4 > this.#bytesMax) return;
    this.#remove(key);
    this.#entries.set(key, entry);
    this.#byteCount += entry.byteCount;
    this.#shrink();
  }

  #shrink(): void {
    for (const [key] of this.#entries) {
      if (this.#byteCount <= this.#bytesMax) break;
      this.#remove(key);
    }
  }

  #remove(key: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#byteCount -= entry.byteCount;
    this.#entries.delete(key);
  }
}

function keyOf(reader: number, chunkIndex: number): number {
  return reader * CHUNKS_MAX + chunkIndex;
}

/** The cache used by all segment readers of this thread. */
export const sharedCache: ChunkCache = new ChunkCache();

/** Sets the size limit of this thread's cache, in bytes. */
export function boundSharedCache(bytesMax: number): void {
  sharedCache.bound(bytesMax);
}
