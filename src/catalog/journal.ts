/**
 * Records the rows written by each catalog transaction, in order, so that an older copy of the
 * catalog can be brought forward to any later state. The journal is kept while the log is
 * archived, and its entries are removed once an archive contains them.
 *
 * - Every transaction that changes more than the store's own rows is counted, even while no
 *   journal is kept, so that gaps in a journal can be detected. The times at which users were last
 *   seen are not recorded, because no user requests these changes.
 * - Each entry has a stamp, which is a seq of its own: commits with lower seqs precede the
 *   transaction, and commits with higher seqs follow it. Stamps are in ascending order. The stamp
 *   of a transaction committed together with rows is the seq of that commit.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { seqFromUnixMs } from "../base/seq.ts";
import { accountOverEarlierRows } from "./accounts.ts";
import { Counters } from "./counters.ts";
import { allSealed, oneSealed, putSealed, removeSealed, type SealedTable } from "./records.ts";
import { type SealedChange, SqliteFile } from "./sqlite_file.ts";

/** The changes of one transaction in the catalog's journal. */
export interface JournalEntry {
  /** The number of the transaction. The numbers start at 1 and have no gaps. */
  readonly id: number;
  readonly stamp: number;
  /** The rows written by the transaction. The value of a removed row is absent. */
  readonly changes: readonly SealedChange[];
}

/**
 * The catalog tables that are not journaled, because they describe the store's own files or would
 * be useless after a restore.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "segments",
  "table_states",
  "revocations",
  "journal",
  "counters first_log_file",
  "counters next_segment_id",
  "counters highest_seq",
  "counters journal_end",
  "counters journal_stamp",
]);

export class CatalogJournal {
  /** Returns the next seq. Undefined until the store has opened and seqs can be issued. */
  issueSeq: (() => number) | undefined;
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #clock: Clock;
  readonly #isKept: boolean;
  #endBegun: number;
  #stampBegun: number;
  /**
   * The seq of the commit of rows to which the current transaction belongs; undefined if it
   * belongs to none.
   */
  #commitSeq: number | undefined;

  constructor({
    clock,
    counters,
    file,
    isKept,
  }: {
    clock: Clock;
    counters: Counters;
    file: SqliteFile;
    isKept: boolean;
  }) {
    this.#file = file;
    this.#counters = counters;
    this.#clock = clock;
    this.#isKept = isKept;
    this.#endBegun = this.end;
    this.#stampBegun = this.stamp;
    file.listener = {
      committing: (changes) => this.#add(changes),
      committed: () => {
        counters.raise("journal_end", this.#endBegun);
        counters.raise("journal_stamp", this.#stampBegun);
      },
    };
  }

  /** The id of the last transaction in the journal. */
  get end(): number {
    return this.#counters.get("journal_end");
  }

  /** The stamp of the last transaction in the journal. */
  get stamp(): number {
    return this.#counters.get("journal_stamp");
  }

  /** Returns the seq of a catalog change. Before the store has opened, this is an estimate. */
  newSeq(): number {
    if (this.issueSeq !== undefined) return this.issueSeq();
    return Math.max(seqFromUnixMs(this.#clock.nowMs()), this.#counters.get("highest_seq"));
  }

  /** Returns the journal's entries with ids greater than `id`, in ascending order. */
  after(id: number): readonly JournalEntry[] {
    const entries = allSealed<JournalEntry>(this.#file, "journal");
    return entries.filter((entry) => entry.id > id);
  }

  /**
   * Removes the journal's entries up to and including `upToId`, which have been stored elsewhere.
   */
  forget(upToId: number): void {
    const gone = allSealed<JournalEntry>(this.#file, "journal").filter(({ id }) => id <= upToId);
    if (gone.length === 0) return;
    this.#file.transaction(() => {
      for (const { id } of gone) removeSealed(this.#file, "journal", id);
    });
  }

  /**
   * Runs a catalog transaction that is committed together with rows.
   * @param seq The seq of the commit of rows; undefined if there are no rows.
   */
  stampedWith(seq: number | undefined, transaction: () => void): void {
    this.#commitSeq = seq;
    try {
      transaction();
    } finally {
      this.#commitSeq = undefined;
    }
  }

  #add(all: readonly SealedChange[]): void {
    const changes = all.filter(
      ([table, key]) => !LEFT_OUT.has(table) && !LEFT_OUT.has(`${table} ${key}`),
    );
    if (changes.length === 0) return;
    const id = this.end + 1;
    this.#endBegun = id;
    this.#counters.store("journal_end", id);
    if (!this.#isKept) return;
    const stamp = Math.max(this.stamp, this.#commitSeq ?? this.newSeq());
    this.#counters.store("journal_stamp", stamp);
    putSealed(this.#file, "journal", { key: id, value: { id, stamp, changes } });
    this.#stampBegun = stamp;
  }
}

/**
 * Applies journal entries to the catalog at a path. No process may have this catalog open.
 *
 * @param options.seq The seq as of which the resulting catalog is valid. No definition in it is
 *   newer.
 * @throws {CorruptionError} @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
 */
export function replayJournal(
  path: string,
  entries: readonly JournalEntry[],
  { log, seq }: { log: Log; seq: number },
): void {
  const file = SqliteFile.open(path, { log });
  try {
    const counters = new Counters(file);
    file.transaction(() => {
      counters.store("highest_seq", seq);
      for (const { changes, id, stamp } of entries) {
        for (const [table, key, value] of changes) {
          // The cast is safe: when the entry was written, the name was that of a table with sealed
          // rows, and no migration removes such a table.
          const into = table as SealedTable;
          if (value === undefined) removeSealed(file, into, key);
          else putSealed(file, into, { key, value: replayed(file, [into, key, value]) });
        }
        counters.store("journal_end", id);
        counters.store("journal_stamp", stamp);
      }
    });
  } finally {
    file.close();
  }
}

/** Returns the value to store when a change is replayed. */
function replayed(
  file: SqliteFile,
  [table, key, value]: readonly [SealedTable, string | number, unknown],
): unknown {
  if (table !== "accounts") return value;
  return accountOverEarlierRows(oneSealed(file, table, key), value);
}
