/**
 * Makes the run of one execution from what the SQL layer was given.
 */
import { mayReadHistory, type Principal } from "../auth/mod.ts";
import type { Seq } from "../base/seq.ts";
import type { Value } from "../types/mod.ts";
import type { SqlEnvironment } from "./environment.ts";
import { checkDeadline, type Deadline } from "./execute/operator.ts";
import { MemoryBudget, type Run, type UploadSink } from "./execute/run.ts";
import type { Transaction } from "./execute/transaction.ts";

export interface NewRun {
  readonly principal: Principal;
  readonly namespace: string;
  /** Parameters, then lifted literals or files. */
  readonly slots: readonly Value[];
  /** What a statement outside a transaction reads. */
  readonly atSeq: Seq;
  readonly transaction?: Transaction | undefined;
  readonly uploads?: UploadSink | undefined;
  /** When the statement must stop; undefined for never. */
  readonly deadline?: Deadline | undefined;
}

/** A caller that is nobody: for expressions of definitions, which read no row. */
export const NO_PRINCIPAL: Principal = {
  userId: "",
  role: "user",
  owner: undefined,
  actorId: "",
  actorRole: "user",
  isImpersonated: false,
  sessionId: "",
};

export function newRun(
  { catalog, clock, limits, random, store, version }: SqlEnvironment,
  { atSeq, deadline, namespace, principal, slots, transaction, uploads }: NewRun,
): Run {
  return {
    principal,
    mayReadHistory: (table) => mayReadHistory(principal, table, catalog.namespace(table.namespace)),
    store,
    transaction,
    snapshotSeq: transaction?.snapshotSeq ?? atSeq,
    slots,
    checkTime: () => {
      if (deadline !== undefined) checkDeadline(deadline, clock);
    },
    memory: new MemoryBudget(limits.queryMemoryBytes),
    uploads,
    call: {
      nowMicros: transaction?.nowMicros ?? clock.nowMs() * 1000,
      userId: principal.userId,
      sessionUserId: principal.actorId,
      role: principal.role,
      namespace,
      version,
      clockMicros: () => clock.nowMs() * 1000,
      snowflakeId: () => store.snowflakeId(),
      randomBytes: (count) => random.bytes(count),
      randomUnit: () => random.unit(),
    },
  };
}
