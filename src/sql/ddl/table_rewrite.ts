/**
 * Implements the job that rewrites a table's rows and then redefines the table.
 *
 *     write gate closed ──► rows computed ──► ids reserved ──► rows written ──► redefined, in one tick
 *                                ▲                                  │
 *                                └──── another request altered it ──┘
 *
 * All rows are computed once before any row is written, so a statement that fails because of a row
 * changes nothing. If the statement is ended later, some rows are left with an additional version
 * that has the same values.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO } from "../../base/seq.ts";
import type { SequenceMark, TableEntry } from "../../catalog/mod.ts";
import { type Job, type JobEnd, runJob } from "../../storage/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { type ExecutionDeps, newContext } from "../prepare/statement_context.ts";
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";
import { type ColumnRewrite, RowRewrite } from "./row_rewrite.ts";

type RewriteDeps = ExecutionDeps & RedefinitionDeps & Pick<SqlEnvironment, "jobs" | "writeGates">;

/** The parts of a planned alteration that the rewrite needs. */
interface RewritingAlteration {
  readonly table: TableEntry;
  readonly next: TableEntry | undefined;
  readonly rewrites: readonly ColumnRewrite[];
  readonly marks: readonly SequenceMark[];
}

interface RewriteSteps<Planned, Altered> {
  readonly tableId: number;
  readonly ledger: RequestLedger;
  readonly namespace: string;
  readonly principal: Principal;
  readonly pause: () => Promise<void>;
  /** Makes topic offsets durable, and pauses the counting of messages. */
  readonly hold: () => Promise<void>;
  /** Plans the alteration again. The ids of new columns start at `nextColumnId`. */
  readonly plan: (nextColumnId: number | undefined) => Planned;
  readonly redefine: (at: Planned, next: TableEntry) => Altered;
}

/**
 * Rewrites a table's rows, and redefines the table.
 *
 * @throws {DatabaseError} CANCELLED, and the errors raised when the new values are computed.
 */
export async function rewriteTable<Planned extends RewritingAlteration, Altered>(
  deps: RewriteDeps,
  steps: RewriteSteps<Planned, Altered>,
): Promise<Altered> {
  const { ledger, principal, tableId } = steps;
  const open = await deps.writeGates.close([tableId], ledger);
  try {
    const job = deps.jobs.begin({ kind: "rewrite", tableId, createdBy: principal.userId });
    const end = await runJob<JobEnd & { altered?: Altered }>(job, async () => {
      job.start();
      for (;;) {
        const altered = await attempt(deps, steps, job);
        if (altered !== undefined) return { status: "completed", altered };
      }
    });
    if (end.error !== undefined) throw end.error;
    return defined(
      "altered" in end ? end.altered : undefined,
      "table rewrite: completed job has no result",
    );
  } finally {
    open();
  }
}

/**
 * Tries to rewrite and redefine the table. Returns undefined if another request has altered the
 * table in the meantime.
 */
async function attempt<Planned extends RewritingAlteration, Altered>(
  deps: RewriteDeps,
  { hold, namespace, pause, plan, principal, redefine, tableId }: RewriteSteps<Planned, Altered>,
  job: Job,
): Promise<Altered | undefined> {
  const { catalog, clock, definitionOf, store } = deps;
  await hold();
  const step = async (): Promise<void> => {
    if (job.isCancelled) throw killed(plan(undefined).table);
    await pause();
    if (catalog.tableById(tableId) === undefined) throw dropped(before);
  };
  const rewriteOf = ({ next, rewrites, table }: Planned): RowRewrite => {
    const options = { principal, namespace, slots: [], atSeq: store.visibleSeq };
    const context = newContext(deps, options);
    const after = defined(next, "table rewrite: the planned definition is missing");
    return new RowRewrite({ table, next: after, rewrites, context, clock, store });
  };
  const first = plan(undefined);
  const { table: before } = first;
  await rewriteOf(first).inspect({ after: SEQ_ZERO, upTo: store.appliedSeq }, step);
  if (catalog.tableById(tableId) !== before) return undefined;
  // The ids of the new columns are reserved so that they are never used again, even if the server
  // stops before the table is redefined.
  const nextColumnId = defined(
    first.next,
    "table rewrite: the planned definition is missing",
  ).nextColumnId;
  const reserved = { ...before, nextColumnId };
  redefineTable(deps, { before, after: reserved });
  const entry = catalog.tableById(tableId);
  const planned = plan(before.nextColumnId);
  const rewrite = rewriteOf(planned);
  store.defineTable(definitionOf(rewrite.written));
  try {
    let after = SEQ_ZERO;
    for (;;) {
      const upTo = store.appliedSeq;
      const isWritten = await rewrite.write({ after, upTo }, step);
      if (catalog.tableById(tableId) !== entry) return undefined;
      after = upTo;
      if (!isWritten && rewrite.isDone({ after, upTo: store.appliedSeq })) break;
    }
    const next = defined(planned.next, "table rewrite: the planned definition is missing");
    return redefine({ ...planned, marks: [...planned.marks, ...rewrite.marks] }, next);
  } finally {
    const now = catalog.tableById(tableId);
    if (now !== undefined) store.defineTable(definitionOf(now));
  }
}

function dropped(table: TableEntry): DatabaseError {
  return new DatabaseError(
    "TABLE_NOT_FOUND",
    `Cannot alter table ${nameOf(table)}: it was dropped in the meantime`,
  );
}

function killed(table: TableEntry): DatabaseError {
  return new DatabaseError(
    "CANCELLED",
    `Cannot alter table ${nameOf(table)}: its background job was killed`,
  );
}
