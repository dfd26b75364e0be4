/**
 * Writes dead letters in the same commit as the acknowledgement of their messages. A letter's row
 * is deleted when it is discarded from the dead-letter topic, or when that topic is dropped. All
 * letters are read only at startup and after a topic has been dropped. At all other times, only
 * the letters that have just been discarded are read.
 *
 * A letter has the same owner as its message, so erasing an account removes it like any of the
 * account's other rows.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import type { SeldomLog } from "../../base/seldom_log.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TopicEntry } from "../../catalog/mod.ts";
import { DEAD_LETTER_COLUMNS, DEAD_LETTERS_TABLE, type TopicMessage } from "../../sql/mod.ts";
import type { HistoryStore, TableWrite } from "../../storage/mod.ts";
import type { Row } from "../../types/mod.ts";
import type { TopicLogs } from "../contract.ts";
import { type LetterRange, letters, lettersWithin, targetOf } from "../dead_letter_source.ts";
import type { Burial, ConsumerGroup } from "./consumer_group.ts";
import type { GroupStore } from "./group_row.ts";

const { tableId: TABLE_ID } = DEAD_LETTERS_TABLE;

/** The index of the payload column, the last column of the dead-letter table. */
const PAYLOAD_INDEX: number = DEAD_LETTER_COLUMNS.length - 1;

export interface DeadLettersDeps {
  readonly catalog: Pick<Catalog, "topic">;
  readonly clock: Clock;
  readonly store: GroupStore & Pick<HistoryStore, "changesOfAll">;
  readonly logs: Pick<TopicLogs, "log">;
  readonly log: SeldomLog;
}

/** Moves messages to dead-letter topics. */
export class DeadLetters {
  readonly #deps: DeadLettersDeps;
  /** For each topic with letters, the seq up to which its letters have been deleted. */
  readonly #prunedSeqs = new Map<number, number>();
  /** Whether the dead-letter table may contain letters of dropped topics. */
  #hasDropped = true;

  constructor(deps: DeadLettersDeps) {
    this.#deps = deps;
  }

  burialOf(group: ConsumerGroup): Burial {
    return {
      deliveriesMax: () =>
        this.#targetOf(group) === undefined ? undefined : group.log.entry.maxDeliveries,
      bury: (messages) => this.#bury(group, messages),
    };
  }

  #targetOf({ log }: ConsumerGroup): TopicEntry | undefined {
    const [namespace = "", name = ""] = log.entry.deadLetter?.split(".") ?? [];
    return this.#deps.catalog.topic(namespace, name);
  }

  /**
   * Moves messages to the dead-letter topic in the current tick. If the disk refuses the letters,
   * the messages will be delivered again.
   */
  #bury(group: ConsumerGroup, messages: readonly TopicMessage[]): void {
    const target = this.#targetOf(group);
    if (target === undefined) return;
    if (!this.#prunedSeqs.has(target.topicId)) this.#prunedSeqs.set(target.topicId, 0);
    for (const message of messages) {
      const row = rowOf(message, group, target);
      try {
        this.#buryOne(group, message, row);
      } catch (error) {
        // The error can be ignored, because the message stays in its group.
        if (!isExpected(error)) throw error;
        this.#deps.log.error("cannot write a dead letter; its message will be delivered again", {
          topic: `${group.log.entry.namespace}.${group.log.entry.name}`,
          error: error.message,
        });
        return;
      }
    }
  }

  #buryOne(group: ConsumerGroup, { offset, owner }: TopicMessage, row: Row): void {
    const { store } = this.#deps;
    const prepared = group.prepareAck({ ...group.place, offsets: [offset] });
    const apply = (letter: Row): void => {
      store.apply({ writes: [...prepared.writes, write("insert", owner, [letter])] });
    };
    try {
      apply(row);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      // A payload may be longer than its source row and exceed the size limit of a row. The dead
      // letter is then stored without its payload.
      if (error.code === "ROW_TOO_LARGE") apply(row.with(PAYLOAD_INDEX, null));
      // The account is being erased, so its messages must not become dead letters.
      else if (error.code === "PERMISSION_DENIED") store.apply({ writes: prepared.writes });
      else throw error;
    }
    prepared.done();
  }

  /** Records that a topic has been dropped, so its dead letters can be deleted. */
  topicDropped(): void {
    this.#hasDropped = true;
  }

  /** Deletes dead letters that their topic has discarded, or whose topic has been dropped. */
  async prune(): Promise<void> {
    const { logs } = this.#deps;
    if (this.#hasDropped) {
      await this.#pruneDropped();
      this.#hasDropped = false;
    }
    for (const [topicId, after] of this.#prunedSeqs) {
      const upTo = logs.log(topicId)?.heldSeq ?? after;
      if (upTo <= after) continue;
      await this.#pruneRange(topicId, { after: after as Seq, upTo: upTo as Seq });
      this.#prunedSeqs.set(topicId, upTo);
    }
  }

  async #pruneDropped(): Promise<void> {
    const { logs, store } = this.#deps;
    const writes: TableWrite[] = [];
    for (const { owner, row } of letters(store)) {
      const topicId = targetOf(row);
      if (logs.log(topicId) === undefined) writes.push(write("delete", owner, [row]));
      else if (!this.#prunedSeqs.has(topicId)) this.#prunedSeqs.set(topicId, 0);
    }
    for (const topicId of this.#prunedSeqs.keys()) {
      if (logs.log(topicId) === undefined) this.#prunedSeqs.delete(topicId);
    }
    await this.#apply(writes);
  }

  async #pruneRange(topicId: number, range: LetterRange): Promise<void> {
    const { clock, store } = this.#deps;
    const pause = pauser(clock);
    const writes: TableWrite[] = [];
    for (const { owner, row } of lettersWithin(store, range)) {
      await pause();
      if (row !== undefined && targetOf(row) === topicId) {
        writes.push(write("delete", owner, [row]));
      }
    }
    await this.#apply(writes.filter(({ owner, rows }) => isStored(store, owner, rows[0])));
  }

  async #apply(writes: readonly TableWrite[]): Promise<void> {
    if (writes.length === 0) return;
    const { store } = this.#deps;
    await store.durable(store.apply({ writes }).lastSeq);
  }
}

/** Whether a dead letter is still stored. */
function isStored(store: GroupStore, owner: number, row: Row | undefined): boolean {
  const key = [row?.[0] ?? null];
  const upTo = store.appliedSeq;
  return store.lookup(TABLE_ID, { owner, key, upTo, columnIds: [] }) !== undefined;
}

function write(operation: "insert" | "delete", owner: number, rows: readonly Row[]): TableWrite {
  return { tableId: TABLE_ID, owner, operation, rows };
}

function rowOf(
  { deliveries, key, offset, op, payload, timestampMs, user }: TopicMessage,
  { log, place: { group, partition, topicId } }: ConsumerGroup,
  target: TopicEntry,
): Row {
  const { name, namespace } = log.entry;
  return [
    `${topicId}/${partition}/${offset}/${group}`,
    target.topicId,
    `${namespace}.${name}`,
    partition,
    offset,
    group,
    deliveries,
    key,
    op,
    user ?? null,
    timestampMs,
    payload,
  ];
}
