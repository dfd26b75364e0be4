/**
 * Computes the seqs at which an execution reads tables with FOR SYSTEM_TIME AS OF.
 *
 * - The time is evaluated once per execution.
 * - Each read checks again whether the history is complete, because a merge may discard history
 *   between two reads.
 */
import { DatabaseError } from "../../base/errors.ts";
import { type Seq, seqFromNumber } from "../../base/seq.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { Store } from "../../storage/mod.ts";
import type { Value } from "../../types/mod.ts";
import type { PastRead } from "../bind/bound.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import { ownerOf } from "../execute/operators/scan.ts";

const MICROS_PER_MS = 1000;

/** The operations of the store that tell how far back a table can be read. */
export type PastStore = Pick<Store, "earliestSeq" | "lastSeqUpTo" | "wholeCommitsUpTo">;

export class PastSeqs {
  readonly #store: PastStore;
  readonly #context: ExecutionContext;
  /** The seqs computed so far, keyed by the index of the past read. */
  readonly #seqs = new Map<number, Seq>();

  constructor(store: PastStore, context: ExecutionContext) {
    this.#store = store;
    this.#context = context;
  }

  /**
   * Returns the seq at which a table is read.
   *
   * @throws {DatabaseError} HISTORY_TOO_OLD, VALUE_OUT_OF_RANGE, and the errors of the expression.
   */
  seqOf({ index, isExact = false, moment, table }: PastRead): Seq {
    const { principal } = this.#context;
    const owner = ownerOf(principal, table);
    let seq = this.#seqs.get(index);
    if (seq === undefined) {
      const value = compileScalar(moment)(this.#context);
      const isSeq = moment.type.kind === "bigint";
      const newest = isSeq ? this.#seqFrom(value, table) : this.#seqBefore(value, table);
      seq = isExact ? newest : this.#store.wholeCommitsUpTo(table.tableId, owner, newest);
      this.#seqs.set(index, seq);
    }
    const name = `${table.namespace}.${table.name}`;
    requireHistory(this.#store, { tableId: table.tableId, name, owner, seq });
    return seq;
  }

  #seqFrom(value: Value, table: TableEntry): Seq {
    const { snapshotSeq } = this.#context;
    const seq = value === null ? undefined : seqFromNumber(Number(value));
    if (seq !== undefined && seq <= snapshotSeq) return seq;
    const shown = value === null ? "NULL" : `${Number(value)}`;
    throw outOfRange(
      table,
      `_seq ${shown}`,
      `it must be between 0 and ${snapshotSeq}, the newest _seq`,
    );
  }

  /** Returns the newest seq up to a time, with millisecond precision. */
  #seqBefore(value: Value, table: TableEntry): Seq {
    const { call, snapshotSeq } = this.#context;
    if (value === null) throw outOfRange(table, "NULL", "it must be a _seq or a time");
    const micros = Number(value);
    // In a transaction, a statement's time is the start of the transaction, which may be earlier
    // than the clock.
    if (micros > Math.max(call.nowMicros, call.clockMicros())) {
      throw outOfRange(table, "a time in the future", "the time must not be later than now");
    }
    const lastSeq = this.#store.lastSeqUpTo(Math.floor(micros / MICROS_PER_MS));
    return Math.max(0, Math.min(snapshotSeq, lastSeq)) as Seq;
  }
}

/** The rows of a table that belong to one owner, as they were at a seq. */
interface PastState {
  readonly tableId: number;
  /** The table's name as shown to users: "namespace.table". */
  readonly name: string;
  readonly owner: number;
  readonly seq: Seq;
}

/**
 * Requires that the history at a seq is complete, so that no version that was current at that seq
 * has been discarded.
 *
 * @throws {DatabaseError} HISTORY_TOO_OLD
 */
export function requireHistory(
  store: Pick<Store, "earliestSeq">,
  { name, owner, seq, tableId }: PastState,
): void {
  const earliestSeq = store.earliestSeq(tableId, owner);
  if (seq >= earliestSeq) return;
  throw new DatabaseError(
    "HISTORY_TOO_OLD",
    `Cannot read ${name} AS OF _seq ${seq}: its history begins at _seq ${earliestSeq}`,
    {
      earliestSeq,
      hint:
        "read a later state; to keep history longer from now on, raise DELETED_RETENTION_HOURS " +
        "of the table",
    },
  );
}

function outOfRange({ name, namespace }: TableEntry, what: string, rule: string): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read ${namespace}.${name} AS OF ${what}: ${rule}`,
  );
}
