/**
 * Defines the tuples of a join, from which its changes are computed. A tuple is a single list of
 * values for a combination of source rows.
 *
 *     | columns of source 0 … _seq | columns of source 1 … _seq | … | computed columns
 *
 * Only columns that the query reads have a position. The `_seq` of a source distinguishes the
 * versions of its rows. Invariant: if the row of a source is not known yet or does not exist, its
 * values are NULL.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_COLUMN_ID } from "../../storage/mod.ts";
import {
  type Batch,
  BIGINT,
  constVector,
  type DataType,
  type Row,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnIdsIn, conjunctionOf } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileCondition } from "../execute/evaluate/condition.ts";
import { compileExpression } from "../execute/evaluate/expression.ts";
import { type BatchLayout, positionsOf } from "../execute/evaluate/layout.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { JoinShape, Source } from "./join_shape.ts";

/** The positions of a source's columns in a tuple. */
export interface SourcePlace {
  readonly source: Source;
  /** The columns to read, the last of which is `_seq`. */
  readonly columnIds: readonly number[];
  /** The position of the source's first column in a tuple. */
  readonly start: number;
  readonly seqPosition: number;
}

/** Returns the indexes of the tuples that satisfy a condition. */
export type TupleFilter = (tuples: readonly Row[]) => readonly number[];

/**
 * Evaluates several compiled expressions, and returns a row of values for each tuple. The context
 * is needed only if an expression contains a query.
 */
export type TupleRows = (tuples: readonly Row[], context?: ExecutionContext) => readonly Row[];

/** Evaluates a compiled expression, and returns a value for each tuple. */
type TupleColumn = (tuples: readonly Row[], context: ExecutionContext) => readonly Value[];

/** Compiles expressions over tuples, in which each column has a fixed position. */
export class TuplePlaces {
  readonly layout: BatchLayout;
  readonly #types: readonly DataType[];
  readonly #context: ExecutionContext;

  constructor(layout: BatchLayout, types: readonly DataType[], context: ExecutionContext) {
    this.layout = layout;
    this.#types = types;
    this.#context = context;
  }

  get width(): number {
    return this.#types.length;
  }

  filter(conditions: readonly BoundExpression[]): TupleFilter {
    const condition = conjunctionOf(conditions);
    if (condition === undefined) return (tuples) => tuples.map((_, index) => index);
    const positions = positionsOf(condition, this.layout);
    const select = compileCondition(condition, this.layout);
    return (tuples) => {
      if (tuples.length === 0) return [];
      const batch = this.#batch(tuples, positions);
      this.#context.effort.beginRows();
      const { count, rows } = select(batch, this.#context, new Uint32Array(tuples.length));
      return Array.from(rows.subarray(0, count));
    };
  }

  /** Compiles expressions. The compiled function returns a row of values for each tuple. */
  rows(expressions: readonly BoundExpression[]): TupleRows {
    const parts = expressions.map((expression): number | TupleColumn => {
      const at = expression.kind === "column" ? this.layout.get(expression.column.id) : undefined;
      // A bare column is read directly, without building a vector.
      return at ?? this.#column(expression);
    });
    return (tuples, context = this.#context) => {
      const rows = tuples.map((): Value[] => []);
      for (const part of parts) {
        const values = typeof part === "number" ? undefined : part(tuples, context);
        for (let index = 0; index < rows.length; index += 1) {
          const value = typeof part === "number" ? tuples[index]?.[part] : values?.[index];
          rows[index]?.push(value ?? null);
        }
      }
      return rows;
    };
  }

  #column(expression: BoundExpression): TupleColumn {
    const positions = positionsOf(expression, this.layout);
    const evaluate = compileExpression(expression, this.layout);
    return (tuples, context) => {
      if (tuples.length === 0) return [];
      context.effort.beginRows();
      return valuesOf(evaluate(this.#batch(tuples, positions), context));
    };
  }

  #batch(tuples: readonly Row[], positions: ReadonlySet<number>): Batch {
    const columns: Vector[] = Array.from({ length: this.width }, () => UNREAD);
    for (const position of positions) {
      const type = defined(
        this.#types[position],
        "maintained query: place in the tuple has no type",
      );
      const values = tuples.map((tuple) => tuple[position] ?? null);
      columns[position] = vectorFromValues(type, values);
    }
    return { rowCount: tuples.length, columns };
  }
}

/**
 * Evaluates expressions for the tuples of one partition. They are evaluated once for all
 * partitions of a step.
 */
export function rowsInStep(
  { places = [], step, tuples }: JoinChanges,
  program: TupleRows,
): readonly Row[] {
  if (step === undefined) return program(tuples);
  let rows = step.computed.get(program);
  if (rows === undefined) {
    rows = rowsOrFailed(step.tuples, program);
    step.computed.set(program, rows);
  }
  // If an expression fails for any tuple of the step, each partition evaluates only its own
  // tuples, so that only the partitions with the failing tuple report the error.
  return rows === "failed" ? program(tuples) : chosen(rows, places);
}

function rowsOrFailed(tuples: readonly Row[], program: TupleRows): readonly Row[] | "failed" {
  try {
    return program(tuples);
  } catch (error) {
    if (error instanceof DatabaseError) return "failed";
    throw error;
  }
}

/** The placeholder for a column that an expression does not read. */
const UNREAD: Vector = constVector(null, 0);

/** The layout of the tuples of a join. */
export interface TupleSpace {
  readonly places: TuplePlaces;
  readonly sources: readonly SourcePlace[];
}

/** Assigns a position to each column that the expressions read, and to each computed column. */
export function tupleSpaceOf(
  { computed, sources }: Pick<JoinShape, "computed" | "sources">,
  expressions: Iterable<BoundExpression>,
  context: ExecutionContext,
): TupleSpace {
  const used = new Set<number>();
  for (const expression of expressions) columnIdsIn(expression, used);
  const layout = new Map<number, number>();
  const types: DataType[] = [];
  const places = sources.map((source): SourcePlace => {
    const start = types.length;
    const columnIds: number[] = [];
    const seqs: number[] = [];
    for (const { id, origin, type } of source.columns) {
      if (!used.has(id)) continue;
      const { columnId } = defined(origin, "maintained query: table column has no stored column");
      if (columnId === SEQ_COLUMN_ID) {
        seqs.push(id);
        continue;
      }
      layout.set(id, types.length);
      types.push(type);
      columnIds.push(columnId);
    }
    const seqPosition = types.length;
    for (const id of seqs) layout.set(id, seqPosition);
    types.push(BIGINT);
    return { source, columnIds: [...columnIds, SEQ_COLUMN_ID], start, seqPosition };
  });
  for (const { id, type } of computed) {
    layout.set(id, types.length);
    types.push(type);
  }
  return { places: new TuplePlaces(layout, types, context), sources: places };
}

/** Returns the elements at the given indexes, which ascend. */
export function chosen<Each>(all: readonly Each[], indexes: readonly number[]): readonly Each[] {
  if (indexes.length === all.length) return all;
  return indexes.map((index) => defined(all[index], "maintained query: index is outside the list"));
}
