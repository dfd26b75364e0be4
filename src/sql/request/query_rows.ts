/**
 * Chooses the place where a query reads its rows: the event loop if they take one turn, and a
 * reader in another thread if they take longer.
 *
 *     begun here ──ends within the first turn──► done
 *         └──does not──► forgotten, and begun anew in a reader ──► done
 *                            └──no reader is free, or it refuses──► goes on here, turn by turn
 *
 * Reading changes nothing, so a query that is begun anew answers the same. A query that took longer
 * than a turn goes to a reader at once the next time. While all statements hold too much memory, a
 * long query waits before it begins anew (`memory_turns.ts`).
 */
import type { Clock } from "../../base/clock.ts";
import { type DrainOptions, drain, made } from "../execute/run/operator.ts";
import { ASLEEP, type Sleeps } from "../execute/run/sleeps.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { PreparedQuery } from "../prepare/prepared.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import type { CollectedRows } from "./collected_rows.ts";
import type { MemoryTurns } from "./memory_turns.ts";
import { isKnownLong, noteLong, queryFor, type Readable } from "./read_elsewhere.ts";

export interface QueryRowsOptions extends Readable {
  readonly prepared: PreparedQuery;
  readonly run: NotedRun;
  /** Present if the query may sleep: its rows are then only collected. */
  readonly sleeps: Sleeps | undefined;
  readonly collected: CollectedRows;
  readonly clock: Clock;
  readonly memoryTurns: MemoryTurns;
  /** The channel for rows once they are many; absent if rows are only collected. */
  readonly channel: (() => AnswerChannel) | undefined;
  /** How the event loop goes about it. */
  readonly turns: Pick<DrainOptions, "isEnough" | "onTurn">;
}

/** Reads all rows. Returns undefined if one turn was enough. @throws {DatabaseError} */
export function readRows(options: QueryRowsOptions): Promise<void> | undefined {
  const { sleeps } = options;
  if (sleeps === undefined) return readOnce(options);
  const { rowsRead } = options.ledger;
  const slept = async (thrown: unknown): Promise<void> => {
    for (let error = thrown; ; ) {
      if (error !== ASLEEP) throw error;
      options.collected.clear();
      options.ledger.rowsRead = rowsRead;
      // The client may leave meanwhile.
      void options.turns.onTurn?.();
      await sleeps.over();
      try {
        return await readHere(options);
      } catch (further) {
        error = further;
      }
    }
  };
  try {
    return readOnce(options)?.catch(slept);
  } catch (error) {
    return slept(error);
  }
}

function readOnce(options: QueryRowsOptions): Promise<void> | undefined {
  if (!isKnownLong(options)) return begin(options);
  return leave(options) ?? readHere(options);
}

/** Reads here, if one turn is enough for it. */
function begin(options: QueryRowsOptions): Promise<void> | undefined {
  const { collected, ledger, prepared, run } = options;
  const { rowsRead } = ledger;
  const leaving = (): Promise<void> | undefined => {
    const rowsReadHere = ledger.rowsRead;
    ledger.rowsRead = rowsRead;
    if (!run.readsInOrder) noteLong(prepared);
    const instead = leave(options);
    if (instead === undefined) ledger.rowsRead = rowsReadHere;
    else collected.clear();
    return instead;
  };
  try {
    return drained(options, leaving);
  } catch (error) {
    if (error !== TURN_OVER) throw error;
  }
  const elsewhere = leaving();
  if (elsewhere !== undefined) return elsewhere;
  collected.clear();
  ledger.rowsRead = rowsRead;
  return readHere(options);
}

/** Undefined if the query has to stay here. */
function leave(options: QueryRowsOptions): Promise<void> | undefined {
  return laterIn(options.memoryTurns, options) ?? readElsewhere(options);
}

/** Undefined if there is memory for the query now. */
function laterIn(turns: MemoryTurns, options: QueryRowsOptions): Promise<void> | undefined {
  const { channel, ledger, prepared } = options;
  // Operators look at system views when memory is short.
  if (prepared.requirements.every(({ action }) => action !== "read")) return undefined;
  const waiting = turns.ready(ledger);
  if (waiting === undefined) return undefined;
  // The client may leave meanwhile.
  channel?.();
  return waiting.then(() => readElsewhere(options) ?? readHere(options));
}

/** On the event loop, to the end. */
function readHere(options: QueryRowsOptions): Promise<void> | undefined {
  options.run.beginAnew();
  return drained(options);
}

/** @param leaving Returns undefined if the rest is read here, too. */
function drained(
  { clock, collected, ledger, prepared, run, turns }: QueryRowsOptions,
  leaving?: () => Promise<void> | undefined,
): Promise<void> | undefined {
  return drain(made(prepared.build, run), {
    clock,
    ledger,
    onBatch: (batch) => collected.add(batch),
    ...turns,
    insteadOfMore: () => {
      const instead = leaving?.();
      if (instead === undefined) run.stay();
      return instead;
    },
  });
}

/** Returns undefined if the query has to stay here. */
function readElsewhere(options: QueryRowsOptions): Promise<void> | undefined {
  const { channel, collected, readers, run } = options;
  const query = readers === undefined ? undefined : queryFor(options, run);
  if (readers === undefined || query === undefined) return undefined;
  const read = readers.begin({
    ...query,
    onBatch: (batch) => collected.add(batch),
    ...(channel !== undefined && {
      taken: () => collected.send(channel()),
      onText: (text) => collected.addText(text),
      textFormat: () => (collected.isStreamed ? channel().format : undefined),
    }),
  });
  if (read === undefined) return undefined;
  // The client may leave before there is a row.
  channel?.();
  return read.outcome.then((how) => {
    if (how === "read") return undefined;
    return readHere(options);
  });
}
