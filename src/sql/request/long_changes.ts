/**
 * Completes a change that takes more than a tick of the event loop. Outside a transaction, the
 * change is run again if another statement has changed its rows in the meantime.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Store } from "../../storage/mod.ts";
import type { WriteGates } from "../admission/write_gates.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import { READ_HERE } from "../readers/row_stream.ts";

/**
 * The number of the attempt from which other writers of the table have to wait, until the last
 * attempt has ended.
 */
const GATED_ATTEMPT = 3;

/**
 * The maximum number of attempts. A statement that began before the gate was closed can still
 * cause a conflict, but each such statement can do so only once.
 */
const ATTEMPTS_MAX = 6;

export interface FinishOptions {
  readonly ledger: RequestLedger;
  readonly store: Pick<Store, "appliedSeq" | "durable">;
  readonly gates: WriteGates;
  readonly tableIds: readonly number[];
  /** Waits for a reader. Returns undefined if the statement reads on the event loop. */
  place(): Promise<ReadingPlace | undefined>;
  /** Runs the statement again with the definitions and rows that are current in this tick. */
  readonly begin: (place: ReadingPlace | undefined) => DmlOutcome | Promise<DmlOutcome>;
  /**
   * Whether the change is repeated after a conflict. In a transaction, the change is not repeated:
   * the caller receives the conflict and has to repeat the whole transaction.
   */
  readonly isRepeatable: boolean;
}

/** Completes a change that takes longer than a time slice. @throws {DatabaseError} */
export async function finishChange(
  first: Promise<DmlOutcome>,
  options: FinishOptions,
): Promise<DmlOutcome> {
  const open: (() => void)[] = [];
  try {
    return await attempted(first, options, open);
  } finally {
    for (const each of open) each();
  }
}

/** @param open Receives the function that reopens the write gates, once they are closed. */
async function attempted(
  first: Promise<DmlOutcome>,
  options: FinishOptions,
  open: (() => void)[],
): Promise<DmlOutcome> {
  const { gates, ledger, store, tableIds } = options;
  let begun: DmlOutcome | Promise<DmlOutcome> = first;
  for (let attempt = 1; ; attempt += 1) {
    let place: ReadingPlace | undefined;
    try {
      if (attempt > 1) {
        // Waiting for the reader before closing the gate spares statements that the gate blocks
        // from waiting for the reader as well.
        place = await options.place();
        if (attempt === GATED_ATTEMPT) open.push(await gates.close(tableIds, ledger));
        // A reader reads durable data, and would not see the change that caused the conflict until
        // that change is durable. If it never becomes durable, the conflict disappears.
        await Promise.allSettled([store.durable(store.appliedSeq)]);
        begun = options.begin(place);
      }
      return await finished(begun, options);
    } catch (error) {
      const isConflict = error instanceof DatabaseError && error.code === "SERIALIZATION_FAILURE";
      if (!isConflict || !options.isRepeatable || attempt === ATTEMPTS_MAX) throw error;
    } finally {
      place?.giveBack();
    }
  }
}

async function finished(
  begun: DmlOutcome | Promise<DmlOutcome>,
  { begin }: FinishOptions,
): Promise<DmlOutcome> {
  try {
    return await begun;
  } catch (error) {
    if (error !== READ_HERE) throw error;
    // The rows staged in the earlier attempt have been discarded, so the statement starts anew.
    return await begin(undefined);
  }
}
