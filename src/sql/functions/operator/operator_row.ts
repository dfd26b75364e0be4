/**
 * Defines the operators that compare the stored forms of rows: `*=`, `*<` and so on. They accept
 * fields of any type, even of one without an order, such as POINT. Two rows may be equal by `=` and
 * have different forms: 1.0 and 1.00.
 *
 * As in PostgreSQL, the order is fixed and has no meaning: negative integers come after all others.
 * Values other than integers are ordered by their text.
 */
import {
  BOOLEAN,
  compareCodePoints,
  type DataType,
  type RowValue,
  textFromValue,
  type Value,
  type Whole,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, knownType } from "../base/operator_form.ts";

const TESTS: ReadonlyMap<string, (order: number) => boolean> = new Map([
  ["*=", (order: number) => order === 0],
  ["*<>", (order: number) => order !== 0],
  ["*<", (order: number) => order < 0],
  ["*<=", (order: number) => order <= 0],
  ["*>", (order: number) => order > 0],
  ["*>=", (order: number) => order >= 0],
]);

export function resolveRow(op: string, left: DataType, right: DataType): OperatorForm | undefined {
  const test = TESTS.get(op);
  if (test === undefined) return undefined;
  const [l, r] = [knownType(left, right), knownType(right, left)];
  if (l.kind !== "row" || r.kind !== "row" || l.fields.length !== r.fields.length) return undefined;
  const areAlike = l.fields.every(({ type }, at) => type.kind === r.fields[at]?.type.kind);
  if (!areAlike) return undefined;
  return binaryForm([l, r], BOOLEAN, (a, b) => test(compareForms([l, a], [r, b])));
}

type TypedRow = readonly [type: DataType & { kind: "row" }, row: Value];

/** Compares rows field by field. NULLs equal one another, and come after all values. */
function compareForms([leftType, left]: TypedRow, [rightType, right]: TypedRow): number {
  const others = (right as RowValue).cells;
  for (const [at, value] of (left as RowValue).cells.entries()) {
    const other = others[at] ?? null;
    const types = [leftType.fields[at]?.type, rightType.fields[at]?.type] as const;
    const order =
      value === null || other === null
        ? Number(value === null) - Number(other === null)
        : compareForm(types, value, other);
    if (order !== 0) return order;
  }
  return 0;
}

type FieldTypes = readonly [left: DataType | undefined, right: DataType | undefined];

function compareForm([type, otherType]: FieldTypes, value: Value, other: Value): number {
  if (type === undefined || otherType === undefined) return 0;
  switch (type.kind) {
    case "smallint":
    case "int":
    case "bigint": {
      const [a, b] = [unsigned(value as Whole), unsigned(other as Whole)];
      return a < b ? -1 : Number(a > b);
    }
    default:
      return compareCodePoints(textFromValue(type, value), textFromValue(otherType, other));
  }
}

function unsigned(value: Whole): bigint {
  return BigInt.asUintN(64, BigInt(value));
}
