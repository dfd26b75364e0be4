/**
 * Answers the subqueries of one run.
 *
 * A subquery without captures is read once a run. One that has a keyed form is read once, too, and
 * its rows are found by key: a hash join whose streaming side is the outer query. Any other is read
 * for each new set of captures and remembered. Each is read when its value is asked for. A plan
 * keeps compiled code; the answers belong to the run.
 *
 * If the keyed form fails, the subquery is read for each set of captures instead: rows that no
 * outer row asks for must not fail the statement.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { SUBQUERY_ANSWERS_MAX } from "../../../base/limits.ts";
import { type Value, type Vector, valueAt } from "../../../types/mod.ts";
import type { BoundCte, BoundRecursion, BoundSelect } from "../../bind/bound.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import { recursionsAround } from "../../bind/query/query_walk.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { InnerRun } from "../run/inner_run.ts";
import { made, type Operator, type OperatorFactory } from "../run/operator.ts";
import { endsRequest } from "../run/request_ledger.ts";
import type { RowsOfQuestions, Run, SharedRows, StepAnswers } from "../run/run.ts";
import { CteRows } from "./cte_rows.ts";
import { KeyedAnswers } from "./keyed_answers.ts";
import { Answer, rowOf } from "./subquery_answer.ts";
import { type KeyedProgram, type Program, programOf } from "./subquery_program.ts";

/**
 * The answers to the subqueries of one run, which its inner runs share. A step of a recursion keeps
 * separate answers for every query that reads the rows of the previous step, at any depth, and
 * shares the others with the run around it.
 */
export class Subqueries implements StepAnswers {
  readonly #states = new Map<BoundSubquery, SubqueryState>();
  /** The rows of WITH entries, by the outer values on which they depend, if any. */
  readonly #rows = new WeakMap<Run["outer"], Map<BoundCte, CteRows>>();
  /** The run of the statement or of the step, whose memory budget pays for kept answers. */
  readonly #run: Run;
  readonly #step: Step | undefined;

  constructor(run: Run, step?: Step) {
    this.#run = run;
    this.#step = step;
  }

  inStep(recursion: BoundRecursion, run: Run): StepAnswers {
    return new Subqueries(run, { around: this, recursion });
  }

  end(): void {
    for (const rows of this.#rows.get(this.#run.outer)?.values() ?? []) rows.close();
  }

  valuesOf(subquery: BoundSubquery, { captured, operands, rowCount }: RowsOfQuestions): Value[] {
    const answers = this.stateOf(subquery).keyedAnswers(captured, rowCount);
    const values: Value[] = Array.from({ length: rowCount });
    for (let row = 0; row < rowCount; row += 1) {
      const own = operands.map((vector) => valueAt(vector, row));
      const answer =
        answers?.[row] ??
        this.stateOf(subquery).answerFor(captured.map((vector) => valueAt(vector, row)));
      values[row] = answer.valueFor(own, subquery, this.#run.call);
    }
    return values;
  }

  takeRows(cte: BoundCte, run: Run): SharedRows {
    if (!cte.readsOuter && this.#step !== undefined && !isOfStep(cte.query, this.#step)) {
      return this.#step.around.takeRows(cte, run);
    }
    const owner = cte.readsOuter ? run : this.#run;
    const known = this.#rows.get(owner.outer) ?? new Map<BoundCte, CteRows>();
    this.#rows.set(owner.outer, known);
    let rows = known.get(cte);
    if (rows === undefined) {
      rows = new CteRows(cte, { run: owner, onUnused: () => void known.delete(cte) });
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
    const state = new SubqueryState(subquery, this.#run);
    this.#states.set(subquery, state);
    return state;
  }
}

/** The recursion that a step belongs to, and the answers of the run around it. */
interface Step {
  readonly around: Subqueries;
  readonly recursion: BoundRecursion;
}

function isOfStep(query: BoundSelect, { recursion }: Step): boolean {
  return recursionsAround(query).has(recursion);
}

/** The captures of a query that is read for all sets of captures at once. */
const NO_CAPTURES: ReadonlyMap<number, Value> = new Map();

/** What is known in a run of one subquery. */
class SubqueryState {
  readonly #subquery: BoundSubquery;
  readonly #program: Program;
  readonly #run: Run;
  /** By the text of the captures; "" without any. */
  readonly #answers = new Map<string, Answer>();
  #keyed: KeyedAnswers | "failed" | undefined;

  constructor(subquery: BoundSubquery, run: Run) {
    this.#subquery = subquery;
    this.#program = programOf(subquery);
    this.#run = run;
  }

  /** Of a query that is found by key: the answer of each row. */
  keyedAnswers(captured: readonly Vector[], rowCount: number): Answer[] | undefined {
    const { keyed } = this.#program;
    if (captured.length === 0 || keyed === undefined) return undefined;
    this.#keyed ??= this.#run.effort.apart(() => this.#readKeyed(keyed));
    if (this.#keyed === "failed") return undefined;
    return this.#keyed.answersFor({ rowCount, columns: captured }, this.#run);
  }

  /** Of a query that is not found by key. @throws {DatabaseError} What the query raises. */
  answerFor(captured: readonly Value[]): Answer {
    const { captureTypes, isVolatile } = this.#subquery;
    const text = captured.length === 0 ? "" : keyTextOf(captureTypes, captured);
    const known = isVolatile ? undefined : this.#answers.get(text);
    if (known !== undefined) return known;
    const { build, columnCount } = this.#program;
    const mayKeep = !isVolatile && this.#answers.size < SUBQUERY_ANSWERS_MAX;
    const held = mayKeep ? this.#run.memory : this.#run.memory.nested();
    const run = this.#runWith(captured, held);
    const answer = this.#run.effort.apart(() => this.#read(run, { build, columnCount }));
    if (mayKeep) this.#answers.set(text, answer);
    else held.close();
    return answer;
  }

  #runWith(captured: readonly Value[], memory: MemoryBudget): InnerRun {
    const { captureIds } = this.#subquery;
    const outer = new Map(captureIds.map((id, i) => [id, captured[i] ?? null]));
    return new InnerRun(this.#run, { outer, memory });
  }

  /** @param run Its memory holds the answer. */
  #read(
    run: InnerRun,
    { build, columnCount }: { build: OperatorFactory; columnCount: number },
  ): Answer {
    const held = run.memory;
    const answer = new Answer(this.#subquery.form, held);
    drained(run, build, (operator) => addRows(answer, operator, { columnCount, held }));
    return answer;
  }

  #readKeyed(keyed: KeyedProgram): KeyedAnswers | "failed" {
    const held = this.#run.memory.nested();
    const run = new InnerRun(this.#run, { outer: NO_CAPTURES, memory: held });
    const answers = new KeyedAnswers(this.#subquery, keyed, {
      held,
      bounds: { limit: keyed.limit(this.#run), offset: keyed.offset(this.#run) },
    });
    try {
      drained(run, keyed.build, (operator) => answers.addBatch(operator));
      const { buildWithoutRows: build, columnCount } = keyed;
      if (build !== undefined) answers.withoutRows = this.#read(run, { build, columnCount });
      return answers;
    } catch (error) {
      held.close();
      if (!(error instanceof DatabaseError) || endsRequest(error)) throw error;
      return "failed";
    }
  }
}

/** Reads a query, whose operators hold rows only meanwhile. @param step Returns whether it ends. */
function drained(
  run: InnerRun,
  build: OperatorFactory,
  step: (operator: Operator) => boolean,
): void {
  const working = run.memory.nested();
  const operator = made(build, new InnerRun(run, { outer: run.outer, memory: working }));
  try {
    while (!step(operator)) run.checkTime();
  } finally {
    operator.close();
    working.close();
  }
}

/** Adds the rows of the next batch. Returns whether the answer is complete. */
function addRows(
  answer: Answer,
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
