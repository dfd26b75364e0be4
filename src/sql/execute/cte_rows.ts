/**
 * The rows of one entry of WITH in one run.
 */
import type { BoundCte } from "../bind/bound.ts";
import type { PlanNode } from "../plan/plan.ts";
import { planWhole } from "../plan/planner.ts";
import { buildPlan, type OperatorFactory } from "./build.ts";
import { HeldRows } from "./held_rows.ts";
import type { Operator } from "./operator.ts";
import type { Run, SharedRows } from "./run.ts";

const FACTORIES = new WeakMap<BoundCte, OperatorFactory>();
const PLANS = new WeakMap<BoundCte, PlanNode>();

/** The plan of an entry, the same at each call. */
export function planOfCte(cte: BoundCte): PlanNode {
  const known = PLANS.get(cte) ?? planWhole(cte.query);
  PLANS.set(cte, known);
  return known;
}

function factoryOf(cte: BoundCte): OperatorFactory {
  const known = FACTORIES.get(cte);
  if (known !== undefined) return known;
  const factory = buildPlan(planOfCte(cte));
  FACTORIES.set(cte, factory);
  return factory;
}

export class CteRows implements SharedRows {
  readonly rows: HeldRows;
  readerCount = 0;
  readonly #onUnused: () => void;
  readonly #input: Operator;
  #isOver = false;

  /** @param onUnused Called when the last reader left before all rows were there. */
  constructor(cte: BoundCte, { onUnused, run }: { run: Run; onUnused: () => void }) {
    const types = cte.query.outputs.map(({ expression }) => expression.type);
    this.rows = new HeldRows(types, run.memory);
    this.#input = factoryOf(cte)(run);
    this.#onUnused = onUnused;
  }

  advance(): boolean {
    if (this.#isOver) return false;
    const batch = this.#input.next();
    if (batch === undefined) {
      this.#isOver = true;
      this.#input.close();
    } else {
      this.rows.append(batch.columns, batch.rowCount);
    }
    return true;
  }

  giveBack(): void {
    this.readerCount -= 1;
    if (this.readerCount > 0 || this.#isOver) return;
    this.#input.close();
    this.#onUnused();
  }
}
