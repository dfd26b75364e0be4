/**
 * The run of an inner query: the run of its statement, with values of the query around it. Caller,
 * snapshot, slots and ledger are those of the statement, always.
 */
import type { Principal } from "../../../auth/mod.ts";
import type { Seq } from "../../../base/seq.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { ReadStore, WriteStore } from "../../../storage/mod.ts";
import type { Value } from "../../../types/mod.ts";
import type { CallWorld } from "../../functions/base/function.ts";
import type { TemporaryFiles } from "../../spill/mod.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import type { Effort } from "./effort.ts";
import type { Run, SubqueryAnswers } from "./run.ts";

export interface InnerRunOptions extends Partial<Pick<Run, "memory" | "outer" | "working">> {
  /** Makes separate answers for this run; without it, the answers of the outer run are used. */
  readonly answers?: (own: Run) => SubqueryAnswers;
}

export class InnerRun implements Run {
  readonly principal: Principal;
  readonly store: ReadStore;
  readonly writes: WriteStore | undefined;
  readonly snapshotSeq: Seq;
  readonly transaction: Run["transaction"];
  readonly staged: Run["staged"];
  readonly slots: readonly Value[];
  readonly profile: Run["profile"];
  readonly storageMeter: Run["storageMeter"];
  readonly outer: Run["outer"];
  readonly working: Run["working"];
  readonly memory: MemoryBudget;
  readonly subqueries: SubqueryAnswers;
  readonly #around: Run;

  constructor(
    around: Run,
    {
      answers,
      memory = around.memory,
      outer = around.outer,
      working = around.working,
    }: InnerRunOptions,
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

  get call(): CallWorld {
    return this.#around.call;
  }

  get temporary(): TemporaryFiles {
    return this.#around.temporary;
  }

  get effort(): Effort {
    return this.#around.effort;
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
