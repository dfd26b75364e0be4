/**
 * Partitions rows on disk by key. Equal keys are in the same partition at every level, so each
 * partition can be processed independently.
 *
 * A partition that is still too large is divided again one level deeper, by different bits of the
 * same hash ("Implementation techniques for main memory database systems", DeWitt et al., 1984).
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import {
  type Batch,
  type DataType,
  groupKeyOf,
  take,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";
import type { Extent, SpillFile } from "./temporary_files.ts";

export const PARTITION_COUNT = 16;

/**
 * The maximum number of levels. Each level divides a partition into 16. A partition still too
 * large at the last level has few distinct keys, and dividing it further would not help.
 */
export const LEVEL_MAX = 4;

/**
 * The number of bytes that a partition collects in memory before it writes them. A batch has only
 * a few rows for each partition. If they were written batch by batch, the references to the
 * written pieces would take up a quarter as much memory as the rows.
 */
const GATHERED_BYTES = 16 * 1024;

const NULL_HASH = 0x2545f491;

export class Partitions {
  readonly #file: SpillFile;
  readonly #keyTypes: readonly DataType[];
  readonly #level: number;
  /** The encoded form of the current row. This is the only buffer that grows for long rows. */
  readonly #block = new ByteWriter();
  readonly #gathered = Array.from({ length: PARTITION_COUNT }, () => new ByteWriter());
  readonly #extents: Extent[][] = Array.from({ length: PARTITION_COUNT }, () => []);
  readonly #rowCounts = new Float64Array(PARTITION_COUNT);

  /**
   * Creates empty partitions.
   * @param level The number of times that the rows have already been partitioned.
   */
  constructor(
    file: SpillFile,
    { keyTypes, level }: { keyTypes: readonly DataType[]; level: number },
  ) {
    assert(level <= LEVEL_MAX, "spill partitions: maximum depth of partitioning exceeded");
    this.#file = file;
    this.#keyTypes = keyTypes;
    this.#level = level;
  }

  /** Writes each row to the partition for its key. The rows of a partition keep their order. */
  add(batch: Batch, keys: readonly Vector[]): void {
    const { rowCount } = batch;
    const hashes = hashesOf(keys, this.#keyTypes, rowCount);
    const counts = new Uint32Array(PARTITION_COUNT);
    const places = new Uint8Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) {
      const place = partitionOf(hashes[row] ?? 0, this.#level);
      places[row] = place;
      counts[place] = (counts[place] ?? 0) + 1;
    }
    const chosen = Array.from(counts, (count) => new Uint32Array(count));
    counts.fill(0);
    for (let row = 0; row < rowCount; row += 1) {
      const place = places[row] ?? 0;
      const at = counts[place] ?? 0;
      const rows = chosen[place];
      if (rows !== undefined) rows[at] = row;
      counts[place] = at + 1;
    }
    for (const [place, rows] of chosen.entries()) {
      const count = rows.length;
      if (count === 0) continue;
      const columns = batch.columns.map((column) => take(column, { rows, count }));
      this.#gather(place, { rowCount: count, columns });
      this.#rowCounts[place] = (this.#rowCounts[place] ?? 0) + count;
    }
  }

  rowCountOf(partition: number): number {
    return this.#rowCounts[partition] ?? 0;
  }

  /** Returns a new reader of a partition's rows. A partition can be read any number of times. */
  reader(partition: number): PartitionReader {
    this.#place(partition);
    return new PartitionReader(
      this.#file,
      defined(this.#extents[partition], "spill partitions: partition does not exist"),
    );
  }

  close(): void {
    this.#file.close();
  }

  #gather(partition: number, batch: Batch): void {
    const gathered = defined(this.#gathered[partition], "spill partitions: row has no partition");
    const block = this.#block;
    block.reset();
    this.#file.encode(block, batch);
    if (block.length >= GATHERED_BYTES) {
      this.#place(partition);
      this.#extents[partition]?.push(this.#file.appendEncoded(block));
      return;
    }
    gathered.raw(block.view());
    if (gathered.length >= GATHERED_BYTES) this.#place(partition);
  }

  /** Writes the collected rows of a partition to the file. */
  #place(partition: number): void {
    const gathered = this.#gathered[partition];
    if (gathered === undefined || gathered.length === 0) return;
    this.#extents[partition]?.push(this.#file.appendEncoded(gathered));
    gathered.reset();
  }
}

/**
 * Reads the rows of a partition in the order in which they were added. The reader owns no
 * resources, so it need not be closed.
 */
class PartitionReader {
  readonly #file: SpillFile;
  readonly #extents: readonly Extent[];
  /** The batches not yet returned of the extent that was read last. */
  #batches: Iterator<Batch> = [].values();
  #position = 0;

  constructor(file: SpillFile, extents: readonly Extent[]) {
    this.#file = file;
    this.#extents = extents;
  }

  next(): Batch | undefined {
    for (;;) {
      const { done, value } = this.#batches.next();
      if (done !== true) return value;
      const extent = this.#extents[this.#position];
      if (extent === undefined) return undefined;
      this.#position += 1;
      this.#batches = this.#file.readExtent(extent).values();
    }
  }

  close(): void {
    this.#position = this.#extents.length;
    this.#batches = [].values();
  }
}

function partitionOf(hash: number, level: number): number {
  return mix(hash ^ Math.imul(level + 1, 0x9e3779b1)) >>> 28;
}

/**
 * Returns a hash of each row's key. Keys that are equal in SQL have equal hashes, including keys
 * with NULLs.
 */
function hashesOf(
  keys: readonly Vector[],
  types: readonly DataType[],
  rowCount: number,
): Int32Array {
  const hashes = new Int32Array(rowCount);
  for (const [i, key] of keys.entries()) {
    const type = defined(types[i], "spill partitions: key column has no type");
    addHashes(key, type, hashes);
  }
  return hashes;
}

function addHashes(key: Vector, type: DataType, hashes: Int32Array): void {
  if (key.kind === "dict") {
    const known = key.values.map((value) => hashOf(type, value));
    for (let row = 0; row < hashes.length; row += 1) {
      const isNull = key.nulls !== undefined && key.nulls[row] === 1;
      const hash = isNull ? NULL_HASH : (known[key.codes[row] ?? 0] ?? 0);
      hashes[row] = mix((hashes[row] ?? 0) + hash);
    }
    return;
  }
  for (let row = 0; row < hashes.length; row += 1) {
    hashes[row] = mix((hashes[row] ?? 0) + hashOf(type, valueAt(key, row)));
  }
}

function hashOf(type: DataType, value: Value): number {
  if (value === null) return NULL_HASH;
  const key = typeof value === "number" ? value : groupKeyOf(type, value);
  if (typeof key === "string") return hashOfText(key);
  if (typeof key === "number") return hashOfNumber(key);
  return typeof key === "boolean" ? Number(key) : hashOfText(String(key));
}

function hashOfNumber(value: number): number {
  const low = value | 0;
  if (low === value) return mix(low);
  DOUBLE[0] = value;
  return mix((WORDS[0] ?? 0) ^ Math.imul(WORDS[1] ?? 0, 0x9e3779b1));
}

const DOUBLE = new Float64Array(1);
const WORDS = new Int32Array(DOUBLE.buffer);

/** Computes the FNV-1a hash of a string over its UTF-16 units. */
function hashOfText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return mix(hash);
}

/** Applies the last step of MurmurHash3 (Austin Appleby). */
function mix(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
