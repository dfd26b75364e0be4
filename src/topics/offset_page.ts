/**
 * Implements a page of a partition: up to {@linkcode PAGE_MESSAGES} consecutive messages, each
 * with its seq, its source and the owner of its row. The contents of a page are either in memory
 * or in the body of a row.
 *
 *     body   message count, then the first seq, then the distance of each seq from the one before;
 *            then runs of messages with the same source and owner: length, source id, owner.
 *            All numbers are varints.
 *
 * - Seqs ascend.
 * - Every page except the last one of a partition is full and never changes.
 */
import { assert } from "../base/assert.ts";
import { ByteReader } from "../base/byte_reader.ts";
import { ByteWriter } from "../base/byte_writer.ts";

/** The number of messages in a full page. Its body takes up one to three kilobytes. */
export const PAGE_MESSAGES = 256;

const CAPACITY_MIN = 8;

/** The messages listed in a page. */
export class PageContents {
  count = 0;
  seqs: Float64Array;
  owners: Float64Array;
  sourceIds: Uint32Array;

  /**
   * Creates an empty list of messages.
   * @param capacity The number of messages to reserve memory for.
   */
  constructor(capacity: number = CAPACITY_MIN) {
    this.seqs = new Float64Array(capacity);
    this.owners = new Float64Array(capacity);
    this.sourceIds = new Uint32Array(capacity);
  }

  /** Appends a message, given the seq, source and owner of its change. */
  push(seq: number, sourceId: number, owner: number): void {
    assert(seq > this.lastSeq, "offset page: messages are not in ascending order of seq");
    if (this.count === this.seqs.length) this.#grow();
    this.seqs[this.count] = seq;
    this.owners[this.count] = owner;
    this.sourceIds[this.count] = sourceId;
    this.count += 1;
  }

  get lastSeq(): number {
    return this.count === 0 ? 0 : (this.seqs[this.count - 1] ?? 0);
  }

  get bytes(): number {
    return this.seqs.length * 20;
  }

  /** Returns the index of the first message with a seq above `seq`. */
  firstAbove(seq: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #grow(): void {
    const capacity = 2 * this.seqs.length;
    this.seqs = grown(this.seqs, new Float64Array(capacity));
    this.owners = grown(this.owners, new Float64Array(capacity));
    this.sourceIds = grown(this.sourceIds, new Uint32Array(capacity));
  }
}

function grown<Numbers extends Float64Array | Uint32Array>(from: Numbers, to: Numbers): Numbers {
  to.set(from);
  return to;
}

/** An entry in a partition's list of pages. */
export interface OffsetPage {
  readonly firstOffset: number;
  count: number;
  firstSeq: number;
  lastSeq: number;
  /** The estimated total size of the messages' payloads in bytes. */
  payloadBytes: number;
  /** The page's contents; undefined while they are only in the offsets table. */
  contents: PageContents | undefined;
  /** Whether the offsets table has a row for the page. */
  isStored: boolean;
  /** Whether the page has messages that are missing from its row in the offsets table. */
  isDirty: boolean;
}

export function bodyOf({ count, owners, seqs, sourceIds }: PageContents): Uint8Array {
  assert(count > 0, "offset page: page has no messages");
  const writer = new ByteWriter();
  writer.varint(count);
  let before = 0;
  for (let index = 0; index < count; index += 1) {
    const seq = seqs[index] ?? 0;
    writer.varint(seq - before);
    before = seq;
  }
  let start = 0;
  for (let index = 1; index <= count; index += 1) {
    const isSame =
      index < count && owners[index] === owners[start] && sourceIds[index] === sourceIds[start];
    if (isSame) continue;
    writer.varint(index - start);
    writer.varint(sourceIds[start] ?? 0);
    writer.varint(owners[start] ?? 0);
    start = index;
  }
  return writer.copy();
}

/**
 * Decodes the stored body of a page. @throws {CorruptionError} If the bytes are not a valid body.
 */
export function contentsOf(body: Uint8Array, path: string): PageContents {
  const reader = new ByteReader(body, { path });
  const count = reader.varint();
  if (count === 0 || count > PAGE_MESSAGES)
    reader.fail("the page does not contain a valid number of messages");
  const contents = new PageContents(count);
  const seqs: number[] = [];
  let seq = 0;
  for (let index = 0; index < count; index += 1) {
    seq += reader.varint();
    seqs.push(seq);
  }
  while (contents.count < count) {
    const length = reader.varint();
    const sourceId = reader.varint();
    const owner = reader.varint();
    for (let left = length; left > 0; left -= 1) {
      contents.push(seqs[contents.count] ?? 0, sourceId, owner);
    }
  }
  return contents;
}
