/**
 * Decides whether another thread reads the rows of a statement, and prepares the statement for a
 * reader.
 *
 * Every statement begins on the event loop. A statement that takes longer than a time slice is
 * abandoned and restarted in a reader. The next time, it is sent to a reader immediately.
 */
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { orderedColumnOf } from "../plan/ordered_input.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { StatementContext } from "../prepare/statement_context.ts";
import type { QueryReaders } from "../readers/query_readers.ts";
import type { QuerySource, ReaderQuery } from "../readers/reader.ts";

export interface Readable {
  readonly prepared: Prepared;
  readonly ledger: RequestLedger;
  readonly namespace: string;
  /**
   * Returns the input from which a reader compiles the statement; undefined if this input has been
   * discarded.
   */
  source(): QuerySource | undefined;
}

/** Statements that have once taken longer than a time slice. */
const LONG = new WeakSet<Prepared>();

/**
 * Returns the readers that can read the rows of a statement; undefined if the statement has to
 * stay on the event loop.
 */
export function readersFor(
  prepared: Prepared,
  readers: QueryReaders | undefined,
): QueryReaders | undefined {
  if (readers?.canRead(prepared) !== true) return undefined;
  if (callsLocks(prepared) || callsPrograms(prepared)) return undefined;
  return readers;
}

/**
 * Whether a statement goes to a reader without being tried on the event loop first. A statement
 * that may sleep does not, because sleeping on the event loop does not occupy a reader.
 */
export function isKnownLong(prepared: Prepared, readers: QueryReaders): boolean {
  if (maySleep(prepared)) return false;
  // The first time slice may have been long for a different reason, for example because the
  // machine was busy.
  return readers.takesAll || (LONG.has(prepared) && !readers.isShort(prepared));
}

export function maySleep({ requirements }: Prepared): boolean {
  return requirements.some(({ action }) => action === "sleep");
}

/** Whether a statement may take advisory locks, which only the event loop manages. */
export function callsLocks({ requirements }: Prepared): boolean {
  return requirements.some(({ action }) => action === "advisory-lock");
}

/** Whether a statement calls programs, which contain SQL that only the event loop can bind. */
export function callsPrograms({ requirements }: Prepared): boolean {
  return requirements.some(({ action }) => action === "call-program");
}

/** Records that a statement took longer than a time slice. */
export function noteLong(prepared: Prepared): void {
  if (!mayReadInOrder(prepared.plan)) LONG.add(prepared);
}

/**
 * Whether a query needs the first rows of a table in an order that only the event loop may
 * maintain.
 */
function mayReadInOrder(plan: PlanNode | undefined): boolean {
  if (plan === undefined) return false;
  return nodesOf(plan).some((node) => {
    const [key] = node.kind === "sort" && node.limit !== undefined ? node.keys : [];
    if (node.kind !== "sort" || key === undefined) return false;
    return orderedColumnOf(node.input, key) !== undefined;
  });
}

/**
 * Returns the query in the form in which a reader receives it; undefined if the input for
 * compiling it has been discarded.
 */
export function queryFor(
  { ledger, namespace, prepared, ...readable }: Readable,
  context: StatementContext,
): Omit<ReaderQuery, "onBatch" | "taken"> | undefined {
  const source = readable.source();
  if (source === undefined) return undefined;
  return {
    prepared,
    source: () => source,
    slots: context.slots,
    principal: context.principal,
    namespace,
    snapshotSeq: context.snapshotSeq,
    pastSeqs: () => prepared.pastReads.map((past) => context.pastSeq(past)),
    nowMicros: context.call.nowMicros,
    sequences: context.call.sequences,
    objects: context.call.objects,
    settings: context.call.settings,
    staged: context.staged,
    sleeps: context.sleeps,
    ledger,
    profile: context.profile,
  };
}
