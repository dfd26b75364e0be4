/**
 * Creates the context of an inner query: the statement's context, with additional values from the
 * enclosing query. The caller, the snapshot, the slots and the ledger are always the statement's
 * own.
 */
import type { Principal } from "../../../auth/mod.ts";
import type { Seq } from "../../../base/seq.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { ReadStore, WriteStore } from "../../../storage/mod.ts";
import type { Value } from "../../../types/mod.ts";
import type { PastRead } from "../../bind/bound.ts";
import type { CallDeps } from "../../functions/base/function.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import type { Effort } from "./effort.ts";
import type { ExecutionContext, SubqueryAnswers } from "./execution_context.ts";

export interface InnerContextOptions
  extends Partial<Pick<ExecutionContext, "memory" | "outer" | "working">> {
  /**
   * Creates the subquery results for the new context. If this function is absent, the new context
   * shares the results of the outer context.
   */
  readonly answers?: (own: ExecutionContext) => SubqueryAnswers;
}

export class InnerContext implements ExecutionContext {
  readonly principal: Principal;
  readonly store: ReadStore;
  readonly writes: WriteStore | undefined;
  readonly snapshotSeq: Seq;
  readonly transaction: ExecutionContext["transaction"];
  readonly staged: ExecutionContext["staged"];
  readonly slots: readonly Value[];
  readonly profile: ExecutionContext["profile"];
  readonly storageMeter: ExecutionContext["storageMeter"];
  readonly outer: ExecutionContext["outer"];
  readonly working: ExecutionContext["working"];
  readonly memory: MemoryBudget;
  readonly subqueries: SubqueryAnswers;
  readonly #around: ExecutionContext;

  constructor(
    around: ExecutionContext,
    {
      answers,
      memory = around.memory,
      outer = around.outer,
      working = around.working,
    }: InnerContextOptions,
  ) {
    this.principal = around.principal;
    this.store = around.store;
    this.writes = around.writes;
    this.snapshotSeq = around.snapshotSeq;
    this.transaction = around.transaction;
    this.staged = around.staged;
    this.slots = around.slots;
    this.profile = around.profile;
    this.storageMeter = around.storageMeter;
    this.outer = outer;
    this.memory = memory;
    this.working = working;
    this.#around = around;
    this.subqueries = answers?.(this) ?? around.subqueries;
  }

  get call(): CallDeps {
    return this.#around.call;
  }

  get temporary(): TemporaryFiles {
    return this.#around.temporary;
  }

  get effort(): Effort {
    return this.#around.effort;
  }

  pastSeq(past: PastRead): Seq {
    return this.#around.pastSeq(past);
  }

  mayReadHistory(table: TableEntry): boolean {
    return this.#around.mayReadHistory(table);
  }

  requireUnaltered(table: TableEntry): void {
    this.#around.requireUnaltered(table);
  }

  noteReadInOrder(): void {
    this.#around.noteReadInOrder();
  }

  noteRead(rowCount: number): void {
    this.#around.noteRead(rowCount);
  }

  monotonicMs(): number {
    return this.#around.monotonicMs();
  }

  checkTime(): void {
    this.#around.checkTime();
  }

  get mayLeave(): boolean {
    return this.#around.mayLeave;
  }

  stay(): void {
    this.#around.stay();
  }

  pause(): Promise<void> {
    return this.#around.pause();
  }

  checkResultRows(rowCount: number): void {
    this.#around.checkResultRows(rowCount);
  }
}
