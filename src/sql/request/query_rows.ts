/**
 * Reads the rows of a query: on the event loop if they take one turn, and in a reader in another
 * thread if they take longer.
 *
 *     begun here ──ends within the first turn──► done
 *         └──does not──► forgotten ──► waits for a reader ──► begun anew in it ──► done
 *
 * Reading changes nothing, so a query that is begun anew answers the same. A query that took longer
 * than a turn waits for a reader at once the next time. While it waits it has no snapshot: it reads
 * what is newest when it begins.
 */
import type { Clock } from "../../base/clock.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import { type DrainOptions, drain, made } from "../execute/run/operator.ts";
import { ASLEEP, type Sleeps } from "../execute/run/sleeps.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { PreparedQuery } from "../prepare/prepared.ts";
import type { ReadingPlace } from "../readers/query_readers.ts";
import type { ReadOutcome } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import type { CollectedRows } from "./collected_rows.ts";
import { queryFor, type Readable } from "./read_elsewhere.ts";

export interface QueryRowsOptions extends Readable {
  readonly prepared: PreparedQuery;
  readonly run: NotedRun;
  readonly collected: CollectedRows;
  readonly clock: Clock;
  /** The channel for rows once they are many; absent if rows are only collected. */
  readonly channel: (() => AnswerChannel) | undefined;
  /** How the event loop goes about it. */
  readonly turns: Pick<DrainOptions, "isEnough" | "onTurn">;
}

/**
 * Reads all rows on the event loop. Returns undefined if one turn was enough.
 *
 * @param mayLeave Whether the query is begun anew elsewhere if one turn is not enough.
 * @throws TURN_OVER, as a rejection, too @throws {DatabaseError}
 */
export function readHere(options: QueryRowsOptions, mayLeave: boolean): Promise<void> | undefined {
  return options.run.sleeps === undefined
    ? drained(options, mayLeave)
    : drainedWithSleeps(options, { mayLeave, sleeps: options.run.sleeps });
}

/** How long a query that sleeps again and again runs on the event loop in all. */
const BUSY_MS_MAX = 50;

/** The query is begun anew after each of its sleeps. */
function drainedWithSleeps(
  options: QueryRowsOptions,
  { mayLeave, sleeps }: { mayLeave: boolean; sleeps: Sleeps },
): Promise<void> | undefined {
  const { clock, collected, ledger, run, turns } = options;
  const { rowsRead } = ledger;
  let sinceMs = clock.monotonicMs();
  let busyMs = 0;
  const slept = async (thrown: unknown): Promise<void> => {
    for (let error = thrown; ; ) {
      if (error !== ASLEEP) throw error;
      busyMs += clock.monotonicMs() - sinceMs;
      // The client may leave meanwhile.
      void turns.onTurn?.();
      await sleeps.over();
      if (mayLeave && busyMs >= BUSY_MS_MAX) throw TURN_OVER;
      collected.clear();
      ledger.rowsRead = rowsRead;
      sinceMs = clock.monotonicMs();
      run.beginAnew(mayLeave ? sinceMs + TURN_MS_MAX : undefined);
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
  { clock, collected, ledger, prepared, run, turns }: QueryRowsOptions,
  mayLeave: boolean,
): Promise<void> | undefined {
  return drain(made(prepared.build, run), {
    clock,
    ledger,
    onBatch: (batch) => collected.add(batch),
    ...turns,
    mayLeave,
  });
}

/** Reads all rows in the place that was chosen for the query. @throws {DatabaseError} */
export async function readIn(place: ReadingPlace, options: QueryRowsOptions): Promise<ReadOutcome> {
  const { channel, collected, run } = options;
  const query = queryFor(options, run);
  const read =
    query === undefined
      ? undefined
      : place.begin({
          ...query,
          onBatch: (batch) => collected.add(batch),
          ...(channel !== undefined && {
            taken: () => collected.send(channel()),
            onText: (text) => collected.addText(text),
            textFormat: () => (collected.isStreamed ? channel().format : undefined),
          }),
        });
  if (read !== undefined) return await read.outcome;
  place.giveBack();
  await readHere(options, false);
  return "read";
}
