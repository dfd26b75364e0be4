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
import { assert } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { Store } from "../../storage/mod.ts";
import { type DmlOutcome, type DmlSteps, LongChange } from "../execute/change/change_writer.ts";
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

/** Runs the first turn of a change. @throws {DatabaseError} */
export function beginChange(change: NewChange): DmlOutcome | DmlSteps {
  const { ledger, prepared, runAt, store } = change;
  const isLong = isKnownLong(change);
  const atOnce = isLong ? beginElsewhere(change) : undefined;
  if (atOnce !== undefined) return atOnce;
  const { rowsRead } = ledger;
  const run = runAt(store.appliedSeq);
  if (isLong) run.stay();
  const begun = firstTurn(prepared, run);
  if (begun !== undefined && (!(begun instanceof LongChange) || isLong || begun.isRead)) {
    return goingOn(begun, run);
  }
  if (!run.readsInOrder) noteLong(prepared);
  const rowsReadHere = ledger.rowsRead;
  ledger.rowsRead = rowsRead;
  const instead = beginElsewhere(change);
  if (instead !== undefined) {
    begun?.forget();
    return instead;
  }
  run.stay();
  if (begun === undefined) return goingOn(prepared.program(run), run);
  ledger.rowsRead = rowsReadHere;
  return goingOn(begun, run);
}

/** Returns undefined if the turn was over before the change could be left in the middle. */
function firstTurn({ program }: PreparedDml, run: NotedRun): DmlOutcome | LongChange | undefined {
  try {
    return program(run);
  } catch (error) {
    if (error === TURN_OVER) return undefined;
    throw error;
  }
}

function goingOn(begun: DmlOutcome | LongChange, run: NotedRun): DmlOutcome | DmlSteps {
  if (!(begun instanceof LongChange)) return begun;
  run.stay();
  return begun.steps();
}

/**
 * Returns undefined if the rows have to be read here.
 *
 * A reader may read only what cannot be taken back any more, so it reads at the visible seq. A row
 * that was changed above it is met by the commit, and the statement is run again.
 */
function beginElsewhere(change: NewChange): DmlSteps | undefined {
  const { prepared, readers, runAt, store } = change;
  if (readers === undefined || prepared.build === undefined) return undefined;
  const run = runAt(store.visibleSeq);
  run.stay();
  const query = queryFor(change, run);
  const rows = query === undefined ? undefined : RowStream.begin(readers, query);
  if (rows === undefined) return undefined;
  const begun = prepared.program(run, rows);
  assert(begun instanceof LongChange, "rows of another thread come in later turns");
  return begun.steps();
}
