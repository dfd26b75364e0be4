/**
 * Verifies that rows of the same shape share one row encoder and others do not, and that a single
 * row is encoded exactly like one among many.
 */
import { expect, test } from "bun:test";
import { rowShapeOf } from "../../../src/live/mod.ts";
import type { CompiledExpression, LivePlan } from "../../../src/sql/mod.ts";
import {
  type Batch,
  type DataType,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../../src/types/mod.ts";

interface FieldOf {
  readonly name: string;
  readonly type: DataType;
  /**
   * The index of a column in the batch, or a function that computes the value from the first
   * column.
   */
  readonly from: number | ((value: Value) => Value);
}

const BIGINT: DataType = { kind: "bigint" };
const TEXT: DataType = { kind: "text" };
const SEQ: FieldOf = { name: "_seq", type: BIGINT, from: 0 };

function planOf(fields: readonly FieldOf[], owner = 1): LivePlan {
  return {
    tableId: 1,
    tableName: "app.t",
    owner,
    schemaVersion: 1,
    columnIds: [],
    filter: undefined,
    projections: fields.map(({ from, type }) => projectionOf(type, from)),
    pace: undefined,
    fields: fields.map(({ name }, index) => ({ name, data_type: "BigInt", index })),
    fieldTypes: fields.map(({ type }) => type),
    keyFieldIndexes: [],
    seqFieldIndex: fields.findIndex(({ name }) => name === "_seq"),
    fingerprint: `of ${owner}`,
    equality: undefined,
    hasStar: false,
    isExpiry: undefined,
    claimsKey: undefined,
    namedColumns: [],
    mayRead: () => true,
  };
}

function projectionOf(type: DataType, from: FieldOf["from"]): CompiledExpression {
  if (typeof from !== "number") {
    return {
      type,
      evaluate: ({ columns: [first], rowCount }) => {
        const values = Array.from({ length: rowCount }, (_, row) =>
          from(first === undefined ? null : valueAt(first, row)),
        );
        return vectorFromValues(type, values);
      },
    };
  }
  const evaluate = (): never => {
    throw new Error("a plain column is found by its position");
  };
  return { type, column: from, evaluate };
}

function batchOf(...columns: readonly (readonly [DataType, readonly Value[]])[]): Batch {
  const rowCount = columns[0]?.[1].length ?? 0;
  return { rowCount, columns: columns.map(([type, values]) => vectorFromValues(type, values)) };
}

test("rowShapeOf shares a shape between owners, but never between different fields", () => {
  const name: FieldOf = { name: "name", type: TEXT, from: 1 };
  const shape = rowShapeOf(planOf([SEQ, name], 1));
  expect(rowShapeOf(planOf([SEQ, name], 2))).toBe(shape);
  const others = [
    [SEQ],
    [name, SEQ],
    [SEQ, { ...name, name: "nom" }],
    [SEQ, { ...name, type: { kind: "decimal", precision: 9, scale: 2 } as const }],
    [SEQ, { ...name, from: 2 }],
    [SEQ, { ...name, from: (): Value => null }],
  ];
  for (const fields of others) expect(rowShapeOf(planOf(fields))).not.toBe(shape);
});

test("a single row looks the same as among many, whatever its fields are", () => {
  const fields: FieldOf[] = [
    SEQ,
    { name: "__proto__", type: TEXT, from: 1 },
    { name: "price", type: { kind: "decimal", precision: 9, scale: 2 }, from: 2 },
    { name: "next", type: BIGINT, from: (value) => (typeof value === "number" ? value + 1 : null) },
    { name: "big", type: BIGINT, from: 3 },
    { name: "bytes", type: { kind: "bytes" }, from: 4 },
  ];
  const columns: [DataType, Value[]][] = [
    [BIGINT, [7, 8, 9]],
    [TEXT, ["a", null, "é"]],
    [{ kind: "decimal", precision: 9, scale: 2 }, [-5, 0, 123_456]],
    [BIGINT, [2n ** 60n, 5, null]],
    [{ kind: "bytes" }, [new Uint8Array([1, 2]), null, new Uint8Array()]],
  ];
  const plan = planOf(fields);
  const shape = rowShapeOf(plan);
  const all = shape.rows(batchOf(...columns), plan.projections);
  expect(all.map((row) => Object.entries(row))).toEqual([
    [
      ["_seq", 7],
      ["__proto__", "a"],
      ["price", "-0.05"],
      ["next", 8],
      ["big", 2n ** 60n],
      ["bytes", [1, 2]],
    ],
    [
      ["_seq", 8],
      ["__proto__", null],
      ["price", "0.00"],
      ["next", 9],
      ["big", 5],
      ["bytes", null],
    ],
    [
      ["_seq", 9],
      ["__proto__", "é"],
      ["price", "1234.56"],
      ["next", 10],
      ["big", null],
      ["bytes", []],
    ],
  ]);
  for (const [index, row] of all.entries()) {
    const one = columns.map(([type, values]): [DataType, Value[]] => [
      type,
      values.slice(index, index + 1),
    ]);
    const alone = shape.row(batchOf(...one), plan.projections);
    expect(Object.entries(alone)).toEqual(Object.entries(row));
  }
});
