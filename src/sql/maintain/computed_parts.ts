/**
 * Evaluates the parts of a join that run a query for each row: LATERAL, and queries in
 * expressions.
 *
 *     rows of the preceding parts ──outer values──► query at a seq ──► rows with its columns
 *
 * A change to a table in such a query leads back to the rows for which its result may differ. For
 * these rows, the query runs both at the seq before the change and at the seq after it.
 */
import { defined } from "../../base/assert.ts";
import type { Row } from "../../types/mod.ts";
import type { BoundColumn } from "../bind/bound_expressions.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import type { ComputedPart, LateralPart, ValuePart } from "./join_shape.ts";
import { CannotFollow } from "./not_maintained.ts";
import { QueryAt } from "./query_at.ts";
import { textOfRow } from "./row_text.ts";
import { chosen, type TuplePlaces } from "./tuple_space.ts";

/**
 * Extends tuples with the columns that a computed part adds.
 * @throws {CannotFollow}
 * @throws {DatabaseError}
 */
export type RowStep = (tuples: readonly Row[], context: ExecutionContext) => readonly Row[];

/** The maximum number of rows that a LATERAL part may produce in one step. */
const TUPLES_MAX = 20_000;

export function rowStepOf(part: ComputedPart, places: TuplePlaces): RowStep {
  return part.kind === "lateral" ? lateralStep(part, places) : valueStep(part, places);
}

function valueStep({ columns, value }: ValuePart, places: TuplePlaces): RowStep {
  const valueOf = places.rows([value]);
  const [position = -1] = positionsOf(columns, places);
  return (tuples, context) => {
    const values = valueOf(tuples, context);
    return tuples.map((tuple, index) => tuple.with(position, values[index]?.[0] ?? null));
  };
}

function lateralStep(
  { columns, isOuter, on, outer, query }: LateralPart,
  places: TuplePlaces,
): RowStep {
  const outerOf = places.rows(outer.map(({ value }) => value));
  const filter = places.filter(on);
  const positions = positionsOf(columns, places);
  const program = new QueryAt(query);
  return (tuples, context) => {
    const outerRows = outerOf(tuples);
    const known = new Map<string, readonly Row[]>();
    const made: Row[] = [];
    const parents: number[] = [];
    for (const [index, tuple] of tuples.entries()) {
      const values = outerRows[index] ?? [];
      const text = textOfRow(values);
      const ids = outer.map(({ id }, at) => [id, values[at] ?? null] as const);
      const rows = known.get(text) ?? program.rows(context, new Map(ids));
      known.set(text, rows);
      for (const row of rows) {
        const longer = [...tuple];
        for (const [at, position] of positions.entries()) longer[position] = row[at] ?? null;
        made.push(longer);
        parents.push(index);
      }
      if (made.length > TUPLES_MAX) throw new CannotFollow();
    }
    const kept = filter(made);
    const rows = chosen(made, kept);
    if (!isOuter) return rows;
    const matched = new Set(chosen(parents, kept));
    return [...rows, ...tuples.filter((_, index) => !matched.has(index))];
  };
}

function positionsOf(columns: readonly BoundColumn[], { layout }: TuplePlaces): readonly number[] {
  return columns.map(({ id }) =>
    defined(layout.get(id), "maintained query: computed column has no place in the tuple"),
  );
}
