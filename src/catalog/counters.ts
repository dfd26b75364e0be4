/**
 * Manages counters that only ever increase, so that a number is never reused, even after all
 * objects that used it have been removed.
 *
 * A counter is increased in the same transaction as the change that used the number, so an id that
 * is on disk is never issued again. Memory is updated after the transaction.
 */
import { allSealed, putSealed } from "./records.ts";
import type { SealedFile } from "./sqlite_file.ts";

export type CounterName =
  | "catalog_version"
  | "next_table_id"
  | "next_definition_id"
  | "next_segment_id"
  | "next_owner"
  | "next_account_id"
  | "highest_seq"
  | "first_log_file"
  | "first_token_version"
  | "journal_end"
  | "journal_stamp";

export class Counters {
  readonly #file: SealedFile;
  readonly #values: Map<CounterName, number> = new Map();

  /**
   * Reads or copies the counters.
   * @param from The counters to copy; absent to read them from the file.
   */
  constructor(file: SealedFile, from?: Counters) {
    this.#file = file;
    if (from !== undefined) {
      this.#values = new Map(from.#values);
      return;
    }
    for (const { name, value } of allSealed<{ name: CounterName; value: number }>(
      file,
      "counters",
    )) {
      this.#values.set(name, value);
    }
  }

  get(name: CounterName): number {
    return this.#values.get(name) ?? FIRST_VALUES[name];
  }

  /**
   * Writes a counter's value within the current transaction if it is higher than the current one.
   */
  store(name: CounterName, value: number): void {
    if (value <= this.get(name)) return;
    putSealed(this.#file, "counters", { key: name, value: { name, value } });
  }

  /** Takes over the values of a copy of the counters whose changes are now durable. */
  raiseTo(copy: Counters): void {
    for (const [name, value] of copy.#values) this.raise(name, value);
  }

  /** Updates a counter's value in memory. Must be called once the transaction is durable. */
  raise(name: CounterName, value: number): void {
    if (value > this.get(name)) this.#values.set(name, value);
  }
}

const FIRST_VALUES: Readonly<Record<CounterName, number>> = {
  catalog_version: 0,
  next_table_id: 1,
  next_definition_id: 1,
  next_segment_id: 1,
  // Owner number 0 is reserved for the rows of SHARED tables.
  next_owner: 1,
  next_account_id: 1,
  highest_seq: 0,
  // The number of the first log file. Log files are numbered from 1.
  first_log_file: 0,
  // The minimum token version of an account. A restore raises it above the versions of all issued
  // tokens.
  first_token_version: 1,
  // The number of transactions recorded in the journal so far.
  journal_end: 0,
  // The stamp of the last transaction in the journal, which places it among the commits of rows.
  journal_stamp: 0,
};
