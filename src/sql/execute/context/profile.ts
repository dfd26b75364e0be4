/**
 * Collects the measurements for EXPLAIN ANALYZE. For each node of a plan, these are the number of
 * runs, the rows and bytes that the node yielded, and the time spent in the node and below it. If
 * several readers ran the plan, their measurements are added up.
 *
 * Without a profile, measuring costs only one comparison for each operator created.
 */
import type { Clock } from "../../../base/clock.ts";
import type { Batch } from "../../../types/mod.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { batchBytes } from "../materialised/memory_budget.ts";
import type { Operator } from "./operator.ts";

export interface Measured {
  rows: number;
  loops: number;
  ms: number;
  bytes: number;
  /**
   * The number of row groups that a scan has read from segments. `groupsPruned` counts the skipped
   * row groups.
   */
  groupsRead: number;
  groupsPruned: number;
  /** The number of bytes that the plan node wrote to temporary files. */
  spilledBytes: number;
  /**
   * The number of rows that the parts of a divided query have passed on to the rest of the plan.
   */
  partialRows: number;
}

const NOTHING_MEASURED: Readonly<Measured> = {
  rows: 0,
  loops: 0,
  ms: 0,
  bytes: 0,
  groupsRead: 0,
  groupsPruned: 0,
  spilledBytes: 0,
  partialRows: 0,
};

const MEASURES = Object.keys(NOTHING_MEASURED) as readonly (keyof Measured)[];

export class Profile {
  readonly #clock: Clock;
  readonly #byNode = new Map<PlanNode, Measured>();
  readonly #readerMs: number[] = [];
  /** How long the statement has waited for a reader or for memory, in milliseconds. */
  waitedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resets all measurements, because the statement is being restarted. */
  clear(): void {
    this.#byNode.clear();
    this.#readerMs.length = 0;
  }

  /**
   * How long each reader that ran the plan has worked, in milliseconds; empty if the event loop
   * ran the plan.
   */
  get readerMs(): readonly number[] {
    return this.#readerMs;
  }

  /** Adds the working time of a reader that has ended. */
  addReader(workedMs: number): void {
    this.#readerMs.push(workedMs);
  }

  /** Returns the plan nodes that ran, each with its measurements. */
  all(): Iterable<readonly [PlanNode, Measured]> {
    return this.#byNode;
  }

  /** Adds the measurements of a plan node that ran in another thread. */
  add(node: PlanNode, elsewhere: Partial<Measured>): void {
    const measured = this.#measuredOf(node);
    for (const name of MEASURES) measured[name] += elsewhere[name] ?? 0;
  }

  /** Returns the measurements of a plan node; undefined if the node never ran. */
  of(node: PlanNode): Measured | undefined {
    return this.#byNode.get(node);
  }

  /** Wraps the operator of a plan node so that its calls are measured. */
  measured(node: PlanNode, operator: Operator): Operator {
    const measured = this.#measuredOf(node);
    measured.loops += 1;
    return new Meter(operator, measured, this.#clock);
  }

  /** Records the end of a scan, with the numbers of row groups that it read and skipped. */
  scanned(node: PlanNode, { read, pruned }: { read: number; pruned: number }): void {
    const measured = this.#measuredOf(node);
    measured.groupsRead += read;
    measured.groupsPruned += pruned;
  }

  /** Records that the operator of a plan node wrote to a temporary file. */
  spilled(node: PlanNode, bytes: number): void {
    this.#measuredOf(node).spilledBytes += bytes;
  }

  #measuredOf(node: PlanNode): Measured {
    let measured = this.#byNode.get(node);
    if (measured === undefined) {
      measured = { ...NOTHING_MEASURED };
      this.#byNode.set(node, measured);
    }
    return measured;
  }
}

class Meter implements Operator {
  readonly #operator: Operator;
  readonly #measured: Measured;
  readonly #clock: Clock;

  constructor(operator: Operator, measured: Measured, clock: Clock) {
    this.#operator = operator;
    this.#measured = measured;
    this.#clock = clock;
  }

  next(): Batch | undefined {
    const startMs = this.#clock.monotonicMs();
    try {
      const batch = this.#operator.next();
      if (batch !== undefined && batch.rowCount > 0) {
        this.#measured.rows += batch.rowCount;
        this.#measured.bytes += batchBytes(batch);
      }
      return batch;
    } finally {
      this.#measured.ms += this.#clock.monotonicMs() - startMs;
    }
  }

  close(): void {
    this.#operator.close();
  }
}
