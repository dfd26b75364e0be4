/**
 * Finishes a change that takes more than a turn of the event loop: outside a transaction it is run
 * again when others have changed its rows meanwhile.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Store } from "../../storage/mod.ts";
import type { WriteGates } from "../common/write_gates.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import { READ_HERE } from "../readers/row_stream.ts";

/** How often a statement is run; the last time others that write its table wait. */
const ATTEMPTS_MAX = 3;

export interface FinishOptions {
  readonly ledger: RequestLedger;
  readonly store: Pick<Store, "appliedSeq" | "durable">;
  readonly gates: WriteGates;
  readonly tableId: number;
  /** Waits for a reader; undefined if the statement reads on the event loop. */
  place(): Promise<ReadingPlace | undefined>;
  /** Runs the statement anew, as the definitions and rows of this turn are. */
  readonly begin: (place: ReadingPlace | undefined) => DmlOutcome | Promise<DmlOutcome>;
  /** In a transaction the caller is told of a conflict, and repeats all of it. */
  readonly isRepeatable: boolean;
}

/** @throws {DatabaseError} */
export async function finishChange(
  first: Promise<DmlOutcome>,
  options: FinishOptions,
): Promise<DmlOutcome> {
  let begun: DmlOutcome | Promise<DmlOutcome> = first;
  for (let attempt = 1; ; attempt += 1) {
    let open: (() => void) | undefined;
    let place: ReadingPlace | undefined;
    try {
      if (attempt > 1) {
        // Statements that a closed gate keeps out do not wait for a reader of this one.
        place = await options.place();
        open = await readyAgain(attempt, options);
        begun = options.begin(place);
      }
      return await finished(begun, options);
    } catch (error) {
      const isConflict =
        error instanceof DatabaseError && error.condition === "SERIALIZATION_FAILURE";
      if (!isConflict || !options.isRepeatable || attempt === ATTEMPTS_MAX) throw error;
    } finally {
      open?.();
      place?.giveBack();
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

async function finished(
  begun: DmlOutcome | Promise<DmlOutcome>,
  { begin }: FinishOptions,
): Promise<DmlOutcome> {
  try {
    return await begun;
  } catch (error) {
    if (error !== READ_HERE) throw error;
    // The rows that were staged before are forgotten.
    return await begin(undefined);
  }
}
