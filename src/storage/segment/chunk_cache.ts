/**
 * Decoded chunks, unpacked blocks of chunks and the order of their rows, kept while they are used
 * and there is room: the least recently used goes first.
 *
 * One cache serves all readers of a thread, so that the bound is one for all open segments.
 */
import { assert } from "../../base/assert.ts";
import type { Vector } from "../../types/mod.ts";
import { heapBytesOf } from "./chunk_decoder.ts";
import { ColumnOrder } from "./column_order.ts";

const CACHE_BYTES_MAX: number = 64 * 1024 * 1024;

/** Chunks of one reader, or blocks of one chunk, for keys of one number. */
const CHUNKS_MAX: number = 2 ** 24;

/** What an entry takes beside its bytes, about. */
const ENTRY_BYTES = 200;

interface Entry {
  readonly item: Vector | Uint8Array | ColumnOrder;
  readonly byteCount: number;
}

/** Vectors and orders of readers, by their chunk, and bytes of packed chunks, by their block. */
export class ChunkCache {
  #bytesMax: number;
  /** In the order of their last use. */
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

  /** Takes another bound, at once. */
  bound(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#shrink();
  }

  /** A number for a new reader, of chunks or of the blocks of one. */
  addReader(): number {
    this.#readerCount += 1;
    return this.#readerCount;
  }

  get(reader: number, chunkIndex: number): Vector | undefined {
    const item = this.#used(keyOf(reader, chunkIndex));
    assert(!(item instanceof Uint8Array), "a reader of chunks keeps vectors");
    assert(!(item instanceof ColumnOrder), "orders have numbers of their own");
    return item;
  }

  /** @param aliasedBytes Memory that the vector keeps alive beside its own. */
  put(reader: number, chunkIndex: number, item: Vector, aliasedBytes = 0): void {
    this.#put(keyOf(reader, chunkIndex), { item, byteCount: heapBytesOf(item) + aliasedBytes });
  }

  bytes(reader: number, blockIndex: number): Uint8Array | undefined {
    const item = this.#used(keyOf(reader, blockIndex));
    assert(item === undefined || item instanceof Uint8Array, "a reader of blocks keeps bytes");
    return item;
  }

  order(reader: number, chunkIndex: number): ColumnOrder | undefined {
    const item = this.#used(keyOf(reader, chunkIndex));
    assert(item === undefined || item instanceof ColumnOrder, "a reader of orders keeps orders");
    return item;
  }

  putOrder(reader: number, chunkIndex: number, item: ColumnOrder): void {
    this.#put(keyOf(reader, chunkIndex), { item, byteCount: item.byteCount + ENTRY_BYTES });
  }

  putBytes(reader: number, blockIndex: number, item: Uint8Array): void {
    this.#put(keyOf(reader, blockIndex), { item, byteCount: item.byteLength + ENTRY_BYTES });
  }

  /** Forgets the chunks of a reader whose file is released. */
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
    // One that fills the cache would push out everything else.
    if (entry.byteCount * 4 > this.#bytesMax) return;
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

/** Of all readers of this thread. */
export const sharedCache: ChunkCache = new ChunkCache();

/** Bounds what it keeps, in bytes. */
export function boundSharedCache(bytesMax: number): void {
  sharedCache.bound(bytesMax);
}
