/**
 * Goes on with a change, or a COMMIT, that takes more than a turn of the event loop, and runs a
 * statement outside a transaction again when others have changed its rows meanwhile.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { Commit, Store, TableWrite } from "../../storage/mod.ts";
import type { WriteGates } from "../common/write_gates.ts";
import type { DmlOutcome, DmlSteps } from "../execute/change/change_writer.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { runSteps, type Steps } from "../execute/run/step_turns.ts";
import type { StorageMeter } from "../execute/run/storage_meter.ts";
import type { Transaction } from "../execute/run/transaction.ts";
import { READ_HERE } from "../readers/row_stream.ts";

/** How often a statement is run; the last time others that write its table wait. */
const ATTEMPTS_MAX = 3;

export interface FinishOptions {
  readonly clock: Clock;
  readonly ledger: RequestLedger;
  readonly store: Pick<Store, "appliedSeq" | "durable">;
  readonly gates: WriteGates;
  readonly tableId: number;
  /** Runs the statement anew, as the definitions and rows of this turn are. */
  begin(): DmlOutcome | DmlSteps;
  /** In a transaction the caller is told of a conflict, and repeats all of it. */
  readonly isRepeatable: boolean;
}

/** @throws {DatabaseError} */
export async function finishChange(first: DmlSteps, options: FinishOptions): Promise<DmlOutcome> {
  let begun: DmlOutcome | DmlSteps = first;
  for (let attempt = 1; ; attempt += 1) {
    let open: (() => void) | undefined;
    try {
      if (attempt > 1) {
        open = await readyAgain(attempt, options);
        begun = options.begin();
      }
      return await finished(begun, options);
    } catch (error) {
      const isConflict =
        error instanceof DatabaseError && error.condition === "SERIALIZATION_FAILURE";
      if (!isConflict || !options.isRepeatable || attempt === ATTEMPTS_MAX) throw error;
    } finally {
      open?.();
    }
  }
}

/** Waits until a statement may be run again; returns who opens the gate, if it was closed. */
async function readyAgain(
  attempt: number,
  { gates, ledger, store, tableId }: FinishOptions,
): Promise<(() => void) | undefined> {
  const open = attempt === ATTEMPTS_MAX ? await gates.close(tableId, ledger) : undefined;
  // A reader reads what is durable, and would not see what caused the conflict. Should that fail to
  // become durable, there is no conflict any more.
  await Promise.allSettled([store.durable(store.appliedSeq)]);
  return open;
}

async function finished(begun: DmlOutcome | DmlSteps, options: FinishOptions): Promise<DmlOutcome> {
  if (!isSteps(begun)) return begun;
  try {
    return await runSteps(begun, options);
  } catch (error) {
    if (error !== READ_HERE) throw error;
    // The rows that were staged before are forgotten.
    return await finished(options.begin(), options);
  }
}

/**
 * Commits a transaction that is too large for one turn; returns its last seq, or null when no row
 * changed. @param record What is written besides, once it is known whether rows change.
 */
export function* commitSteps(
  transaction: Transaction,
  {
    catalog,
    clock,
    record,
    storageQuota,
    store,
  }: {
    catalog: Catalog;
    clock: Clock;
    store: Store;
    storageQuota: StorageMeter | undefined;
    record: (changesRows: boolean) => readonly TableWrite[];
  },
): Steps<Seq | null> {
  const staged = store.stage({ snapshotSeq: transaction.snapshotSeq });
  for (const write of transaction.writes()) {
    staged.add(write);
    yield true;
  }
  const changesRows = staged.rowCount > 0;
  for (const write of record(changesRows)) staged.add(write);
  if (staged.rowCount === 0) return null;
  while (!staged.settle()) yield true;
  transaction.requireUnaltered(catalog);
  const commit = (): Commit => {
    transaction.uploads?.list(clock.nowMs());
    return staged.commit();
  };
  const { lastSeq } =
    storageQuota === undefined ? commit() : storageQuota.charge(transaction.growths, commit);
  return changesRows ? lastSeq : null;
}

/** Whether a statement needs more than the turn in which it began. */
export function isSteps(result: DmlOutcome | DmlSteps): result is DmlSteps {
  return "next" in result;
}
