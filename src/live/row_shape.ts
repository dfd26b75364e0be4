/**
 * What the rows of a live query look like on the wire: names, and how each value becomes a cell.
 *
 * Shapes are shared by all queries that have the same one. A thousand users who follow their own
 * rows have a plan each, and a change that meets one of them would find its parts in no cache of
 * the processor.
 *
 * Invariant: a shape says nothing of a plan but its fields, so sharing it shares no right and no
 * value.
 */
import { assert, defined } from "../base/assert.ts";
import type { Cell } from "../protocol/mod.ts";
import type { CompiledExpression, LivePlan } from "../sql/mod.ts";
import {
  type Batch,
  cellMakerFor,
  type DataType,
  textsOf,
  type Value,
  type Vector,
  valueAt,
} from "../types/mod.ts";

export type MutableRow = Record<string, Cell>;

type Projections = readonly CompiledExpression[];

export interface Field {
  readonly name: string;
  /** Values of numbers, texts and booleans are their own cells. */
  readonly isPlain: boolean;
  readonly toCell: (value: Value) => unknown;
  /** Which column of the batch it is, where it is no more than that; else -1. */
  readonly column: number;
}

/** Types whose values are cells as they are, but for whole numbers beyond 2^53. */
const PLAIN_KINDS: ReadonlySet<DataType["kind"]> = new Set([
  "boolean",
  "smallint",
  "int",
  "bigint",
  "double",
  "text",
  "timestamp",
  "datetime",
  "date",
  "time",
  "uuid",
]);

/** Whole numbers stay bigint beyond 2^53: JSON makes text of them, MessagePack an int64. */
const WHOLE_KINDS: ReadonlySet<DataType["kind"]> = new Set(["bigint", "timestamp", "datetime"]);

/** Shapes to be shared with queries to come; one that was forgotten is made again. */
const SHAPES_MAX = 256;

const shapes = new Map<string, RowShape>();

/** The shape of a plan's rows: the same object for the same shape. */
export function rowShapeOf(plan: LivePlan): RowShape {
  const { fields, fieldTypes, projections, seqFieldIndex } = plan;
  assert(fields.length === projections.length, "every field has a projection");
  const parts = fields.map(({ name }, index) => {
    return [name, fieldTypes[index], projections[index]?.column ?? -1] as const;
  });
  const key = JSON.stringify([seqFieldIndex, parts]);
  let shape = shapes.get(key);
  if (shape === undefined) {
    const made = parts.map(([name, type, column]): Field => {
      const known = defined(type, "every field has a type");
      const toCell = WHOLE_KINDS.has(known.kind) ? unchanged : cellMakerFor(known);
      return { name, isPlain: PLAIN_KINDS.has(known.kind), toCell, column };
    });
    shape = new RowShape(made, seqFieldIndex);
    const [oldest] = shapes.keys();
    if (shapes.size >= SHAPES_MAX && oldest !== undefined) shapes.delete(oldest);
    shapes.set(key, shape);
  }
  return shape;
}

/** Rows as columns: the values of each field. */
export interface ShapedRows {
  readonly rowCount: number;
  readonly columns: readonly Vector[];
}

export class RowShape {
  readonly seqName: string;
  /** Whether every field is no more than a column, so that nothing has to be computed. */
  readonly isStored: boolean;
  readonly #fields: readonly Field[];

  constructor(fields: readonly Field[], seqFieldIndex: number) {
    this.#fields = fields;
    this.isStored = fields.every(({ column }) => column >= 0);
    this.seqName = defined(fields[seqFieldIndex], "_seq is a field").name;
  }

  get fields(): readonly Field[] {
    return this.#fields;
  }

  get fieldCount(): number {
    return this.#fields.length;
  }

  nameOf(index: number): string {
    return defined(this.#fields[index], "every index has a field").name;
  }

  /** The wire rows of a batch. @param projections Of a plan of this shape. */
  rows(batch: Batch, projections: Projections): MutableRow[] {
    return batch.rowCount === 0 ? [] : this.rowsOf(this.shaped(batch, projections));
  }

  /** The values of the fields in a batch, which they may alias. */
  shaped(batch: Batch, projections: Projections): ShapedRows {
    const { rowCount } = batch;
    const columns = this.#fields.map((field, index) => {
      const values = valuesOf(field, { batch, index, projections });
      assert(values.length === rowCount, "a projection gives one value a row");
      return values;
    });
    return { rowCount, columns };
  }

  rowsOf({ columns, rowCount }: ShapedRows): MutableRow[] {
    const rows: MutableRow[] = [];
    for (let i = 0; i < rowCount; i += 1) rows.push({});
    for (let index = 0; index < columns.length; index += 1) {
      const field = this.#fields[index];
      const values = columns[index];
      assert(field !== undefined && values !== undefined, "a shape has no hole");
      fillField(rows, field, values);
    }
    return rows;
  }

  /** The wire row of a batch of one. */
  row(batch: Batch, projections: Projections): MutableRow {
    const row: MutableRow = {};
    for (let index = 0; index < this.#fields.length; index += 1) {
      const field = this.#fields[index];
      assert(field !== undefined, "a shape has no hole");
      const values = valuesOf(field, { batch, index, projections });
      setCell(row, field.name, cellOf(field, valueAt(values, 0)));
    }
    return row;
  }
}

/** Sets a cell, whatever the column is called. */
export function setCell<T>(row: Record<string, T>, name: string, cell: NoInfer<T>): void {
  if (name !== "__proto__") row[name] = cell;
  else {
    const attributes = { writable: true, enumerable: true, configurable: true };
    Object.defineProperty(row, name, { value: cell, ...attributes });
  }
}

function unchanged(value: Value): unknown {
  return value;
}

function valuesOf(
  { column }: Field,
  { batch, index, projections }: { batch: Batch; index: number; projections: Projections },
): Vector {
  if (column < 0) {
    const projection = projections[index];
    assert(projection !== undefined, "every field has a projection");
    return projection.evaluate(batch);
  }
  const values = batch.columns[column];
  assert(values !== undefined, "a batch holds the columns that the plan reads");
  return values;
}

/** Gives every row its cell of one field. */
function fillField(rows: MutableRow[], field: Field, values: Vector): void {
  const { name, isPlain } = field;
  // The prototype setter would take the value; defining it first makes it a property like others.
  if (name === "__proto__") for (const row of rows) setCell(row, name, null);
  if (values.kind === "const") {
    const cell = cellOf(field, values.value);
    for (const row of rows) row[name] = cell;
  } else if (isPlain && (values.kind === "f64" || values.kind === "i32")) {
    const { values: numbers, nulls } = values;
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i];
      const isNull = nulls !== undefined && nulls[i] === 1;
      if (row !== undefined) row[name] = isNull ? null : (numbers[i] ?? null);
    }
  } else if (isPlain && values.kind === "utf8") {
    fillTexts(rows, name, textsOf(values));
  } else {
    for (let i = 0; i < rows.length; i += 1) {
      const row = rows[i];
      if (row !== undefined) row[name] = cellOf(field, valueAt(values, i));
    }
  }
}

function fillTexts(rows: MutableRow[], name: string, texts: readonly (string | null)[]): void {
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i];
    if (row !== undefined) row[name] = texts[i] ?? null;
  }
}

export function cellOf({ isPlain, toCell }: Field, value: Value): Cell {
  if (value === null) return null;
  if (isPlain && typeof value !== "object" && typeof value !== "bigint") return value;
  return toCell(value) as Cell;
}
