/**
 * Where numbers are found by a hash, in a table that never holds the event loop to grow.
 *
 *     #directory[high bits of the hash] ──► block: pairs of (hash, number + 1), probed from the low
 *                                           bits on; at most half of them are used
 *
 * A block that is full doubles while it is small; then it is split by the next high bit, and only
 * its own numbers move, which are a few thousand. Several entries of the directory may name the
 * same block. Only a block whose hashes can hardly be told apart grows beyond.
 *
 * Hashes fill all blocks alike, so that they would be full, and split, within one turn: each has a
 * bound of its own between three eighths and a half of its pairs.
 *
 * So no turn moves more than a few thousand keys, however many there are.
 */
import { defined } from "../../../base/assert.ts";

export interface SlotBlock {
  /** Pairs of a hash and a number + 1, which is 0 where the pair is free. */
  slots: Int32Array;
  count: number;
  /** Numbers beyond which it splits or grows. */
  countMax: number;
  /** High bits of the hash that all of its numbers share. */
  depth: number;
}

/** Where a pair is. */
interface SlotPlace {
  readonly block: SlotBlock;
  /** Of its hash; its number is behind it. */
  readonly slot: number;
}

const PAIRS_MIN = 64;
const PAIRS_MAX = 8192;

/**
 * Different bounds of blocks, two to the power of four; the factor is that of Fibonacci hashing.
 */
const SPREAD = 16;
const SPREAD_FACTOR = 0x9e3779b1 | 0;

/** Entries of the directory are at most two to the power of this. */
const DEPTH_MAX = 16;

export class HashSlots {
  #directory: SlotBlock[] = [newBlock(PAIRS_MIN, { depth: 0, countMax: PAIRS_MIN / 2 })];
  #depth = 0;

  /** Whose pairs a hash is among; who probes them begins at `(hash << 1) & (length - 1)`. */
  blockOf(hash: number): SlotBlock {
    return defined(this.#directory[(hash >>> 1) >>> (31 - this.#depth)], "a hash has its block");
  }

  /**
   * Writes the number at the first pair of each hash, or -1 where that pair is another hash's.
   *
   * Who probes a large table row by row waits for memory at each. This loop is short enough that
   * the processor waits for many rows at once, and it leaves the pairs in the cache: many groups
   * take a third to a half less processor time.
   */
  guess(hashes: Int32Array, into: Int32Array): void {
    const directory = this.#directory;
    const shift = 31 - this.#depth;
    for (let row = 0; row < into.length; row += 1) {
      const hash = hashes[row] ?? 0;
      const { slots } = defined(directory[(hash >>> 1) >>> shift], "a hash has its block");
      const slot = (hash << 1) & (slots.length - 1);
      into[row] = slots[slot] === hash ? (slots[slot + 1] ?? 0) - 1 : -1;
    }
  }

  /** Adds a hash where its probing ended: at the first free pair. */
  addAt({ block, slot }: SlotPlace, hash: number, number: number): void {
    if (block.count >= block.countMax) {
      this.add(hash, number);
    } else {
      const { slots } = block;
      slots[slot] = hash;
      slots[slot + 1] = number + 1;
      block.count += 1;
    }
  }

  add(hash: number, number: number): void {
    let block = this.blockOf(hash);
    while (block.count >= block.countMax) {
      if (block.slots.length < 2 * PAIRS_MAX || block.depth >= DEPTH_MAX) grow(block);
      else this.#split(block, hash);
      block = this.blockOf(hash);
    }
    place(block.slots, hash, number + 1);
    block.count += 1;
  }

  /** @param hash Of any number of the block. */
  #split(block: SlotBlock, hash: number): void {
    if (block.depth === this.#depth) {
      this.#directory = this.#directory.flatMap((each) => [each, each]);
      this.#depth += 1;
    }
    const depth = block.depth + 1;
    const prefix = ((hash >>> (32 - depth)) >>> 1) << 1;
    const width = 1 << (this.#depth - block.depth);
    const upper = newBlock(PAIRS_MAX, { depth, countMax: spreadCountMax(prefix + 1) });
    moveHalf(block, upper);
    block.countMax = spreadCountMax(prefix);
    const at = (hash >>> 1) >>> (31 - this.#depth);
    const start = at - (at % width);
    this.#directory.fill(upper, start + width / 2, start + width);
  }
}

function newBlock(
  pairs: number,
  { countMax, depth }: Omit<SlotBlock, "slots" | "count">,
): SlotBlock {
  return { slots: new Int32Array(2 * pairs), count: 0, countMax, depth };
}

/** @param prefix The high bits that the hashes of a block share. */
function spreadCountMax(prefix: number): number {
  return PAIRS_MAX / 2 - (PAIRS_MAX / 8 / SPREAD) * (Math.imul(prefix, SPREAD_FACTOR) >>> 28);
}

/** What is being moved, which is never more than one block. */
const moving = new Int32Array(2 * PAIRS_MAX);

/** Leaves the lower half of the hashes in the block, which keeps its memory. */
function moveHalf(lower: SlotBlock, upper: SlotBlock): void {
  moving.set(lower.slots);
  lower.slots.fill(0);
  lower.count = 0;
  lower.depth = upper.depth;
  const shift = 32 - upper.depth;
  for (let slot = 0; slot < moving.length; slot += 2) {
    const entry = moving[slot + 1] ?? 0;
    if (entry === 0) continue;
    const hash = moving[slot] ?? 0;
    const half = ((hash >>> shift) & 1) === 0 ? lower : upper;
    place(half.slots, hash, entry);
    half.count += 1;
  }
}

function grow(block: SlotBlock): void {
  const before = block.slots;
  block.slots = new Int32Array(2 * before.length);
  block.countMax = before.length / 2;
  for (let slot = 0; slot < before.length; slot += 2) {
    const entry = before[slot + 1] ?? 0;
    if (entry !== 0) place(block.slots, before[slot] ?? 0, entry);
  }
}

function place(slots: Int32Array, hash: number, entry: number): void {
  const mask = slots.length - 1;
  let slot = (hash << 1) & mask;
  while (slots[slot + 1] !== 0) slot = (slot + 2) & mask;
  slots[slot] = hash;
  slots[slot + 1] = entry;
}
