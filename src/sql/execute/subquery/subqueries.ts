/**
 * Computes the results of subqueries during an execution.
 *
 * A subquery without outer references runs once per execution. A subquery that has a keyed form
 * also runs once, and its rows are found by key, as in a hash join whose probe side is the outer
 * query. Any other subquery runs for each new set of outer values, and its results are cached. A
 * subquery does not run until its value is needed. The compiled code belongs to the plan, and the
 * results belong to the execution.
 *
 * If the keyed form fails, the subquery runs for each set of outer values instead, because rows
 * that no outer row needs must not make the statement fail.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { SUBQUERY_ANSWERS_MAX } from "../../../base/limits.ts";
import { type Value, type Vector, valueAt } from "../../../types/mod.ts";
import type { BoundCte, BoundRecursion, BoundSelect } from "../../bind/bound.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import { recursionsAround } from "../../bind/query/query_walk.ts";
import type {
  ExecutionContext,
  RowsOfQuestions,
  SharedRows,
  StepAnswers,
} from "../context/execution_context.ts";
import { InnerContext } from "../context/inner_context.ts";
import { made, type Operator, type OperatorFactory } from "../context/operator.ts";
import { endsRequest } from "../context/request_ledger.ts";
import { keyTextOf } from "../keys/key_text.ts";
import type { MemoryBudget } from "../materialised/memory_budget.ts";
import { CteRows } from "./cte_rows.ts";
import { KeyedAnswers } from "./keyed_answers.ts";
import { rowOf, SubqueryAnswer } from "./subquery_answer.ts";
import { type KeyedProgram, programOf, type SubqueryProgram } from "./subquery_program.ts";

/**
 * The results of an execution's subqueries, shared by its inner queries. A step of a recursion
 * keeps its own results for all queries that read the rows of the previous step, at any depth, and
 * shares all other results with the enclosing query.
 */
export class Subqueries implements StepAnswers {
  readonly #states = new Map<BoundSubquery, SubqueryState>();
  /** The rows of WITH entries, keyed by the outer values on which they depend, if any. */
  readonly #rows = new WeakMap<ExecutionContext["outer"], Map<BoundCte, CteRows>>();
  /** The context of the statement or the step. Cached results are charged to its memory budget. */
  readonly #context: ExecutionContext;
  readonly #step: RecursionStep | undefined;
  isUsed = false;

  constructor(context: ExecutionContext, step?: RecursionStep) {
    this.#context = context;
    this.#step = step;
  }

  inStep(recursion: BoundRecursion, context: ExecutionContext): StepAnswers {
    return new Subqueries(context, { around: this, recursion });
  }

  end(): void {
    for (const rows of this.#rows.get(this.#context.outer)?.values() ?? []) rows.close();
  }

  valuesOf(subquery: BoundSubquery, { outerValues, operands, rowCount }: RowsOfQuestions): Value[] {
    const answers = this.stateOf(subquery).keyedAnswers(outerValues, rowCount);
    const values: Value[] = Array.from({ length: rowCount });
    for (let row = 0; row < rowCount; row += 1) {
      const own = operands.map((vector) => valueAt(vector, row));
      const answer =
        answers?.[row] ??
        this.stateOf(subquery).answerFor(outerValues.map((vector) => valueAt(vector, row)));
      values[row] = answer.valueFor(own, subquery, this.#context.call);
    }
    return values;
  }

  takeRows(cte: BoundCte, context: ExecutionContext): SharedRows {
    if (!cte.readsOuter && this.#step !== undefined && !isOfStep(cte.query, this.#step)) {
      return this.#step.around.takeRows(cte, context);
    }
    this.isUsed = true;
    const owner = cte.readsOuter ? context : this.#context;
    const known = this.#rows.get(owner.outer) ?? new Map<BoundCte, CteRows>();
    this.#rows.set(owner.outer, known);
    let rows = known.get(cte);
    if (rows === undefined) {
      rows = new CteRows(cte, { context: owner, onUnused: () => void known.delete(cte) });
      known.set(cte, rows);
    }
    rows.readerCount += 1;
    return rows;
  }

  stateOf(subquery: BoundSubquery): SubqueryState {
    const known = this.#states.get(subquery);
    if (known !== undefined) return known;
    if (this.#step !== undefined && !isOfStep(subquery.query, this.#step)) {
      return this.#step.around.stateOf(subquery);
    }
    this.isUsed = true;
    const state = new SubqueryState(subquery, this.#context);
    this.#states.set(subquery, state);
    return state;
  }
}

/** A recursion with a step in progress, and the subquery results of the enclosing query. */
interface RecursionStep {
  readonly around: Subqueries;
  readonly recursion: BoundRecursion;
}

function isOfStep(query: BoundSelect, { recursion }: RecursionStep): boolean {
  return recursionsAround(query).has(recursion);
}

/** The outer values of a subquery that runs once for all outer rows. */
const NO_OUTER_VALUES: ReadonlyMap<number, Value> = new Map();

/** The state of a subquery during one execution. */
class SubqueryState {
  readonly #subquery: BoundSubquery;
  readonly #program: SubqueryProgram;
  readonly #context: ExecutionContext;
  /**
   * The results, keyed by outer values as text; the key is "" if there are no outer references.
   */
  readonly #answers = new Map<string, SubqueryAnswer>();
  #keyed: KeyedAnswers | "failed" | undefined;

  constructor(subquery: BoundSubquery, context: ExecutionContext) {
    this.#subquery = subquery;
    this.#program = programOf(subquery);
    this.#context = context;
  }

  /**
   * Returns the subquery's result for each outer row if the results are found by key; otherwise
   * undefined.
   */
  keyedAnswers(outerValues: readonly Vector[], rowCount: number): SubqueryAnswer[] | undefined {
    const { keyed } = this.#program;
    if (outerValues.length === 0 || keyed === undefined) return undefined;
    this.#keyed ??= this.#context.effort.apart(() => this.#readKeyed(keyed));
    if (this.#keyed === "failed") return undefined;
    return this.#keyed.answersFor({ rowCount, columns: outerValues }, this.#context);
  }

  /**
   * Returns the subquery's result for a set of outer values.
   *
   * @throws {DatabaseError} The errors of the query.
   */
  answerFor(outerValues: readonly Value[]): SubqueryAnswer {
    const { outerTypes, isVolatile } = this.#subquery;
    const text = outerValues.length === 0 ? "" : keyTextOf(outerTypes, outerValues);
    const known = isVolatile ? undefined : this.#answers.get(text);
    if (known !== undefined) return known;
    const { build, columnCount } = this.#program;
    const mayKeep = !isVolatile && this.#answers.size < SUBQUERY_ANSWERS_MAX;
    const held = mayKeep ? this.#context.memory : this.#context.memory.nested();
    const context = this.#runWith(outerValues, held);
    const answer = this.#context.effort.apart(() => this.#read(context, { build, columnCount }));
    if (mayKeep) this.#answers.set(text, answer);
    else held.close();
    return answer;
  }

  #runWith(outerValues: readonly Value[], memory: MemoryBudget): InnerContext {
    const { outerIds } = this.#subquery;
    const outer = new Map(outerIds.map((id, i) => [id, outerValues[i] ?? null]));
    return new InnerContext(this.#context, { outer, memory });
  }

  /**
   * Runs a subquery, and returns its result.
   * @param context The execution context, whose memory budget is charged for the result.
   */
  #read(
    context: InnerContext,
    { build, columnCount }: { build: OperatorFactory; columnCount: number },
  ): SubqueryAnswer {
    const held = context.memory;
    const answer = new SubqueryAnswer(this.#subquery.form, held);
    drained(context, build, (operator) => addRows(answer, operator, { columnCount, held }));
    return answer;
  }

  #readKeyed(keyed: KeyedProgram): KeyedAnswers | "failed" {
    const held = this.#context.memory.nested();
    const context = new InnerContext(this.#context, { outer: NO_OUTER_VALUES, memory: held });
    const answers = new KeyedAnswers(this.#subquery, keyed, {
      held,
      bounds: { limit: keyed.limit(this.#context), offset: keyed.offset(this.#context) },
    });
    try {
      drained(context, keyed.build, (operator) => answers.addBatch(operator));
      const { buildWithoutRows: build, columnCount } = keyed;
      if (build !== undefined) answers.withoutRows = this.#read(context, { build, columnCount });
      return answers;
    } catch (error) {
      held.close();
      if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
      return "failed";
    }
  }
}

/**
 * Runs a query whose operators keep rows only while the subquery runs.
 *
 * @param step Returns true once the query has ended.
 */
function drained(
  context: InnerContext,
  build: OperatorFactory,
  step: (operator: Operator) => boolean,
): void {
  const working = context.memory.nested();
  const operator = made(
    build,
    new InnerContext(context, { outer: context.outer, memory: working }),
  );
  try {
    while (!step(operator)) context.checkTime();
  } finally {
    operator.close();
    working.close();
  }
}

/** Adds the rows of the next batch. Returns whether the result is complete. */
function addRows(
  answer: SubqueryAnswer,
  operator: Operator,
  { columnCount, held }: { columnCount: number; held: MemoryBudget },
): boolean {
  const batch = operator.next();
  if (batch === undefined) return true;
  for (let row = 0; row < batch.rowCount && !answer.isDecided; row += 1) {
    answer.add(rowOf(batch, row, columnCount), held);
  }
  return answer.isDecided;
}
