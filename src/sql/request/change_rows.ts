/**
 * Reads the rows that a change needs: on the event loop if this takes one tick, and in a reader
 * thread if it takes longer.
 *
 *     begun here ──ends within the first time slice──► committed in it
 *         └──does not──► forgotten ──► waits for a reader ──► begun again with the rows of a reader
 *
 * Rows are always changed and committed on the event loop. Queries in VALUES, ON CONFLICT and
 * RETURNING can also run in a reader.
 */
import type { Seq } from "../../base/seq.ts";
import type { Store } from "../../storage/mod.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
import type { PreparedDml } from "../prepare/prepared.ts";
import type { StatementContext } from "../prepare/statement_context.ts";
import type { QueryReaders, ReadingPlace } from "../readers/query_readers.ts";
import { RowStream } from "../readers/row_stream.ts";
import { isKnownLong, noteLong, queryFor, type Readable } from "./read_elsewhere.ts";

export interface NewChange extends Readable {
  readonly prepared: PreparedDml;
  readonly store: Pick<Store, "appliedSeq" | "visibleSeq">;
  /**
   * The readers that can read the rows of the change; undefined if the change has to stay on the
   * event loop.
   */
  readonly readers: QueryReaders | undefined;
  /**
   * Creates the context for an execution that reads at the given seq or, within a transaction, at
   * the seq of the transaction.
   */
  readonly runAt: (seq: Seq, mayLeave: boolean) => StatementContext;
  /**
   * Whether the change can be restarted. A COPY cannot be, because its data can be read only once.
   */
  readonly isRepeatable: boolean;
}

/**
 * Runs the first time slice of a change, which may complete it.
 *
 * @throws SLICE_OVER if a reader has to read the rows
 * @throws {DatabaseError}
 */
export function beginChange(change: NewChange): DmlOutcome | Promise<DmlOutcome> {
  const { isRepeatable, ledger, prepared, readers, runAt, store } = change;
  if (readers === undefined) return changeHere(change);
  if (!isRepeatable || isKnownLong(prepared, readers)) throw SLICE_OVER;
  const { rowsRead } = ledger;
  const context = runAt(store.appliedSeq, true);
  try {
    return prepared.program(context);
  } catch (error) {
    if (error === SLICE_OVER) {
      ledger.rowsRead = rowsRead;
      if (!context.readsInOrder) noteLong(prepared);
    }
    throw error;
  }
}

/** Reads the rows of a change on the event loop, one time slice after another. */
function changeHere({ prepared, runAt, store }: NewChange): DmlOutcome | Promise<DmlOutcome> {
  return prepared.program(runAt(store.appliedSeq, false));
}

/**
 * Starts a change that reads its rows in the given place: in a reader or, if there is no reader,
 * on the event loop.
 *
 * A reader may read only durable data, so it reads at the visible seq. If a row has changed since
 * that seq, the commit detects the conflict, and the statement is run again.
 */
export function beginChangeIn(
  place: ReadingPlace | undefined,
  change: NewChange,
): DmlOutcome | Promise<DmlOutcome> {
  const { runAt, store } = change;
  const rows = place && streamIn(place, change, runAt(store.visibleSeq, false));
  return rows === undefined ? changeHere(change) : rows();
}

/**
 * Starts a change that reads its rows in a reader. Returns undefined if the place is the event
 * loop.
 */
export function streamIn(
  place: ReadingPlace,
  change: NewChange,
  context: StatementContext,
): (() => Promise<DmlOutcome>) | undefined {
  const query = queryFor(change, context);
  const rows = query && RowStream.begin(place, query);
  return rows && (() => changeWith(rows, change, context));
}

async function changeWith(
  rows: RowStream,
  { isRepeatable, prepared }: NewChange,
  context: StatementContext,
): Promise<DmlOutcome> {
  try {
    // The data of a COPY can be read only once, so it must be certain that the reader can run the
    // statement before any data are read.
    if (!isRepeatable) await rows.ready();
    const outcome = await prepared.program(context, rows);
    await rows.finish();
    return outcome;
  } finally {
    rows.close();
  }
}
