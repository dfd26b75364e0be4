/**
 * Reads the rows that a change needs: on the event loop if they take one turn, and in a reader in
 * another thread if they take longer.
 *
 *     begun here ──ends within the first turn──► committed in it
 *         └──does not──► forgotten ──► waits for a reader ──► begun anew with the rows of a reader
 *
 * The event loop makes the changes of the rows and commits them in any case.
 */
import type { Seq } from "../../base/seq.ts";
import type { Store } from "../../storage/mod.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { PreparedDml } from "../prepare/prepared.ts";
import type { QueryReaders, ReadingPlace } from "../readers/query_readers.ts";
import { RowStream } from "../readers/row_stream.ts";
import { isKnownLong, noteLong, queryFor, type Readable } from "./read_elsewhere.ts";

export interface NewChange extends Readable {
  readonly prepared: PreparedDml;
  readonly store: Pick<Store, "appliedSeq" | "visibleSeq">;
  /** The readers that can read its rows; undefined if it stays on the event loop. */
  readonly readers: QueryReaders | undefined;
  /** Makes a run that reads at a seq, or at that of its transaction. */
  readonly runAt: (seq: Seq, mayLeave: boolean) => NotedRun;
}

/**
 * Runs the first turn of a change, and all of it if that is enough.
 *
 * @throws TURN_OVER if its rows are to be read in a reader. @throws {DatabaseError}
 */
export function beginChange(change: NewChange): DmlOutcome | Promise<DmlOutcome> {
  const { ledger, prepared, readers, runAt, store } = change;
  if (readers === undefined) return changeHere(change);
  if (isKnownLong(prepared, readers)) throw TURN_OVER;
  const { rowsRead } = ledger;
  const run = runAt(store.appliedSeq, true);
  try {
    return prepared.program(run);
  } catch (error) {
    if (error === TURN_OVER) {
      ledger.rowsRead = rowsRead;
      if (!run.readsInOrder) noteLong(prepared);
    }
    throw error;
  }
}

/** Reads on the event loop, turn by turn. */
function changeHere({ prepared, runAt, store }: NewChange): DmlOutcome | Promise<DmlOutcome> {
  return prepared.program(runAt(store.appliedSeq, false));
}

/**
 * Begins a change in the place that was chosen for its rows; without one it reads them here.
 *
 * A reader may read only what cannot be taken back any more, so it reads at the visible seq. A row
 * that was changed above it is met by the commit, and the statement is run again.
 */
export function beginChangeIn(
  place: ReadingPlace | undefined,
  change: NewChange,
): DmlOutcome | Promise<DmlOutcome> {
  const { prepared, runAt, store } = change;
  const run = runAt(store.visibleSeq, false);
  const query = place === undefined ? undefined : queryFor(change, run);
  const rows = query && place && RowStream.begin(place, query);
  return rows === undefined ? changeHere(change) : prepared.program(run, rows);
}
