/**
 * Where the rows of a query are read: on the event loop while they take one turn, and in a reader
 * in another thread when they take longer.
 *
 *     begun here ──ends within the first turn──► done
 *         └──does not──► forgotten, and begun anew in a reader ──► done
 *                            └──no reader is free, or it refuses──► goes on here, turn by turn
 *
 * Reading changes nothing, so a query that is begun anew answers the same. A query that took longer
 * than a turn goes to a reader at once the next time.
 */
import type { Clock } from "../../base/clock.ts";
import { type DrainOptions, drain, made } from "../execute/run/operator.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { orderedColumnOf } from "../plan/ordered_input.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { PreparedQuery } from "../prepare/prepared.ts";
import type { QueryReaders } from "../readers/query_readers.ts";
import type { QuerySource, ReaderQuery } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import type { CollectedRows } from "./collected_rows.ts";

export interface QueryRowsOptions {
  readonly prepared: PreparedQuery;
  readonly run: NotedRun;
  readonly ledger: RequestLedger;
  readonly namespace: string;
  readonly collected: CollectedRows;
  readonly clock: Clock;
  /** Absent if the query has to stay on the event loop. */
  readonly readers: QueryReaders | undefined;
  /** What the query was bound from; undefined if that is not known any more. */
  source(): QuerySource | undefined;
  /** Where rows go once they are many; absent where they are only collected. */
  readonly channel: (() => AnswerChannel) | undefined;
  /** How the event loop goes about it. */
  readonly turns: Pick<DrainOptions, "isEnough" | "onTurn">;
}

/** Queries that took longer than a turn. */
const LONG = new WeakSet<PreparedQuery>();

/** Whether the first rows of a table are wanted in an order that the event loop may have. */
function mayReadInOrder({ plan }: PreparedQuery): boolean {
  return nodesOf(plan).some((node) => {
    const [key] = node.kind === "sort" && node.limit !== undefined ? node.keys : [];
    if (node.kind !== "sort" || key === undefined) return false;
    return orderedColumnOf(node.input, key.expression) !== undefined;
  });
}

/** Reads all rows. Returns undefined if one turn was enough. @throws {DatabaseError} */
export function readRows(options: QueryRowsOptions): Promise<void> | undefined {
  const { clock, collected, ledger, prepared, run, turns } = options;
  const isLong = LONG.has(prepared) || options.readers?.takesAll === true;
  const elsewhere = isLong ? readElsewhere(options) : undefined;
  if (elsewhere !== undefined) return elsewhere;
  const rowsRead = ledger.rowsRead;
  return drain(made(prepared.build, run), {
    clock,
    ledger,
    onBatch: (batch) => collected.add(batch),
    ...turns,
    insteadOfMore() {
      if (run.readsInOrder) return undefined;
      if (!mayReadInOrder(prepared)) LONG.add(prepared);
      if (isLong) return undefined;
      const rowsReadHere = ledger.rowsRead;
      ledger.rowsRead = rowsRead;
      const instead = readElsewhere(options);
      if (instead === undefined) ledger.rowsRead = rowsReadHere;
      else collected.clear();
      return instead;
    },
  });
}

/** Returns undefined if the query has to stay here. */
function readElsewhere(options: QueryRowsOptions): Promise<void> | undefined {
  const { channel, clock, collected, ledger, namespace, prepared, readers, run } = options;
  // Only the event loop has the rows that a transaction has staged.
  const hasStaged = run.transaction !== undefined && run.transaction.tableIds.length > 0;
  if (readers === undefined || hasStaged) return undefined;
  const source = options.source();
  if (source === undefined) return undefined;
  const query: ReaderQuery = {
    prepared,
    source: () => source,
    slots: run.slots,
    principal: run.principal,
    namespace,
    snapshotSeq: run.snapshotSeq,
    nowMicros: run.call.nowMicros,
    ledger,
    onBatch: (batch) => collected.add(batch),
    ...(channel !== undefined && { taken: () => collected.send(channel()) }),
  };
  const outcome = readers.begin(query);
  if (outcome === undefined) return undefined;
  // The client may leave before there is a row.
  channel?.();
  return outcome.then((how) => {
    if (how === "read") return undefined;
    return drain(made(prepared.build, run), {
      clock,
      ledger,
      onBatch: (batch) => collected.add(batch),
      ...options.turns,
    });
  });
}
