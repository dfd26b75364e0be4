/**
 * Decoded chunks, kept while they are used and there is room: the least recently used goes first.
 *
 * One cache serves all readers of a thread, so that the bound is one for all open segments.
 */
import type { Vector } from "../../types/mod.ts";
import { heapBytesOf } from "./chunk_decoder.ts";

const CACHE_BYTES_MAX: number = 64 * 1024 * 1024;

/** Chunks of one reader, for keys of one number. */
const CHUNKS_MAX: number = 2 ** 24;

/** Vectors (or arrays) of readers, by their chunk. */
export class ChunkCache {
  #bytesMax: number;
  /** In the order of their last use. */
  readonly #entries = new Map<number, { readonly item: Vector; readonly byteCount: number }>();
  #byteCount = 0;
  #readerCount = 0;

  constructor(bytesMax: number = CACHE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get byteCount(): number {
    return this.#byteCount;
  }

  /** Takes another bound, at once. */
  bound(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#shrink();
  }

  /** A number for a new reader. */
  addReader(): number {
    this.#readerCount += 1;
    return this.#readerCount;
  }

  get(reader: number, chunkIndex: number): Vector | undefined {
    const key = keyOf(reader, chunkIndex);
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.item;
  }

  put(reader: number, chunkIndex: number, item: Vector): void {
    const byteCount = heapBytesOf(item);
    // One chunk that fills the cache would push out everything else.
    if (byteCount * 4 > this.#bytesMax) return;
    this.#entries.set(keyOf(reader, chunkIndex), { item, byteCount });
    this.#byteCount += byteCount;
    this.#shrink();
  }

  /** Forgets the chunks of a reader whose file is released. */
  removeReader(reader: number, chunkCount: number): void {
    for (let index = 0; index < chunkCount; index += 1) this.#remove(keyOf(reader, index));
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
