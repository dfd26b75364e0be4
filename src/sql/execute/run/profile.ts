/**
 * What EXPLAIN ANALYZE measures: for each node of a plan how often it ran, the rows and bytes that
 * it gave, and the time in it and in all below it. If readers ran the plan, these are their sums.
 *
 * A run without a profile pays one comparison for each operator that is made.
 */
import type { Clock } from "../../../base/clock.ts";
import type { Batch } from "../../../types/mod.ts";
import type { PlanNode } from "../../plan/plan.ts";
import { batchBytes } from "../held/memory_budget.ts";
import type { Operator } from "./operator.ts";

export interface Measured {
  rows: number;
  loops: number;
  ms: number;
  bytes: number;
  /** Row groups of segments, of a table that is scanned. */
  groupsRead: number;
  groupsPruned: number;
  /** Bytes that it wrote to temporary files. */
  spilledBytes: number;
  /** Rows of the parts of a divided query, of which the rest of the plan made the rows. */
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
  /** How long the statement waited for a reader, or for memory. */
  waitedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Forgets all: the statement is begun anew. */
  clear(): void {
    this.#byNode.clear();
    this.#readerMs.length = 0;
  }

  /** How long each reader worked that ran the plan; none if the event loop did. */
  get readerMs(): readonly number[] {
    return this.#readerMs;
  }

  /** A reader has ended. */
  addReader(workedMs: number): void {
    this.#readerMs.push(workedMs);
  }

  /** All nodes that ran. */
  all(): Iterable<readonly [PlanNode, Measured]> {
    return this.#byNode;
  }

  /** Adds what was measured elsewhere. */
  add(node: PlanNode, elsewhere: Partial<Measured>): void {
    const measured = this.#measuredOf(node);
    for (const name of MEASURES) measured[name] += elsewhere[name] ?? 0;
  }

  /** Undefined for a node that never ran. */
  of(node: PlanNode): Measured | undefined {
    return this.#byNode.get(node);
  }

  /** The operator of a node, measured from now on. */
  measured(node: PlanNode, operator: Operator): Operator {
    const measured = this.#measuredOf(node);
    measured.loops += 1;
    return new Meter(operator, measured, this.#clock);
  }

  /** A scan of a node ended. */
  scanned(node: PlanNode, { read, pruned }: { read: number; pruned: number }): void {
    const measured = this.#measuredOf(node);
    measured.groupsRead += read;
    measured.groupsPruned += pruned;
  }

  /** An operator of a node wrote to a temporary file. */
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
