/**
 * Chooses the place where a change reads its rows: the event loop if they take one turn, and a
 * reader in another thread if they take longer.
 *
 *     begun here ──ends within the first turn──► committed in it
 *         └──does not──► forgotten, and begun anew with the rows of a reader
 *                            └──no reader is free──► goes on here, turn by turn
 *
 * The event loop makes the changes of the rows and commits them in any case.
 */
import type { Seq } from "../../base/seq.ts";
import type { Store } from "../../storage/mod.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { PreparedDml } from "../prepare/prepared.ts";
import { RowStream } from "../readers/row_stream.ts";
import { isKnownLong, noteLong, queryFor, type Readable } from "./read_elsewhere.ts";

export interface NewChange extends Readable {
  readonly prepared: PreparedDml;
  readonly store: Pick<Store, "appliedSeq" | "visibleSeq">;
  /** Makes a run that reads at a seq, or at that of its transaction. */
  readonly runAt: (seq: Seq) => NotedRun;
}

/** Runs the first turn of a change, and all of it if that is enough. @throws {DatabaseError} */
export function beginChange(change: NewChange): DmlOutcome | Promise<DmlOutcome> {
  const { ledger, prepared, readers, runAt, store } = change;
  if (readers === undefined || prepared.build === undefined) return changeHere(change);
  if (isKnownLong(change)) return changeElsewhere(change) ?? changeHere(change);
  const { rowsRead } = ledger;
  const run = runAt(store.appliedSeq);
  try {
    return prepared.program(run);
  } catch (error) {
    if (error !== TURN_OVER) throw error;
  }
  ledger.rowsRead = rowsRead;
  if (!run.readsInOrder) noteLong(prepared);
  run.beginAnew();
  return changeElsewhere(change) ?? prepared.program(run);
}

/** Reads on the event loop, turn by turn. */
function changeHere({ prepared, runAt, store }: NewChange): DmlOutcome | Promise<DmlOutcome> {
  const run = runAt(store.appliedSeq);
  run.stay();
  return prepared.program(run);
}

/**
 * Returns undefined if the rows have to be read here.
 *
 * A reader may read only what cannot be taken back any more, so it reads at the visible seq. A row
 * that was changed above it is met by the commit, and the statement is run again.
 */
function changeElsewhere(change: NewChange): DmlOutcome | Promise<DmlOutcome> | undefined {
  const { prepared, readers, runAt, store } = change;
  if (readers === undefined || prepared.build === undefined) return undefined;
  const run = runAt(store.visibleSeq);
  run.stay();
  const query = queryFor(change, run);
  const rows = query === undefined ? undefined : RowStream.begin(readers, query);
  return rows === undefined ? undefined : prepared.program(run, rows);
}
