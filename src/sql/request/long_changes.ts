/**
 * Completes a change that takes more than a tick of the event loop. Outside a transaction, the
 * change is run again if its rows have been changed in the meantime.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Store } from "../../storage/mod.ts";
import type { WriteGates } from "../admission/write_gates.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import { READ_HERE } from "../readers/row_stream.ts";

/** The first attempt during which other writers of the table wait. They wait until the last one. */
const GATED_ATTEMPT = 3;

/**
 * The maximum number of attempts. A statement that began before the gate was closed can still
 * cause a conflict, but each such statement only once.
 */
const ATTEMPTS_MAX = 6;

export interface FinishOptions {
  readonly ledger: RequestLedger;
  readonly store: Pick<Store, "appliedSeq" | "durable">;
  readonly gates: WriteGates;
  readonly tableIds: readonly number[];
  /** Waits for a reader. Returns undefined if the statement reads on the event loop. */
  place(): Promise<ReadingPlace | undefined>;
  /** Runs the statement again with the definitions and rows as of this tick. */
  readonly begin: (place: ReadingPlace | undefined) => DmlOutcome | Promise<DmlOutcome>;
  /**
   * Whether the change is repeated after a conflict. In a transaction, it is not: the caller
   * receives the conflict and has to repeat the whole transaction.
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

/** @param open Receives the function that reopens the gates, once they are closed. */
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
        // Wait for the reader before closing the gate, so that statements blocked by the gate do
        // not wait for the reader, too.
        place = await options.place();
        if (attempt === GATED_ATTEMPT) open.push(await gates.close(tableIds, ledger));
        // A reader reads durable data, and would not see the change that caused the conflict. If
        // that change does not become durable, the conflict disappears.
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
    // The rows staged in an earlier attempt have been discarded.
    return await begin(undefined);
  }
}
