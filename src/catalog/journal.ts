/**
 * The journal of the catalog: what each transaction made of which rows, in order, so that an older
 * copy of the catalog can be brought to any later moment. It is kept while the log is archived, and
 * taken away when an archive has it.
 *
 * - Every transaction that changes what is not the store's own counts, also while none is kept, so
 *   a journal with a hole shows it. When users were last seen is not in it: that is no change of
 *   theirs.
 * - An entry has a stamp, a seq of its own: commits below it were made before the transaction, and
 *   commits above it after it. Stamps ascend.
 */
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { seqFromUnixMs } from "../base/seq.ts";
import { accountOverEarlierRows } from "./accounts.ts";
import { Counters } from "./counters.ts";
import { allSealed, oneSealed, putSealed, removeSealed, type SealedTable } from "./records.ts";
import { type SealedChange, SqliteFile } from "./sqlite_file.ts";

/** One transaction. */
export interface JournalEntry {
  /** Counts from 1 without gaps. */
  readonly id: number;
  readonly stamp: number;
  /** The rows that it wrote; a value is absent when the row was removed. */
  readonly changes: readonly SealedChange[];
}

/** What belongs to the store's own files, or is worth nothing after a restore. */
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
  /** Set when commits have begun: the next seq of their order. */
  issueSeq: (() => number) | undefined;
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #clock: Clock;
  readonly #isKept: boolean;
  #endBegun: number;
  #stampBegun: number;

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

  /** Id of the last transaction. */
  get end(): number {
    return this.#counters.get("journal_end");
  }

  /** Of the last transaction that was written down. */
  get stamp(): number {
    return this.#counters.get("journal_stamp");
  }

  /** A position in commit order for a change of the catalog; before there are commits, a guess. */
  newSeq(): number {
    if (this.issueSeq !== undefined) return this.issueSeq();
    return Math.max(seqFromUnixMs(this.#clock.nowMs()), this.#counters.get("highest_seq"));
  }

  /** Entries that are here, with ids above this one, ascending. */
  after(id: number): readonly JournalEntry[] {
    const entries = allSealed<JournalEntry>(this.#file, "journal");
    return entries.filter((entry) => entry.id > id);
  }

  /** Takes away entries that lie elsewhere. */
  forget(upToId: number): void {
    const gone = allSealed<JournalEntry>(this.#file, "journal").filter(({ id }) => id <= upToId);
    if (gone.length === 0) return;
    this.#file.transaction(() => {
      for (const { id } of gone) removeSealed(this.#file, "journal", id);
    });
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
    const stamp = Math.max(this.stamp, this.newSeq());
    this.#counters.store("journal_stamp", stamp);
    putSealed(this.#file, "journal", { key: id, value: { id, stamp, changes } });
    this.#stampBegun = stamp;
  }
}

/**
 * Brings the catalog at a path, which nobody has open, to where entries that follow it lead.
 *
 * @param options.seq Of the log that belongs to it then: no definition in it is newer.
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
          // What an entry names was a table of sealed rows when it was written, and no step of the
          // format takes one away.
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

/** What the replay of a change makes of its row. */
function replayed(
  file: SqliteFile,
  [table, key, value]: readonly [SealedTable, string | number, unknown],
): unknown {
  if (table !== "accounts") return value;
  return accountOverEarlierRows(oneSealed(file, table, key), value);
}
