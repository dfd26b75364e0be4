/**
 * Binds whole rows: `ROW(a, b)`, `t.*` in a call, and the alias of a table if no column has that
 * name. Only count, IS NULL and functions that build JSON accept whole rows.
 *
 * A row never becomes a value: where it is used, it is written as the JSON text of its fields. On
 * the nullable side of an outer join, the row may be missing. A missing row is NULL, whereas a row
 * of NULLs is not.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, JSON_ROW, TEXT, type Value } from "../../../types/mod.ts";
import { jsonTextOf } from "../../functions/json/json_build.ts";
import type { Expr, ExprCall, ExprList, ExprRef } from "../../parse/ast/ast.ts";
import {
  type Bind,
  type ExpressionContext,
  type StatementBinding,
  unknownFunction,
} from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue, selectFrom } from "../bound_nodes.ts";
import type { RelationNode, Scope, ScopeRelation } from "../scope.ts";
import { castTo } from "./casts.ts";

/** A row and its fields, in order. */
export interface RowValue {
  readonly fields: readonly { readonly name: string; readonly value: BoundExpression }[];
  /** An expression that is NULL only if the row is missing; undefined if there always is a row. */
  readonly presence: BoundExpression | undefined;
}

const TAKING_ROWS: ReadonlySet<string> = new Set([
  "row_to_json",
  "to_json",
  "to_jsonb",
  "json_build_array",
  "jsonb_build_array",
  "json_build_object",
  "jsonb_build_object",
  "json_agg",
  "jsonb_agg",
  "json_object_agg",
  "jsonb_object_agg",
]);

/** Whether a function accepts rows and reads them as JSON. */
export function takesRows(name: string): boolean {
  return TAKING_ROWS.has(name);
}

/** Returns the row that an expression denotes, or undefined if it is a value. */
export function bindRow(node: Expr, context: ExpressionContext, bind: Bind): RowValue | undefined {
  if (node.type === "list") return rowOfList(node, context, bind);
  if (node.type !== "ref") return undefined;
  if (node.star !== true && (node.table !== undefined || isColumn(node, context))) return undefined;
  return namedRow(node, context);
}

/** Binds an argument of a function that accepts rows. */
export function bindWithRows(node: Expr, context: ExpressionContext, bind: Bind): BoundExpression {
  const row = bindRow(node, context, bind);
  return row === undefined ? bind(node, context) : jsonOfRow(row);
}

/** `row_to_json(row [, pretty])`. @throws {DatabaseError} FUNCTION_NOT_FOUND */
export function bindRowToJson(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const [first, second] = call.args;
  const row = first === undefined ? undefined : bindRow(first, context, bind);
  if (row === undefined || call.args.length > 2) {
    const types = call.args.map((each) => bind(each, context).type);
    throw unknownFunction("row_to_json", types, call);
  }
  if (second === undefined) return { ...jsonOfRow(row), type: { kind: "json", binary: false } };
  const pretty = castTo(bind(second, context), { to: BOOLEAN, mode: "implicit", node: second });
  const [plain, spread] = [jsonOfRow(row), jsonOfRow(row, ",\n ")];
  return {
    kind: "case",
    type: { kind: "json", binary: false },
    branches: [
      { when: pretty, value: spread },
      { when: { kind: "not", type: BOOLEAN, operand: pretty }, value: plain },
    ],
    otherwise: undefined,
  };
}

/** Returns the argument of count for a row, which is NULL only if the row is missing. */
export function presenceOf({ presence }: RowValue): BoundExpression {
  return presence ?? { kind: "constant", type: BOOLEAN, value: true };
}

/** Whether a name refers to a row of the scope and not to a column. */
export function knowsRow(scope: Scope, ref: ExprRef): boolean {
  return scope.lookup(ref) === undefined && scope.rowNamed(ref) !== undefined;
}

/** Returns the error for a row where a value is required. */
export function misusedRow(node: Expr, what: string): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot use ${what} here: a single value is needed`, {
    position: node._location.start,
    hint: "row_to_json and similar functions, count and IS NULL accept a whole row",
  });
}

function isColumn(ref: ExprRef, { outer, scope }: ExpressionContext): boolean {
  if (scope.lookup(ref) !== undefined) return true;
  return outer !== undefined && isColumn(ref, outer.context);
}

function rowOfList({ expressions }: ExprList, context: ExpressionContext, bind: Bind): RowValue {
  const values = expressions.flatMap((node): BoundExpression[] => {
    const isStar = node.type === "ref" && node.star === true;
    const whole = isStar ? namedRow(node, context) : undefined;
    if (whole !== undefined) return whole.fields.map(({ value }) => value);
    return [bindWithRows(node, context, bind)];
  });
  const fields = values.map((value, i) => ({
    name: `f${i + 1}`,
    value: castTo(value, {
      to: value.type.kind === "unknown" ? TEXT : value.type,
      mode: "implicit",
      node: undefined,
    }),
  }));
  return { fields, presence: undefined };
}

/** Returns the row of a relation of this query or of an enclosing query. */
function namedRow(
  ref: ExprRef,
  { outer, scope, statement }: ExpressionContext,
): RowValue | undefined {
  const relation = scope.rowNamed(ref);
  if (relation !== undefined) {
    return {
      fields: relation.columns.map((column) => ({
        name: column.name,
        value: columnValue(column),
      })),
      // A join with an alias has no separate row.
      presence:
        relation.isOpen === true && relation.node !== undefined
          ? columnValue(presenceColumn(relation, statement))
          : undefined,
    };
  }
  const around = outer === undefined ? undefined : namedRow(ref, outer.context);
  if (outer === undefined || around === undefined) return undefined;
  return {
    fields: around.fields.map(({ name, value }) => ({ name, value: outer.referTo(value) })),
    presence: around.presence === undefined ? undefined : outer.referTo(around.presence),
  };
}

/** Returns a column of the relation that is NULL only where an outer join found no row. */
function presenceColumn(relation: ScopeRelation, statement: StatementBinding): BoundColumn {
  const node = defined(relation.node, "every relation of an outer join has a FROM item");
  if (node.relation.kind === "table") {
    const { primaryKey } = node.relation.table;
    const key = relation.columns.find(({ origin }) => origin?.columnId === primaryKey[0]);
    return defined(key ?? relation.systemColumns[0], "a table has a key or a _seq");
  }
  const known = statement.presences.get(node);
  if (known !== undefined) return known;
  const made = statement.newColumn({ name: "", type: BOOLEAN });
  statement.presences.set(node, made);
  marked(node, made, statement);
  return made;
}

/** Reads the relation through a query that adds a column that is never NULL. */
function marked(node: RelationNode, mark: BoundColumn, statement: StatementBinding): void {
  const { relation } = node;
  const inner = relation.columns.map(({ name, type }) => statement.newColumn({ name, type }));
  const outputs = inner.map(columnOutput);
  node.relation = {
    kind: "query",
    alias: relation.alias,
    columns: [...relation.columns, mark],
    query: selectFrom({ ...relation, columns: inner }, [
      ...outputs,
      { name: "", expression: { kind: "constant", type: BOOLEAN, value: true } },
    ]),
  };
}

/** Returns the JSON text of a row, or NULL if the row is missing. */
export function jsonOfRow({ fields, presence }: RowValue, separator = ","): BoundExpression {
  const keys = fields.map(({ name }) => `${JSON.stringify(name)}:`);
  const types = fields.map(({ value }) => value.type);
  const first = presence === undefined ? 0 : 1;
  const values = fields.map(({ value }) => value);
  return {
    kind: "call",
    type: JSON_ROW,
    // Rows with the same values but different keys are different.
    name: `row ${keys.join(separator)}`,
    args: presence === undefined ? values : [presence, ...values],
    evaluate: (cells: readonly Value[]) => {
      if (first === 1 && (cells[0] ?? null) === null) return null;
      const members = keys.map(
        (key, i) => key + jsonTextOf(types[i] ?? TEXT, cells[i + first] ?? null),
      );
      return `{${members.join(separator)}}`;
    },
    seesNull: true,
    volatility: "immutable",
  };
}
