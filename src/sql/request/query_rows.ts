/**
 * Reads the rows of a query: on the event loop if they take one tick, and in a reader thread if
 * they take longer.
 *
 *     begun here ──ends within the first time slice──► done
 *         └──does not──► forgotten ──► waits for a reader ──► begun again in it ──► done
 *
 * Reading changes no data, so a restarted query returns the same result. A query that has once
 * taken longer than a time slice waits for a reader immediately the next time. While it waits, it
 * holds no snapshot: it reads the newest state when it starts.
 */
import type { Clock } from "../../base/clock.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import { type DrainOptions, drain, made } from "../execute/context/operator.ts";
import { ASLEEP, type Sleeps } from "../execute/context/sleeps.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
import type { PreparedQuery } from "../prepare/prepared.ts";
import type { StatementContext } from "../prepare/statement_context.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import type { ReadOutcome } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import type { CollectedRows } from "./collected_rows.ts";
import { queryFor, type Readable } from "./read_elsewhere.ts";

export interface QueryRowsOptions extends Readable {
  readonly prepared: PreparedQuery;
  readonly context: StatementContext;
  readonly collected: CollectedRows;
  readonly clock: Clock;
  /**
   * Returns the channel through which many rows are streamed; absent if rows are only collected in
   * memory.
   */
  readonly channel: (() => AnswerChannel) | undefined;
  /** Controls the pace of the query on the event loop. */
  readonly slices: Pick<DrainOptions, "isEnough" | "onSlice">;
  /**
   * Returns whether a definition has changed, so that the query must be bound again after a wait.
   * Absent if the query runs in the form in which it was bound. @throws {DatabaseError}
   */
  readonly isOutdated?: () => boolean;
}

/** Thrown if a query must be bound again after a wait. */
export const OUTDATED: Error = new Error("The query must be bound again");

/**
 * Reads all rows of a query on the event loop. Returns undefined if one tick was enough.
 *
 * @param mayLeave Whether to restart the query in a reader if one tick is not enough.
 * @throws SLICE_OVER and OUTDATED, possibly as rejections
 * @throws {DatabaseError}
 */
export function readHere(options: QueryRowsOptions, mayLeave: boolean): Promise<void> | undefined {
  return options.context.sleeps === undefined
    ? drained(options, mayLeave)
    : drainedWithSleeps(options, { mayLeave, sleeps: options.context.sleeps });
}

/**
 * The longest total time, in milliseconds, for which a query with several sleeps may occupy the
 * event loop.
 */
const BUSY_MS_MAX = 50;

/** Runs a query that is restarted after each of its sleeps. */
function drainedWithSleeps(
  options: QueryRowsOptions,
  { mayLeave, sleeps }: { mayLeave: boolean; sleeps: Sleeps },
): Promise<void> | undefined {
  const { clock, collected, ledger, context, slices } = options;
  const { rowsRead } = ledger;
  let sinceMs = clock.monotonicMs();
  let busyMs = 0;
  const slept = async (thrown: unknown): Promise<void> => {
    for (let error = thrown; ; ) {
      if (error !== ASLEEP) throw error;
      busyMs += clock.monotonicMs() - sinceMs;
      // The client may disconnect while the query sleeps.
      void slices.onSlice?.();
      await sleeps.over();
      if (options.isOutdated?.() === true) throw OUTDATED;
      if (mayLeave && busyMs >= BUSY_MS_MAX) throw SLICE_OVER;
      collected.clear();
      ledger.rowsRead = rowsRead;
      sinceMs = clock.monotonicMs();
      context.beginAnew(mayLeave ? sinceMs + FIRST_SLICE_MS_MAX : undefined);
      sleeps.begin();
      try {
        return await drained(options, mayLeave);
      } catch (further) {
        error = further;
      }
    }
  };
  sleeps.begin();
  try {
    return drained(options, mayLeave)?.catch(slept);
  } catch (error) {
    return slept(error);
  }
}

function drained(
  { clock, collected, ledger, prepared, context, slices }: QueryRowsOptions,
  mayLeave: boolean,
): Promise<void> | undefined {
  return drain(made(prepared.build, context), {
    clock,
    ledger,
    onBatch: (batch) => collected.add(batch),
    ...slices,
    mayLeave,
  });
}

/** Reads all rows of a query in the place chosen for it. @throws {DatabaseError} */
export async function readIn(place: ReadingPlace, options: QueryRowsOptions): Promise<ReadOutcome> {
  const { channel, collected, context } = options;
  const query = queryFor(options, context);
  const read =
    query === undefined
      ? undefined
      : place.begin({
          ...query,
          onBatch: (batch) => collected.add(batch),
          ...(channel !== undefined && {
            taken: () => collected.send(channel()),
            onText: (text) => collected.addText(text),
            textFormat: () => (collected.takesText ? channel().format : undefined),
          }),
        });
  if (read !== undefined) return await read.outcome;
  place.giveBack();
  await readHere(options, false);
  return "read";
}
