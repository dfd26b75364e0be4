/**
 * Evaluates the expressions of a change that are not part of reading rows: rows of VALUES, the new
 * values in ON CONFLICT, the conditions of policies, and RETURNING.
 *
 * Queries in these expressions may take a long time. Each evaluation is therefore a program that
 * turns one batch into another. A reader thread that compiles the same statement can run the
 * program for the event loop.
 */
import type { Batch } from "../../../types/mod.ts";
import type { ExecutionContext } from "../context/execution_context.ts";

export type EvaluationName = "values" | "conflict" | "returning" | `guard ${number}`;

export interface Evaluation {
  readonly name: EvaluationName;
  readonly holdsQuery: boolean;
  readonly evaluate: (given: Batch, context: ExecutionContext) => Batch;
}

/**
 * Another thread, which reads the rows of a change and runs the evaluations that contain queries.
 */
export interface Elsewhere {
  /**
   * Returns the next rows; undefined at the end.
   * @throws {DatabaseError}
   */
  next(): Promise<Batch | undefined>;
  /**
   * Evaluates expressions over the given rows. May be called only after `next` has returned
   * undefined.
   * @throws {DatabaseError}
   */
  evaluate(name: EvaluationName, given: Batch): Promise<Batch>;
  /**
   * Continues with the given part of a statement that has changes in WITH.
   *
   * @param returned The rows returned by the preceding part.
   */
  part(index: number, returned: Iterable<Batch>): Elsewhere;
}

/** The context in which a change is evaluated, and the other thread if there is one. */
export interface EvaluationPlace {
  readonly context: ExecutionContext;
  readonly elsewhere: Elsewhere | undefined;
}

/**
 * Runs an evaluation in this thread or in another thread.
 * @throws {DatabaseError}
 */
export function evaluated(
  { evaluate, holdsQuery, name }: Evaluation,
  given: Batch,
  { elsewhere, context }: EvaluationPlace,
): Batch | Promise<Batch> {
  return holdsQuery && elsewhere !== undefined
    ? elsewhere.evaluate(name, given)
    : evaluate(given, context);
}

/** Applies a function to a value immediately or, if the value is a promise, when it resolves. */
export function whenThere<T, U>(
  value: T | Promise<T>,
  goOn: (value: T) => U | Promise<U>,
): U | Promise<U> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
