/**
 * Which statements have their rows read in another thread, and what such a reader is given.
 *
 * Statements are begun on the event loop. One that takes longer than a turn is forgotten, begun
 * anew in a reader, and goes there at once the next time.
 */
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { orderedColumnOf } from "../plan/ordered_input.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import type { NotedRun } from "../prepare/new_run.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { QueryReaders } from "../readers/query_readers.ts";
import type { QuerySource, ReaderQuery } from "../readers/reader.ts";

export interface Readable {
  readonly prepared: Prepared;
  readonly ledger: RequestLedger;
  readonly namespace: string;
  /** The source of the bound statement; undefined if it is not known any more. */
  source(): QuerySource | undefined;
}

/** Statements that took longer than a turn. */
const LONG = new WeakSet<Prepared>();

/** The readers that can read the rows of a statement; undefined if it stays on the event loop. */
export function readersFor(
  prepared: Prepared,
  readers: QueryReaders | undefined,
): QueryReaders | undefined {
  return prepared.build !== undefined && readers?.canRead(prepared) === true ? readers : undefined;
}

/**
 * Whether a statement goes to a reader without being begun on the event loop. One that may sleep
 * does not: while it sleeps there, it takes up no reader.
 */
export function isKnownLong(prepared: Prepared, readers: QueryReaders): boolean {
  if (maySleep(prepared)) return false;
  // A first turn may be long for other reasons, as when the machine is busy.
  return readers.takesAll || (LONG.has(prepared) && !readers.isShort(prepared));
}

export function maySleep({ requirements }: Prepared): boolean {
  return requirements.some(({ action }) => action === "sleep");
}

/** A statement took longer than a turn. */
export function noteLong(prepared: Prepared): void {
  if (!mayReadInOrder(prepared.plan)) LONG.add(prepared);
}

/** Whether the first rows of a table are wanted in an order that the event loop may have. */
function mayReadInOrder(plan: PlanNode | undefined): boolean {
  if (plan === undefined) return false;
  return nodesOf(plan).some((node) => {
    const [key] = node.kind === "sort" && node.limit !== undefined ? node.keys : [];
    if (node.kind !== "sort" || key === undefined) return false;
    return orderedColumnOf(node.input, key.expression) !== undefined;
  });
}

/** The query as a reader takes it; undefined if its source is not known any more. */
export function queryFor(
  { ledger, namespace, prepared, ...readable }: Readable,
  run: NotedRun,
): Omit<ReaderQuery, "onBatch" | "taken"> | undefined {
  const source = readable.source();
  if (source === undefined) return undefined;
  return {
    prepared,
    source: () => source,
    slots: run.slots,
    principal: run.principal,
    namespace,
    snapshotSeq: run.snapshotSeq,
    nowMicros: run.call.nowMicros,
    staged: run.staged,
    sleeps: run.sleeps,
    ledger,
    profile: run.profile,
  };
}
