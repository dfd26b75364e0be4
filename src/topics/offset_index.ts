/**
 * Keeps the counted messages of a topic by partition and offset, in memory and in the offsets
 * table.
 *
 *     count ──push──► last page of a partition ──full──► page ──store──► row of the table
 *                                                         └── contents leave memory, and come back
 *
 * - `countedSeq` only increases, and every message up to it is in a page.
 * - Each commit stores pages along with the seq up to which they are complete. Messages counted
 *   since then can be counted again, because the tables still retain their versions.
 * - Pages up to `floorSeq` have been discarded. The offsets of the remaining messages do not
 *   change.
 */
import { assert, defined } from "../base/assert.ts";
import { ByteReader } from "../base/byte_reader.ts";
import { ByteWriter } from "../base/byte_writer.ts";
import type { TopicEntry } from "../catalog/mod.ts";
import { TOPIC_OFFSET_COLUMN_IDS, TOPIC_OFFSETS_TABLE } from "../sql/mod.ts";
import { SHARED_OWNER, type Store, type TableWrite } from "../storage/mod.ts";
import { type Row, type Value, valueAt } from "../types/mod.ts";
import { bodyOf, contentsOf, type OffsetPage, PAGE_MESSAGES, PageContents } from "./offset_page.ts";

/** Used in place of the partition number in the row with the topic's position. */
const POSITION = -1;

/** The maximum total size, in bytes, of the page contents kept in memory per topic. */
const CONTENTS_BYTES_MAX = 8 * 1024 * 1024;

const [TOPIC_ID = 0, , , , FIRST_SEQ = 0, LAST_SEQ = 0, , BODY = 0] = TOPIC_OFFSET_COLUMN_IDS;

const { tableId: TABLE_ID, name: TABLE_NAME } = TOPIC_OFFSETS_TABLE;

/** The store methods used to read and write pages. */
export type PageStore = Pick<Store, "apply" | "durable" | "lookup" | "scan" | "visibleSeq">;

interface Partition {
  nextOffset: number;
  /** The offset of the oldest message kept; `nextOffset` if no message is kept. */
  earliestOffset: number;
  /** The pages, in ascending order of offset. */
  pages: OffsetPage[];
}

/** A topic's seqs and offsets, as stored in the offsets table. */
export interface StoredPosition {
  readonly countedSeq: number;
  readonly floorSeq: number;
  readonly nextOffsets: readonly number[];
}

/** Reads a topic's position; undefined if none is stored yet. */
export function storedPosition(store: PageStore, topicId: number): StoredPosition | undefined {
  const row = store.lookup(TABLE_ID, {
    owner: SHARED_OWNER,
    key: [topicId, POSITION, 0],
    upTo: store.visibleSeq,
    columnIds: [FIRST_SEQ, LAST_SEQ, BODY],
  });
  if (row === undefined) return undefined;
  const [floorSeq, countedSeq, body] = row;
  assert(body instanceof Uint8Array, "offset index: stored position has no body");
  const reader = new ByteReader(body, { path: TABLE_NAME });
  const nextOffsets: number[] = [];
  while (reader.remaining > 0) nextOffsets.push(reader.varint());
  return { countedSeq: Number(countedSeq), floorSeq: Number(floorSeq), nextOffsets };
}

/** Returns the ids of the topics with rows in the offsets table. */
export function storedTopicIds(store: PageStore): ReadonlySet<number> {
  const topicIds = new Set<number>();
  const columnIds = [TOPIC_ID];
  for (const [topicId] of storedRows(store, columnIds)) topicIds.add(Number(topicId));
  return topicIds;
}

/** Deletes all rows of a topic from the offsets table. */
export async function removeStored(store: PageStore, topicId: number): Promise<void> {
  const rows: Row[] = [];
  for (const row of storedRows(store, TOPIC_OFFSET_COLUMN_IDS)) {
    if (row[0] === topicId) rows.push(row);
  }
  if (rows.length > 0)
    await store.durable(store.apply({ writes: [write("delete", rows)] }).lastSeq);
}

function* storedRows(store: PageStore, columnIds: readonly number[]): Generator<Row> {
  const { visibleSeq: upTo } = store;
  const scan = store.scan(TABLE_ID, { owner: SHARED_OWNER, upTo, columnIds });
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      for (let row = 0; row < batch.rowCount; row += 1) {
        yield batch.columns.map((column): Value => valueAt(column, row));
      }
    }
  } finally {
    scan.close();
  }
}

function write(operation: TableWrite["operation"], rows: readonly Row[]): TableWrite {
  return { tableId: TABLE_ID, owner: SHARED_OWNER, operation, rows };
}

export class OffsetIndex {
  readonly #topicId: number;
  readonly #store: PageStore;
  readonly #partitions: readonly Partition[];
  #countedSeq: number;
  #floorSeq: number;
  #storedPosition: StoredPosition | undefined;
  /** The keys of stored pages discarded since the last commit. */
  #removed: Row[] = [];
  /** Full pages with their contents in memory, oldest first. */
  readonly #loaded = new Set<OffsetPage>();
  #loadedBytes = 0;
  /** The number of messages that are not in any stored page. */
  unstoredCount = 0;
  /** Called when a page is full. Returns the estimated total size of its payloads in bytes. */
  bytesOfPage: (page: OffsetPage) => number = () => 0;

  constructor({ createdSeq, partitions, topicId }: TopicEntry, store: PageStore) {
    this.#topicId = topicId;
    this.#store = store;
    const stored = storedPosition(store, topicId);
    this.#storedPosition = stored;
    this.#countedSeq = stored?.countedSeq ?? createdSeq;
    this.#floorSeq = stored?.floorSeq ?? createdSeq;
    this.#partitions = Array.from({ length: partitions }, (_, index): Partition => {
      const nextOffset = stored?.nextOffsets[index] ?? 0;
      return { nextOffset, earliestOffset: nextOffset, pages: [] };
    });
    this.#loadPages();
  }

  #loadPages(): void {
    if (this.#storedPosition === undefined) return;
    const { visibleSeq: upTo } = this.#store;
    const scan = this.#store.scan(TABLE_ID, {
      owner: SHARED_OWNER,
      upTo,
      columnIds: TOPIC_OFFSET_COLUMN_IDS.slice(0, -1),
      ranges: [{ columnId: TOPIC_ID, min: this.#topicId, max: this.#topicId }],
    });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        for (let row = 0; row < batch.rowCount; row += 1) {
          const values = batch.columns.map((column) => Number(valueAt(column, row)));
          if (values[0] === this.#topicId && values[1] !== POSITION) this.#addStored(values);
        }
      }
    } finally {
      scan.close();
    }
    for (const partition of this.#partitions) {
      partition.pages.sort((left, right) => left.firstOffset - right.firstOffset);
      this.#findEarliest(partition, this.#partitions.indexOf(partition));
    }
  }

  #addStored(values: readonly number[]): void {
    const [, partition = 0, firstOffset = 0, count = 0, firstSeq = 0, lastSeq = 0, bytes = 0] =
      values;
    this.#partitions[partition]?.pages.push({
      firstOffset,
      count,
      firstSeq,
      lastSeq,
      payloadBytes: bytes,
      contents: undefined,
      isStored: true,
      isDirty: false,
    });
  }

  get countedSeq(): number {
    return this.#countedSeq;
  }

  set countedSeq(seq: number) {
    assert(seq >= this.#countedSeq, "offset index: counted seq would move backwards");
    this.#countedSeq = seq;
  }

  get floorSeq(): number {
    return this.#floorSeq;
  }

  /**
   * The seq above which tables must retain history so that this topic can be counted again;
   * undefined if nothing is stored yet.
   */
  get storedFloorSeq(): number | undefined {
    return this.#storedPosition?.floorSeq;
  }

  get storedCountedSeq(): number {
    return this.#storedPosition?.countedSeq ?? 0;
  }

  get partitionCount(): number {
    return this.#partitions.length;
  }

  nextOffset(partition: number): number {
    return this.#partitions[partition]?.nextOffset ?? 0;
  }

  earliestOffset(partition: number): number {
    return this.#partitions[partition]?.earliestOffset ?? 0;
  }

  /**
   * Yields all kept pages, in no particular order. For pages that are not full, the size is
   * estimated anew.
   */
  *pages(): Generator<OffsetPage> {
    for (const { pages } of this.#partitions) {
      const last = pages.at(-1);
      if (last?.isDirty === true) last.payloadBytes = this.bytesOfPage(last);
      yield* pages;
    }
  }

  push(partition: number, message: { seq: number; sourceId: number; owner: number }): void {
    const { seq, sourceId, owner } = message;
    const into = defined(
      this.#partitions[partition],
      "offset index: partition of the message does not exist",
    );
    let page = into.pages.at(-1);
    if (page === undefined || page.count === PAGE_MESSAGES) {
      // A partition that has filled one page is likely to fill another, so memory for a full page
      // is reserved at once.
      const capacity = page === undefined ? undefined : PAGE_MESSAGES;
      page = {
        firstOffset: into.nextOffset,
        count: 0,
        firstSeq: seq,
        lastSeq: seq,
        payloadBytes: 0,
        contents: new PageContents(capacity),
        isStored: false,
        isDirty: true,
      };
      into.pages.push(page);
    }
    this.contentsOf(partition, page).push(seq, sourceId, owner);
    page.count += 1;
    page.lastSeq = seq;
    page.isDirty = true;
    into.nextOffset += 1;
    this.unstoredCount += 1;
    if (page.count === PAGE_MESSAGES) {
      page.payloadBytes = this.bytesOfPage(page);
      this.#noteLoaded(page);
    }
  }

  /** Returns the page that contains an offset; undefined if that page is not kept. */
  pageAt(partition: number, offset: number): OffsetPage | undefined {
    return this.#pageBy(partition, (page) => page.firstOffset + page.count > offset, offset);
  }

  /** Returns the page with the first message above `seq`; undefined if there is none. */
  pageAbove(partition: number, seq: number): OffsetPage | undefined {
    return this.#pageBy(partition, ({ lastSeq }) => lastSeq > seq);
  }

  /**
   * Returns the first page for which `isAtOrAfter` returns true. The predicate must return true
   * for all later pages as well.
   */
  #pageBy(
    partition: number,
    isAtOrAfter: (page: OffsetPage) => boolean,
    offset = Infinity,
  ): OffsetPage | undefined {
    const pages = this.#partitions[partition]?.pages ?? [];
    let low = 0;
    let high = pages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const page = pages[middle];
      if (page !== undefined && isAtOrAfter(page)) high = middle;
      else low = middle + 1;
    }
    const page = pages[low];
    return page === undefined || page.firstOffset > offset ? undefined : page;
  }

  /**
   * Returns the contents of a page, reading them from the table if necessary.
   * @throws {DatabaseError} DATA_DAMAGED, STORAGE_UNAVAILABLE
   * @throws {CorruptionError}
   */
  contentsOf(partition: number, page: OffsetPage): PageContents {
    if (page.contents !== undefined) return page.contents;
    const row = this.#store.lookup(TABLE_ID, {
      owner: SHARED_OWNER,
      key: [this.#topicId, partition, page.firstOffset],
      upTo: this.#store.visibleSeq,
      columnIds: [BODY],
    });
    const body = row?.[0];
    assert(body instanceof Uint8Array, "offset index: stored page is missing or has no body");
    page.contents = contentsOf(body, TABLE_NAME);
    assert(
      page.contents.count === page.count,
      "offset index: stored page has the wrong number of messages",
    );
    if (page.count === PAGE_MESSAGES) this.#noteLoaded(page);
    return page.contents;
  }

  #noteLoaded(page: OffsetPage): void {
    this.#loaded.add(page);
    this.#loadedBytes += page.contents?.bytes ?? 0;
    if (this.#loadedBytes <= CONTENTS_BYTES_MAX) return;
    for (const old of this.#loaded) {
      if (old.isDirty || old === page) continue;
      this.#loaded.delete(old);
      this.#loadedBytes -= old.contents?.bytes ?? 0;
      old.contents = undefined;
      if (this.#loadedBytes <= CONTENTS_BYTES_MAX / 2) return;
    }
  }

  /**
   * Discards all messages at or below a seq. All changes up to this seq must have been counted.
   */
  raiseFloor(seq: number): void {
    assert(
      seq <= this.#countedSeq,
      "offset index: cannot discard messages that are not yet counted",
    );
    if (seq <= this.#floorSeq) return;
    this.#floorSeq = seq;
    for (const [index, partition] of this.#partitions.entries()) {
      const kept = partition.pages.findIndex(({ lastSeq }) => lastSeq > seq);
      const gone = partition.pages.splice(0, kept === -1 ? partition.pages.length : kept);
      for (const page of gone) {
        if (page.isStored) this.#removed.push([this.#topicId, index, page.firstOffset]);
        if (this.#loaded.delete(page)) this.#loadedBytes -= page.contents?.bytes ?? 0;
      }
      this.#findEarliest(partition, index);
    }
  }

  #findEarliest(partition: Partition, index: number): void {
    const [page] = partition.pages;
    if (page === undefined) partition.earliestOffset = partition.nextOffset;
    else if (page.firstSeq > this.#floorSeq) partition.earliestOffset = page.firstOffset;
    else {
      const above = this.contentsOf(index, page).firstAbove(this.#floorSeq);
      partition.earliestOffset = page.firstOffset + above;
    }
  }

  /**
   * Makes all counted messages durable. If this fails, memory may no longer match the stored
   * state, and the caller must create a new index.
   *
   * @throws {DatabaseError} DISK_FULL and others before any write is applied, and the errors of
   *   `durable`
   */
  async store(options: { readonly usesReserve: boolean }): Promise<void> {
    const inserts: Row[] = [];
    const updates: Row[] = [];
    const dirty: OffsetPage[] = [];
    for (const [index, { pages }] of this.#partitions.entries()) {
      for (let at = pages.length - 1; at >= 0; at -= 1) {
        const page = pages[at];
        if (page === undefined || !page.isDirty) break;
        if (page.count < PAGE_MESSAGES) page.payloadBytes = this.bytesOfPage(page);
        (page.isStored ? updates : inserts).push(this.#rowOf(index, page));
        dirty.push(page);
      }
    }
    const position: StoredPosition = {
      countedSeq: this.#countedSeq,
      floorSeq: this.#floorSeq,
      nextOffsets: this.#partitions.map(({ nextOffset }) => nextOffset),
    };
    (this.#storedPosition === undefined ? inserts : updates).push(this.#positionRow(position));
    const writes = [write("insert", inserts), write("update", updates)];
    // A deleted page needs no body, because it is never read.
    writes.push(
      write(
        "delete",
        this.#removed.map((key) => [...key, 0, 0, 0, 0, null]),
      ),
    );
    const filled = writes.filter(({ rows }) => rows.length > 0);
    const { lastSeq } = this.#store.apply({ writes: filled, ...options });
    for (const page of dirty) {
      page.isStored = true;
      page.isDirty = false;
    }
    this.#removed = [];
    this.unstoredCount = 0;
    await this.#store.durable(lastSeq);
    this.#storedPosition = position;
  }

  #rowOf(partition: number, page: OffsetPage): Row {
    const { count, firstOffset, firstSeq, lastSeq, payloadBytes } = page;
    const body = bodyOf(this.contentsOf(partition, page));
    const numbers = [this.#topicId, partition, firstOffset, count, firstSeq, lastSeq];
    return [...numbers, Math.round(payloadBytes), body];
  }

  #positionRow({ countedSeq, floorSeq, nextOffsets }: StoredPosition): Row {
    const writer = new ByteWriter();
    for (const offset of nextOffsets) writer.varint(offset);
    return [this.#topicId, POSITION, 0, 0, floorSeq, countedSeq, 0, writer.copy()];
  }
}
