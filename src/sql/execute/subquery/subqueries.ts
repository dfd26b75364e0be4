/**
 * Answers the subqueries of one run.
 *
 * A subquery without captures is read once a run. One that has a keyed form is read once, too, and
 * its rows are found by key: a hash join whose streaming side is the outer query. Any other is read
 * for each new set of captures and remembered. What a plan keeps of all this is compiled code; the
 * answers belong to the run.
 *
 *     prepare ──► reading, batch by batch ──► ready
 *                         └──fault──► once: raised where the value is asked for
 *                                     keyed: read for each set of captures instead, since rows that
 *                                     no outer row asks for must not fail the statement
 */
import type { DatabaseError } from "../../../base/errors.ts";
import { SUBQUERY_ANSWERS_MAX } from "../../../base/limits.ts";
import { type Value, type Vector, valueAt } from "../../../types/mod.ts";
import type { BoundCte, BoundRecursion, BoundSelect } from "../../bind/bound.ts";
import type { BoundSubquery } from "../../bind/bound_expressions.ts";
import { recursionsAround } from "../../bind/query/query_walk.ts";
import type { MemoryBudget } from "../held/memory_budget.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { InnerRun } from "../run/inner_run.ts";
import { made, type Operator, type OperatorFactory } from "../run/operator.ts";
import { PAUSE } from "../run/pausing.ts";
import type { Reading, RowsOfQuestions, Run, SharedRows, StepAnswers } from "../run/run.ts";
import { CteRows } from "./cte_rows.ts";
import { GuardedReading, NO_CAPTURES } from "./guarded_reading.ts";
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
  readonly #steps = new Set<Subqueries>();
  /** The run of the statement or of the step, whose memory budget pays for kept answers. */
  readonly #run: Run;
  readonly #step: Step | undefined;

  constructor(run: Run, step?: Step) {
    this.#run = run;
    this.#step = step;
    if (step !== undefined) step.around.#steps.add(this);
  }

  abandon(): void {
    for (const state of this.#states.values()) state.abandon();
    for (const step of this.#steps) step.abandon();
  }

  inStep(recursion: BoundRecursion, run: Run): StepAnswers {
    return new Subqueries(run, { around: this, recursion });
  }

  end(): void {
    this.abandon();
    if (this.#step !== undefined) this.#step.around.#steps.delete(this);
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

/** A reading for one set of captures that was left in the middle. */
interface PausedReading {
  readonly text: string;
  readonly answer: Answer;
  readonly reading: Reading;
}

/** What is known in a run of one subquery. */
class SubqueryState {
  readonly #subquery: BoundSubquery;
  readonly #program: Program;
  readonly #run: Run;
  /** By the text of the captures; "" without any. */
  readonly #answers = new Map<string, Answer>();
  #paused: PausedReading | undefined;
  #fault: DatabaseError | undefined;
  #keyed: KeyedAnswers | "failed" | undefined;

  constructor(subquery: BoundSubquery, run: Run) {
    this.#subquery = subquery;
    this.#program = programOf(subquery);
    this.#run = run;
  }

  /** Begins to read what does not hang on captures; undefined when there is nothing to read. */
  prepare(): Reading | undefined {
    if (this.#subquery.captureIds.length === 0) {
      if (this.#answers.has("") || this.#fault !== undefined) return undefined;
      return this.#readOnce();
    }
    const { keyed } = this.#program;
    return keyed === undefined || this.#keyed !== undefined ? undefined : this.#readKeyed(keyed);
  }

  /** Of a query that is found by key: the answer of each row. */
  keyedAnswers(captured: readonly Vector[], rowCount: number): Answer[] | undefined {
    this.#finishReading();
    if (!(this.#keyed instanceof KeyedAnswers)) return undefined;
    return this.#keyed.answersFor({ rowCount, columns: captured }, this.#run);
  }

  #finishReading(): void {
    const reading = this.prepare();
    if (reading !== undefined) finish(reading, this.#run);
  }

  /** Of a query that is not found by key. @throws {DatabaseError} What the query raises. */
  answerFor(captured: readonly Value[]): Answer {
    this.#finishReading();
    if (this.#fault !== undefined) throw this.#fault;
    const { captureTypes, isVolatile } = this.#subquery;
    const text = captured.length === 0 ? "" : keyTextOf(captureTypes, captured);
    const known = isVolatile ? undefined : this.#answers.get(text);
    if (known !== undefined) return known;
    const { build, columnCount } = this.#program;
    const mayKeep = !isVolatile && this.#answers.size < SUBQUERY_ANSWERS_MAX;
    if (mayKeep && this.#run.pauses.areAllowed) {
      const answer = this.#readWithPauses(text, captured);
      this.#answers.set(text, answer);
      return answer;
    }
    const held = mayKeep ? this.#run.memory : this.#run.memory.nested();
    const answer = this.#readNow(this.#runWith(captured, held), { build, columnCount });
    if (mayKeep) this.#answers.set(text, answer);
    else held.close();
    return answer;
  }

  /** Lets go of a reading that was paused. */
  abandon(): void {
    const paused = this.#paused;
    this.#paused = undefined;
    paused?.reading.close();
  }

  /** Goes on where a pause was made for the same captures. @throws PAUSE when the turn is over. */
  #readWithPauses(text: string, captured: readonly Value[]): Answer {
    const { pauses } = this.#run;
    if (this.#paused !== undefined && this.#paused.text !== text) this.abandon();
    const paused = this.#paused ?? this.#begin(text, captured);
    this.#paused = undefined;
    const { answer, reading } = paused;
    let isOver = false;
    let isKept = false;
    try {
      while (!isOver) {
        isOver = pauses.never(() => reading.step());
        this.#run.checkTime();
        if (isOver || !pauses.isDue) continue;
        isKept = true;
        this.#paused = paused;
        throw PAUSE;
      }
      return answer;
    } finally {
      if (!isKept) reading.close();
    }
  }

  #begin(text: string, captured: readonly Value[]): PausedReading {
    const { build, columnCount } = this.#program;
    const held = this.#run.memory;
    const answer = new Answer(this.#subquery.form, held);
    const working = held.nested();
    const run = this.#runWith(captured, working);
    const operator = this.#run.pauses.never(() => made(build, run));
    const reading: Reading = {
      step: () => addRows(answer, operator, { columnCount, held }),
      close: () => {
        operator.close();
        working.close();
      },
    };
    return { text, answer, reading };
  }

  #runWith(captured: readonly Value[], memory: MemoryBudget): InnerRun {
    const { captureIds } = this.#subquery;
    const outer = new Map(captureIds.map((id, i) => [id, captured[i] ?? null]));
    return new InnerRun(this.#run, { outer, memory });
  }

  #readNow(
    run: InnerRun,
    { build, columnCount }: { build: OperatorFactory; columnCount: number },
  ): Answer {
    const held = run.memory;
    const answer = new Answer(this.#subquery.form, held);
    const working = held.nested();
    const inner = new InnerRun(run, { outer: run.outer, memory: working });
    const operator = made(build, inner);
    try {
      const { pauses } = this.#run;
      const step = (): boolean => addRows(answer, operator, { columnCount, held });
      while (!pauses.never(step)) goOn(run);
    } finally {
      operator.close();
      working.close();
    }
    return answer;
  }

  #readOnce(): Reading {
    const { build, columnCount } = this.#program;
    const held = this.#run.memory.nested();
    const answer = new Answer(this.#subquery.form, held);
    return new GuardedReading(this.#run, build, {
      step: (operator) => addRows(answer, operator, { columnCount, held }),
      onEnd: () => void this.#answers.set("", answer),
      onFault: (fault) => {
        held.close();
        this.#fault = fault;
      },
    });
  }

  #readKeyed(keyed: KeyedProgram): Reading {
    const held = this.#run.memory.nested();
    const answers = new KeyedAnswers(this.#subquery, keyed, {
      held,
      bounds: { limit: keyed.limit(this.#run), offset: keyed.offset(this.#run) },
    });
    return new GuardedReading(this.#run, keyed.build, {
      step: (operator) => answers.addBatch(operator),
      onEnd: () => {
        const { buildWithoutRows: build, columnCount } = keyed;
        const run = new InnerRun(this.#run, { outer: NO_CAPTURES, memory: held });
        if (build !== undefined) answers.withoutRows = this.#readNow(run, { build, columnCount });
        this.#keyed = answers;
      },
      onFault: () => {
        held.close();
        this.#keyed = "failed";
      },
    });
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

function finish(reading: Reading, run: Run): void {
  try {
    const step = (): boolean => reading.step();
    while (!run.pauses.never(step)) goOn(run);
  } finally {
    reading.close();
  }
}

/** Between two steps of who does not pause. @throws {DatabaseError} */
function goOn(run: Run): void {
  run.checkTime();
  run.pauses.requireAwake();
}
