/**
 * Reads the row versions of messages, wherever they are stored, and writes them as payloads.
 *
 * Consecutive messages for the same table are read together, because a single call can read
 * several versions of a table.
 */
import { isExpected } from "../base/errors.ts";
import type { SeldomLog } from "../base/seldom_log.ts";
import type { Catalog, TopicEntry, TopicOperation, TopicSource } from "../catalog/mod.ts";
import type { TopicMessage } from "../sql/mod.ts";
import { type HistoryStore, SHARED_OWNER, type Store, type VersionRows } from "../storage/mod.ts";
import { isDeadLetterSource, isUnownedLetterKept } from "./dead_letter_source.ts";
import { MessageText } from "./message_text.ts";
import type { PageContents } from "./offset_page.ts";

/** The assumed size of an unreadable message, in bytes. */
const UNKNOWN_BYTES = 100;

/** Used in place of the partition number when a message is read only to determine its size. */
const ESTIMATED = -1;

const WORDS: Readonly<Record<TopicOperation, TopicMessage["op"]>> = {
  insert: "Insert",
  update: "Update",
  delete: "Delete",
};

/** The part of the catalog that provides the names of owners. */
export interface OwnerNames {
  readonly accounts: Pick<Catalog["accounts"], "ownerName">;
}

export interface ReaderDeps {
  readonly catalog: OwnerNames & Pick<Catalog, "tableById">;
  readonly store: Pick<Store, "commitMs" | "lookup" | "visibleSeq"> &
    Pick<HistoryStore, "versions">;
  readonly log: Pick<SeldomLog, "error">;
}

/** Selects the messages of a page to read, by index. */
export interface PagePlace {
  readonly partition: number;
  readonly firstOffset: number;
  readonly indexes: Uint32Array;
}

export class MessageReader {
  /** How many messages could not be read because their row versions no longer existed. */
  lostCount: number;
  readonly #deps: ReaderDeps;
  readonly #topicName: string;
  readonly #sources: ReadonlyMap<number, TopicSource>;
  /**
   * For each table, the writer of its messages and the catalog entry that the writer was created
   * for.
   */
  readonly #texts = new Map<number, { readonly of: unknown; readonly text: MessageText }>();
  /** For each partition, the highest offset at which a message was found to be lost. */
  readonly #lostUpTo = new Map<number, number>();

  constructor({ name, namespace, sources }: TopicEntry, deps: ReaderDeps, lostCount = 0) {
    this.#deps = deps;
    this.#topicName = `${namespace}.${name}`;
    this.#sources = new Map(sources.map((source) => [source.sourceId, source]));
    this.lostCount = lostCount;
  }

  /**
   * Reads messages. Messages whose row versions no longer exist are left out.
   *
   * @throws {DatabaseError} DATA_DAMAGED, STORAGE_UNAVAILABLE
   */
  read(contents: PageContents, place: PagePlace): TopicMessage[] {
    const { indexes } = place;
    const messages: TopicMessage[] = [];
    let start = 0;
    for (let end = 1; end <= indexes.length; end += 1) {
      const tableId = this.#tableAt(contents, indexes[start] ?? 0);
      if (end < indexes.length && this.#tableAt(contents, indexes[end] ?? 0) === tableId) continue;
      const run = { ...place, indexes: indexes.subarray(start, end) };
      this.#readRun(contents, run, messages);
      start = end;
    }
    return messages;
  }

  #tableAt({ sourceIds }: PageContents, index: number): number {
    return this.#sources.get(sourceIds[index] ?? 0)?.tableId ?? 0;
  }

  #readRun(contents: PageContents, place: PagePlace, into: TopicMessage[]): void {
    const { firstOffset, indexes, partition } = place;
    const tableId = this.#tableAt(contents, indexes[0] ?? 0);
    const text = this.#textOf(tableId);
    const rows =
      text === undefined ? undefined : this.#versions(tableId, text, { contents, indexes });
    const { catalog, store } = this.#deps;
    for (let row = 0; row < indexes.length; row += 1) {
      const index = indexes[row] ?? 0;
      const source = this.#sources.get(contents.sourceIds[index] ?? 0);
      const offset = firstOffset + index;
      if (text === undefined || source === undefined || rows?.isFound[row] !== 1) {
        this.#noteLost(partition, offset);
        continue;
      }
      const seq = contents.seqs[index] ?? 0;
      const owner = contents.owners[index] ?? 0;
      const cells = { columns: rows.columns, row };
      const key = text.keyOf(cells);
      if (
        isDeadLetterSource(source) &&
        owner === SHARED_OWNER &&
        !isUnownedLetterKept(store, key)
      ) {
        this.#noteLost(partition, offset);
        continue;
      }
      const user = owner === SHARED_OWNER ? undefined : catalog.accounts.ownerName(owner);
      into.push({
        partition,
        offset,
        key,
        payload: text.payloadOf(source.payload, {
          ...cells,
          seq,
          isDeleted: source.operation === "delete",
          old: rows.hasOld[row] === 1 ? { columns: rows.oldColumns, row } : undefined,
        }),
        timestampMs: store.commitMs(seq),
        ...(user === undefined ? {} : { user }),
        owner,
        op: WORDS[source.operation],
        deliveries: 1,
      });
    }
  }

  #versions(
    tableId: number,
    { columnIds }: MessageText,
    { contents, indexes }: { contents: PageContents; indexes: Uint32Array },
  ): VersionRows {
    const seqs = new Float64Array(indexes.length);
    const owners = new Float64Array(indexes.length);
    let wantsOld = false;
    for (let row = 0; row < indexes.length; row += 1) {
      const index = indexes[row] ?? 0;
      seqs[row] = contents.seqs[index] ?? 0;
      owners[row] = contents.owners[index] ?? 0;
      wantsOld ||= this.#sources.get(contents.sourceIds[index] ?? 0)?.payload === "diff";
    }
    return this.#deps.store.versions(tableId, { seqs, owners, columnIds, wantsOld });
  }

  /**
   * Returns the payload size of a message in bytes, or an estimate if the message cannot be read.
   */
  sizeOf(contents: PageContents, index: number): number {
    const indexes = Uint32Array.of(index);
    const found: TopicMessage[] = [];
    try {
      this.#readRun(contents, { partition: ESTIMATED, firstOffset: 0, indexes }, found);
    } catch (error) {
      // The error can be ignored, because the size is only an estimate.
      if (!isExpected(error)) throw error;
    }
    return found[0]?.payload.length ?? UNKNOWN_BYTES;
  }

  /** Counts each lost message only once, provided that offsets are read in ascending order. */
  #noteLost(partition: number, offset: number): void {
    if (partition === ESTIMATED) return;
    if (offset <= (this.#lostUpTo.get(partition) ?? -1)) return;
    this.#lostUpTo.set(partition, offset);
    this.lostCount += 1;
    const fields = { topic: this.#topicName, partition, offset };
    this.#deps.log.error("a topic skips a message because its row no longer exists", fields);
  }

  #textOf(tableId: number): MessageText | undefined {
    const table = this.#deps.catalog.tableById(tableId);
    if (table === undefined) return undefined;
    const known = this.#texts.get(tableId);
    if (known?.of === table) return known.text;
    const text = new MessageText(table);
    this.#texts.set(tableId, { of: table, text });
    return text;
  }
}
