/**
 * Describes the rows of a live query on the wire: the field names, and how each value becomes a
 * cell.
 *
 * Queries with equal shapes share one object. If there were a separate shape for each of a
 * thousand users who follow their own rows, the shape needed for a change would rarely be in the
 * processor cache.
 *
 * Invariant: a shape contains only the fields of a plan, so queries that share a shape share
 * neither rights nor values.
 */
import { assert, defined } from "../../base/assert.ts";
import type { WireCell } from "../../protocol/mod.ts";
import type { CompiledExpression, LivePlan } from "../../sql/mod.ts";
import {
  areFinite,
  type Batch,
  type DataType,
  type EnumType,
  exactCellMakerFor,
  textsOf,
  type Value,
  type Vector,
  valueAt,
} from "../../types/mod.ts";

export type MutableRow = Record<string, WireCell>;

type Projections = readonly CompiledExpression[];

export interface ShapeField {
  readonly name: string;
  /** Whether numbers, strings and booleans become cells without conversion. */
  readonly isPlain: boolean;
  readonly toCell: (value: Value) => unknown;
  /** The index of the batch column that the field copies; -1 if the field is computed. */
  readonly column: number;
}

/**
 * The types whose values become cells without conversion, except for integers beyond 2^53. Dates
 * are not among them: a date may be infinite, and infinity is a string on the wire.
 */
const PLAIN_KINDS: ReadonlySet<DataType["kind"]> = new Set([
  "boolean",
  "smallint",
  "int",
  "bigint",
  "double",
  "text",
  "timestamp",
  "datetime",
  "time",
  "uuid",
]);

/**
 * The maximum number of shapes kept for sharing. A shape dropped from the cache is built again
 * when it is needed.
 */
const SHAPES_MAX = 256;

const shapes = new Map<string, WireRowShape>();

const enumNumbers = new WeakMap<EnumType, number>();
let enumCount = 0;

/**
 * Returns a number that identifies an enum type within this process. The type's id does not
 * suffice, because types in two databases may have the same id.
 */
function enumNumberOf(type: EnumType): number {
  let number = enumNumbers.get(type);
  if (number === undefined) {
    enumCount += 1;
    number = enumCount;
    enumNumbers.set(type, number);
  }
  return number;
}

/** Returns the shape of a plan's rows. Equal shapes are always the same object. */
export function rowShapeOf(plan: LivePlan): WireRowShape {
  const { fields, fieldTypes, projections, seqFieldIndex } = plan;
  assert(
    fields.length === projections.length,
    "row shape: number of projections differs from the number of fields",
  );
  const parts = fields.map(({ name }, index) => {
    return [name, fieldTypes[index], projections[index]?.column ?? -1] as const;
  });
  const key = JSON.stringify([seqFieldIndex, parts], (name, value: unknown) =>
    name === "enumType" ? enumNumberOf(value as EnumType) : value,
  );
  let shape = shapes.get(key);
  if (shape === undefined) {
    const made = parts.map(([name, type, column]): ShapeField => {
      const known = defined(type, "row shape: field has no type");
      // Integers beyond 2^53 are represented as text in JSON, and as int64 in MessagePack.
      const toCell = exactCellMakerFor(known);
      return { name, isPlain: PLAIN_KINDS.has(known.kind), toCell, column };
    });
    shape = new WireRowShape(made, seqFieldIndex);
    const [oldest] = shapes.keys();
    if (shapes.size >= SHAPES_MAX && oldest !== undefined) shapes.delete(oldest);
    shapes.set(key, shape);
  }
  return shape;
}

/** Rows in columnar form: the values of each field. */
export interface ShapedRows {
  readonly rowCount: number;
  readonly columns: readonly Vector[];
}

export class WireRowShape {
  readonly seqName: string;
  /** Whether every field is a stored column. If so, nothing has to be computed. */
  readonly isStored: boolean;
  readonly #fields: readonly ShapeField[];

  constructor(fields: readonly ShapeField[], seqFieldIndex: number) {
    this.#fields = fields;
    this.isStored = fields.every(({ column }) => column >= 0);
    this.seqName = defined(fields[seqFieldIndex], "row shape: field _seq is missing").name;
  }

  get fields(): readonly ShapeField[] {
    return this.#fields;
  }

  get fieldCount(): number {
    return this.#fields.length;
  }

  nameOf(index: number): string {
    return defined(this.#fields[index], "row shape: no field at this index").name;
  }

  /**
   * Returns the wire rows of a batch.
   *
   * @param projections The projections of a plan with this shape.
   */
  rows(batch: Batch, projections: Projections): MutableRow[] {
    return batch.rowCount === 0 ? [] : this.rowsOf(this.shaped(batch, projections));
  }

  /** Returns the values of the fields, which may alias the batch. */
  shaped(batch: Batch, projections: Projections): ShapedRows {
    const { rowCount } = batch;
    const columns = this.#fields.map((field, index) => {
      const values = valuesOf(field, { batch, index, projections });
      assert(
        values.length === rowCount,
        "row shape: projection returned the wrong number of values",
      );
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
      assert(field !== undefined && values !== undefined, "row shape: field has no column");
      fillField(rows, field, values);
    }
    return rows;
  }

  /** Returns the wire row for a batch that consists of a single row. */
  row(batch: Batch, projections: Projections): MutableRow {
    const row: MutableRow = {};
    for (let index = 0; index < this.#fields.length; index += 1) {
      const field = this.#fields[index];
      assert(field !== undefined, "row shape: field has no column");
      const values = valuesOf(field, { batch, index, projections });
      setCell(row, field.name, cellOf(field, valueAt(values, 0)));
    }
    return row;
  }
}

/** Sets a cell under any column name, even `__proto__`. */
export function setCell<T>(row: Record<string, T>, name: string, cell: NoInfer<T>): void {
  if (name !== "__proto__") row[name] = cell;
  else {
    const attributes = { writable: true, enumerable: true, configurable: true };
    Object.defineProperty(row, name, { value: cell, ...attributes });
  }
}

function valuesOf(
  { column }: ShapeField,
  { batch, index, projections }: { batch: Batch; index: number; projections: Projections },
): Vector {
  if (column < 0) {
    const projection = projections[index];
    assert(projection !== undefined, "row shape: field has no projection");
    return projection.evaluate(batch);
  }
  const values = batch.columns[column];
  assert(values !== undefined, "row shape: batch lacks a column that the plan reads");
  return values;
}

/** Sets the cell of one field in every row. */
function fillField(rows: MutableRow[], field: ShapeField, values: Vector): void {
  const { name, isPlain } = field;
  // Assigning to `__proto__` would call the prototype setter. Once it has been defined as an own
  // property, assignments to it work as usual.
  if (name === "__proto__") for (const row of rows) setCell(row, name, null);
  if (values.kind === "const") {
    const cell = cellOf(field, values.value);
    for (const row of rows) row[name] = cell;
  } else if (
    isPlain &&
    (values.kind === "i32" || (values.kind === "f64" && areFinite(values.values)))
  ) {
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

/** Returns whether a value is NaN or an infinity. These are strings on the wire. */
function isSpecial(value: Value): boolean {
  return typeof value === "number" && !Number.isFinite(value);
}

export function cellOf({ isPlain, toCell }: ShapeField, value: Value): WireCell {
  if (value === null) return null;
  if (isPlain && typeof value !== "object" && typeof value !== "bigint" && !isSpecial(value)) {
    return value;
  }
  return toCell(value) as WireCell;
}
