/**
 * Binds assignments to part of a column: `SET a[2] = 5`, `SET a[1:2] = '{1,2}'`, `SET r.x = 1`,
 * `INSERT INTO t (a[1], r.x) …`.
 *
 * The path to a part consists of steps: array subscripts, the field of a row, the keys of a JSONB
 * value, or the position of a number or point in a geometric value. Several assignments to parts
 * of the same column are applied in sequence within one call, which produces a single new value
 * for the column.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type DataType,
  type GeometricKind,
  type GeometricType,
  INT,
  isGeometric,
  isRowValue,
  JSONB,
  TEXT,
  typeName,
  type Value,
} from "../../../types/mod.ts";
import { type SliceBounds, withElement, withSlice } from "../../functions/array_assign.ts";
import { elementAt } from "../../functions/base/array_shapes.ts";
import {
  coordinateAt,
  coordinateType,
  withCoordinate,
} from "../../functions/geometry/coordinates.ts";
import { withJsonPart } from "../../functions/json/json_assign.ts";
import type { Expr, FieldStep, PartStep, Subscript, TargetColumn } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";

/** A value that is assigned to part of a column, such as an array element. */
export interface PartAssignment {
  readonly column: TargetColumn;
  /** Returns the assigned value, cast to the type of the part. */
  readonly valueAs: (type: DataType) => BoundExpression;
}

/** Returns the value of a column after the assignments to its parts. */
export function withAssignedParts(
  before: BoundExpression,
  assignments: readonly PartAssignment[],
  context: ExpressionContext,
): BoundExpression {
  const args = [before];
  const parts = assignments.map(({ column, valueAs }) => {
    const path: PartPath = { args, steps: [], name: `column "${column.name}"`, context };
    const type = addSteps(path, before.type, column.part ?? []);
    return { steps: path.steps, valueAt: args.push(valueAs(type)) - 1 };
  });
  return {
    kind: "call",
    type: before.type,
    name: "assign parts",
    args,
    evaluate: (values) =>
      parts.reduce<Value>(
        (value, { steps, valueAt }) => withPart(value, steps, { values, valueAt }),
        values[0] ?? null,
      ),
    seesNull: true,
    volatility: "immutable",
  };
}

/** Refuses DEFAULT as the new value of part of a column. @throws {DatabaseError} INVALID_QUERY */
export function requireNoDefault({ name, part }: TargetColumn, value: Expr): void {
  if (part === undefined || value.type !== "default") return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot assign DEFAULT to part of column "${name}": only a whole column has a default`,
    { position: value._location.start, hint: "write a value, such as NULL" },
  );
}

/**
 * A bound step on the path to part of a column, such as an array element. Positions and keys are
 * stored as indexes into the list of arguments. A slice may lack a bound.
 */
type BoundStep =
  | { readonly kind: "field"; readonly at: number; readonly width: number }
  | { readonly kind: "element" | "member"; readonly places: readonly number[] }
  | { readonly kind: "coordinate"; readonly shape: GeometricKind; readonly place: number }
  | { readonly kind: "slice"; readonly bounds: readonly BoundsPlace[] };

interface BoundsPlace {
  readonly from: number | "one" | undefined;
  readonly to: number | undefined;
}

/** The path to part of a column, while its steps are being bound. */
interface PartPath {
  /** The column, followed by the positions and keys that the steps use. */
  readonly args: BoundExpression[];
  readonly steps: BoundStep[];
  /** The column or field to which the next step applies, for error messages. */
  name: string;
  readonly context: ExpressionContext;
}

/**
 * Binds the steps that lead from a value of type `whole` to one of its parts, and returns the type
 * of the part.
 */
function addSteps(path: PartPath, whole: DataType, steps: readonly PartStep[]): DataType {
  let type = whole;
  let rest = steps;
  for (let [step] = rest; step !== undefined; [step] = rest) {
    if (step.type === "field step") {
      type = addField(path, type, step);
      rest = rest.slice(1);
      continue;
    }
    const subscripts = leadingSubscripts(rest);
    rest = rest.slice(subscripts.length);
    type = addSubscripts(path, type, subscripts);
    const isSlice = path.steps.at(-1)?.kind === "slice";
    const [next] = rest;
    if (!isSlice || next === undefined) continue;
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to a field of a slice of ${path.name}: a slice is an array`,
      { position: next._location.start, hint: "assign to one element at a time" },
    );
  }
  return type;
}

function leadingSubscripts(steps: readonly PartStep[]): readonly Subscript[] {
  const subscripts: Subscript[] = [];
  for (const step of steps) {
    if (step.type === "field step") break;
    subscripts.push(step);
  }
  return subscripts;
}

function addField(path: PartPath, type: DataType, { name, _location }: FieldStep): DataType {
  if (type.kind !== "row") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to field "${name}" of ${path.name}: its type is ${typeName(type)}, but must be a row type`,
      { position: _location.start },
    );
  }
  const at = type.fields.findIndex((each) => each.name === name);
  const field = type.fields[at];
  if (field === undefined) {
    throw new DatabaseError(
      "COLUMN_NOT_FOUND",
      `Cannot find field "${name}" of ${path.name}: its fields are ${type.fields.map((each) => each.name).join(", ")}`,
      { position: _location.start },
    );
  }
  path.steps.push({ kind: "field", at, width: type.fields.length });
  path.name = `field "${name}"`;
  return field.type;
}

function addSubscripts(path: PartPath, type: DataType, subscripts: readonly Subscript[]): DataType {
  if (type.kind === "json" && type.binary) return addMember(path, subscripts);
  if (isGeometric(type)) return addCoordinate(path, type, subscripts);
  if (type.kind !== "array") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to part of ${path.name}: its type is ${typeName(type)}, but ` +
        "only arrays, JSONB values and geometric values with coordinates have parts",
      { position: subscripts[0]?._location.start },
    );
  }
  const placeOf = (node: Expr | undefined): number | undefined =>
    node === undefined ? undefined : path.args.push(position(node, path.context)) - 1;
  if (!subscripts.some((each) => each.type === "slice")) {
    path.steps.push({ kind: "element", places: subscripts.flatMap(({ to }) => placeOf(to) ?? []) });
    return type.element;
  }
  const bounds = subscripts.map(
    (each): BoundsPlace =>
      each.type === "index"
        ? { from: "one", to: placeOf(each.to) }
        : { from: placeOf(each.from), to: placeOf(each.to) },
  );
  path.steps.push({ kind: "slice", bounds });
  return type;
}

/** Binds the position of a number or point in a geometric value. */
function addCoordinate(
  path: PartPath,
  type: GeometricType,
  [subscript, second]: readonly Subscript[],
): DataType {
  const part = coordinateType(type);
  const node = subscript?.type === "index" ? subscript.to : undefined;
  if (part === undefined || node === undefined || second !== undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to part of ${path.name}: its type is ${typeName(type)}, ` +
        (part === undefined ? "which has no subscripts" : "which takes a single subscript"),
      { position: (second ?? subscript)?._location.start },
    );
  }
  const place = path.args.push(position(node, path.context)) - 1;
  path.steps.push({ kind: "coordinate", shape: type.kind, place });
  return part;
}

/** Binds the path to part of a JSONB value. Each step of the path is a string or an integer. */
function addMember(path: PartPath, subscripts: readonly Subscript[]): DataType {
  const places = subscripts.map(({ to: step, type, _location }) => {
    if (type === "slice" || step === undefined) {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        "Cannot assign to a slice of a JSONB value: only arrays have slices",
        {
          position: _location.start,
          hint: "assign one element at a time",
        },
      );
    }
    const bound = bindExpression(step, path.context);
    const isText = bound.type.kind === "text" || bound.type.kind === "unknown";
    const key = castTo(bound, { to: isText ? TEXT : INT, mode: "implicit", node: step });
    return path.args.push(key) - 1;
  });
  path.steps.push({ kind: "member", places });
  return JSONB;
}

function position(node: Expr, context: ExpressionContext): BoundExpression {
  const index = bindExpression(node, context);
  const mode = index.type.kind === "unknown" ? "implicit" : "assignment";
  return castTo(index, { to: INT, mode, node });
}

interface PartValues {
  /** The evaluated arguments of an assignment to part of a column. */
  readonly values: readonly Value[];
  /** The index of the assigned value in `values`. */
  readonly valueAt: number;
}

/** Replaces the part of `before` to which the steps lead, and returns the new whole value. */
function withPart(
  before: Value,
  [step, ...others]: readonly BoundStep[],
  given: PartValues,
): Value {
  const valueOf = (place: number): Value => given.values[place] ?? null;
  if (step === undefined) return valueOf(given.valueAt);
  switch (step.kind) {
    case "field": {
      const cells = before !== null && isRowValue(before) ? [...before.cells] : nulls(step.width);
      cells[step.at] = withPart(cells[step.at] ?? null, others, given);
      return { cells };
    }
    case "element": {
      const positions = step.places.map(valueOf);
      const element = others.length === 0 ? null : elementAt(before, positions);
      return withElement(before, positions, withPart(element, others, given));
    }
    case "coordinate":
      return withCoordinate(step.shape, before, {
        part: withPart(coordinateOf(step, before, given), others, given),
        position: valueOf(step.place),
      });
    case "member":
      return withJsonPart(before, step.places.map(valueOf), valueOf(given.valueAt));
    case "slice": {
      const bounds = step.bounds.map(
        ({ from, to }): SliceBounds => ({
          from: from === "one" ? 1 : from === undefined ? undefined : valueOf(from),
          to: to === undefined ? undefined : valueOf(to),
        }),
      );
      return withSlice(before, bounds, valueOf(given.valueAt));
    }
  }
}

/** Returns the part of a geometric value that a step selects; NULL if there is none. */
function coordinateOf(
  { place, shape }: Extract<BoundStep, { kind: "coordinate" }>,
  before: Value,
  { values }: PartValues,
): Value {
  const type = coordinateType({ kind: shape });
  const at = values[place] ?? null;
  return type === undefined || before === null || at === null
    ? null
    : coordinateAt(type, before, Number(at));
}

function nulls(width: number): Value[] {
  return Array.from({ length: width }, () => null);
}
