/**
 * Computes user-defined aggregates: for each row, the transition returns the next state of the
 * row's group. The rules for strict functions are PostgreSQL's: a strict transition skips rows with
 * a NULL argument, and a state that has become NULL stays NULL.
 */
import { constVector, type Value, type Vector, valueAt } from "../../../types/mod.ts";
import type {
  AggregateStep,
  AggregateSteps,
  BoundColumn,
  BoundWindowCall,
} from "../../bind/bound_expressions.ts";
import { hasSubquery, isVolatile } from "../../bind/walk.ts";
import type {
  AggregateForm,
  AggregateState,
  BatchGroups,
} from "../../functions/aggregate/aggregates.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { compileForRow, type RowEvaluator } from "../evaluate/single_row.ts";

/** Creates the states of an aggregate in a run. */
export type StateFactory = (context: ExecutionContext) => AggregateState;

interface RunnableStep {
  /** Evaluates the step for the state and the arguments. */
  readonly evaluate: RowEvaluator;
  readonly isStrict: boolean;
}

interface CompiledSteps {
  readonly initial: (context: ExecutionContext) => Value;
  readonly first: RowEvaluator | undefined;
  readonly transition: RunnableStep;
  readonly inverse: RunnableStep | undefined;
  readonly final: RunnableStep | undefined;
  readonly argumentCount: number;
  /** Whether the state grows with each row. */
  readonly keepsRows: boolean;
}

/** Returns the function that creates the states of an aggregate. */
export function stateFactory(form: AggregateForm, steps: AggregateSteps | undefined): StateFactory {
  if (steps === undefined) return () => form.create();
  const compiled = compiledSteps(steps, form);
  return (context) => new SteppedState(compiled, context);
}

/**
 * Returns the steps that compute an aggregate over the frames of a window: those for moving frames
 * if the aggregate has them, and the start of the frames moves. As in PostgreSQL, the arguments
 * must then have the same values whenever they are evaluated.
 */
export function stepsOver({
  args,
  filter,
  form,
  window: { frame },
}: BoundWindowCall): AggregateSteps | undefined {
  const steps = form.kind === "aggregate" ? form.steps : undefined;
  const isMoving = frame.start.type !== "unbounded preceding";
  const evaluated = filter === undefined ? args : [...args, filter];
  const isSteady = !evaluated.some((each) => isVolatile(each) || hasSubquery(each));
  return isMoving && isSteady ? (steps?.moving ?? steps) : steps;
}

function compiledSteps(steps: AggregateSteps, form: AggregateForm): CompiledSteps {
  const { args, final, first, initial, inverse, state, transition } = steps;
  const columns = [state, ...args];
  return {
    initial: compileScalar(initial),
    first: first && evaluatorOf(first, columns),
    transition: compiledStep(transition, columns),
    inverse: inverse && compiledStep(inverse, columns),
    final: final && compiledStep(final, columns),
    argumentCount: args.length,
    keepsRows: form.gathers === true,
  };
}

function compiledStep(
  { expression, isStrict }: AggregateStep,
  columns: readonly BoundColumn[],
): RunnableStep {
  return { evaluate: evaluatorOf(expression, columns), isStrict };
}

function evaluatorOf(
  expression: AggregateStep["expression"],
  columns: readonly BoundColumn[],
): RowEvaluator {
  const layout = layoutOf(columns);
  const direct = compileForRow(expression, layout);
  if (direct !== undefined) return direct;
  const evaluate = compileExpression(expression, layout);
  return (values, context) => {
    const row = { rowCount: 1, columns: values.map((value) => constVector(value, 1)) };
    return valueAt(evaluate(row, context), 0);
  };
}

class SteppedState implements AggregateState {
  readonly keepsRows: boolean;
  readonly #steps: CompiledSteps;
  readonly #context: ExecutionContext;
  readonly #initial: Value;
  readonly remove?: (group: number, ...values: readonly Value[]) => boolean;
  /** The state of each group; undefined for a group without rows. */
  readonly #states: (Value | undefined)[] = [];
  /** How many rows have been added to the state of each group and not been removed. */
  readonly #counts: number[] = [];

  constructor(steps: CompiledSteps, context: ExecutionContext) {
    this.keepsRows = steps.keepsRows;
    this.#steps = steps;
    this.#context = context;
    this.#initial = steps.initial(context);
    const { inverse } = steps;
    if (inverse !== undefined) {
      this.remove = (group, ...values) => this.#remove(group, values, inverse);
    }
  }

  addVector(
    groups: BatchGroups | undefined,
    vector: Vector | undefined,
    rowCount: number,
  ): boolean {
    if (vector === undefined || this.keepsRows) return false;
    const { effort } = this.#context;
    for (let row = 0; row < rowCount; row += 1) {
      const value = valueAt(vector, row);
      effort.noteRead(value);
      effort.noteRows(1);
      this.#add(groups?.ids[row] ?? 0, [value]);
    }
    return true;
  }

  add(group: number, ...values: readonly Value[]): void {
    this.#add(group, values);
  }

  #add(group: number, values: readonly Value[]): void {
    const { first, transition } = this.#steps;
    const isMissing = values.includes(null);
    if (transition.isStrict && isMissing) return;
    this.#counts[group] = (this.#counts[group] ?? 0) + 1;
    const state = this.#states[group];
    if (state === undefined && first !== undefined) {
      this.#states[group] = first([null, ...values], this.#context);
      return;
    }
    const current = state === undefined ? this.#initial : state;
    if (transition.isStrict && current === null) {
      this.#states[group] = null;
      return;
    }
    this.#states[group] = transition.evaluate([current, ...values], this.#context);
  }

  /** Removes a row, unless the inverse returns NULL. Without rows, the state is the initial one. */
  #remove(group: number, values: readonly Value[], inverse: RunnableStep): boolean {
    if (inverse.isStrict && values.includes(null)) return true;
    const count = (this.#counts[group] ?? 0) - 1;
    this.#counts[group] = count;
    if (count <= 0) {
      this.#states[group] = undefined;
      return true;
    }
    const state = this.#states[group] ?? null;
    const next = inverse.evaluate([state, ...values], this.#context);
    this.#states[group] = next;
    return next !== null;
  }

  finish(group: number): Value {
    const known = this.#states[group];
    const state = known === undefined ? this.#initial : known;
    const { argumentCount, final } = this.#steps;
    if (final === undefined) return state;
    if (final.isStrict && state === null) return null;
    const missing = Array.from({ length: argumentCount }, () => null);
    return final.evaluate([state, ...missing], this.#context);
  }
}
