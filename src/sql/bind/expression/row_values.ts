/**
 * Binds whole rows: `ROW(a, b)`, `t.*` in a call, and a table alias that is not also the name of a
 * column.
 *
 * On the nullable side of an outer join, the row may be missing. A missing row is NULL, whereas a
 * row of NULLs is not.
 */
import { defined } from "../../../base/assert.ts";
import { rowTypeOfTable } from "../../../catalog/mod.ts";
import {
  BOOLEAN,
  type RowField,
  type RowValue,
  TEXT,
  type TypeLabel,
  type Value,
} from "../../../types/mod.ts";
import type { Expr, ExprList, ExprRef } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext, StatementBinding } from "../binding.ts";
import type { BoundOutput } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue, selectFrom } from "../bound_nodes.ts";
import type { RelationNode, Scope, ScopeRelation } from "../scope.ts";
import { castTo, rowCallName } from "./casts.ts";

/**
 * The parts of a row: its fields in order, and an expression that tells whether the row exists.
 */
export interface RowParts {
  readonly fields: readonly {
    readonly name: string;
    readonly value: BoundExpression;
    /** The field's value before its untyped literals got default types. */
    readonly untyped?: BoundExpression;
  }[];
  /** An expression that is NULL only if the row is missing; undefined if the row always exists. */
  readonly presence: BoundExpression | undefined;
  /** The name of the table to which the row belongs, if it is a row of a table. */
  readonly named?: TypeLabel | undefined;
}

/** Returns the row that an expression denotes; undefined if it denotes a single value. */
export function bindRow(node: Expr, context: ExpressionContext, bind: Bind): RowParts | undefined {
  if (node.type === "list") return rowOfList(node, context, bind);
  if (node.type !== "ref") return undefined;
  if (node.star !== true && (node.table !== undefined || isColumn(node, context))) return undefined;
  return namedRow(node, context);
}

/** Binds an expression that denotes a row, as a single value. */
export function bindRowValue(
  node: Expr,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  const row = bindRow(node, context, bind);
  return row === undefined ? undefined : valueOfRow(row);
}

/** Returns the fields of a row value; undefined if the value is not a row. */
export function fieldsOfValue(row: BoundExpression): BoundOutput[] | undefined {
  if (row.type.kind !== "row") return undefined;
  return row.type.fields.map(({ name }, at) => ({ name, expression: fieldAt(row, at) }));
}

function fieldAt(row: BoundExpression, at: number): BoundExpression {
  const type = row.type.kind === "row" ? row.type.fields[at]?.type : undefined;
  return {
    kind: "call",
    type: type ?? TEXT,
    name: `field ${at}`,
    args: [row],
    evaluate: ([value = null]) => (value as RowValue).cells[at] ?? null,
    seesNull: false,
    volatility: "immutable",
  };
}

/**
 * Binds `IS [NOT] NULL` for a row value. The row is NULL if it is missing or all of its fields are
 * NULL, and NOT NULL if none of its fields is NULL.
 */
export function testOfValue(row: BoundExpression, negated: boolean): BoundExpression {
  return {
    kind: "call",
    type: BOOLEAN,
    name: negated ? "row is not null" : "row is null",
    args: [row],
    evaluate: ([value = null]) =>
      value === null
        ? !negated
        : (value as RowValue).cells.every((cell) => (cell === null) !== negated),
    seesNull: true,
    volatility: "immutable",
  };
}

/** Returns an argument for count that is NULL only if the row is missing. */
export function presenceOf({ presence }: RowParts): BoundExpression {
  return presence ?? { kind: "constant", type: BOOLEAN, value: true };
}

/** Whether a name refers to a row in the scope rather than to a column. */
export function knowsRow(scope: Scope, ref: ExprRef): boolean {
  return scope.lookup(ref) === undefined && scope.rowNamed(ref) !== undefined;
}

/** Whether a name refers to a column of this query or of an enclosing query. */
export function isColumn(ref: ExprRef, { outer, scope }: ExpressionContext): boolean {
  if (scope.lookup(ref) !== undefined) return true;
  return outer !== undefined && isColumn(ref, outer.context);
}

export function rowOfList(
  { expressions }: ExprList,
  context: ExpressionContext,
  bind: Bind,
): RowParts {
  const values = expressions.flatMap((node): BoundExpression[] => {
    const isStar = node.type === "ref" && node.star === true;
    const whole = isStar ? namedRow(node, context) : undefined;
    if (whole !== undefined) return whole.fields.map(({ value }) => value);
    return [bind(node, context)];
  });
  const fields = values.map((value, i) => ({
    name: `f${i + 1}`,
    untyped: value,
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
): RowParts | undefined {
  const relation = scope.rowNamed(ref);
  if (relation !== undefined) {
    return {
      fields: relation.columns.map((column, at) => ({
        name: relation.fieldNames?.[at] ?? column.name,
        value: columnValue(column),
      })),
      // The columns of an aliased join come from several relations, so there is no single row that
      // could be missing.
      presence:
        relation.isOpen === true && relation.node !== undefined
          ? columnValue(presenceColumn(relation, statement))
          : undefined,
      named: labelOf(relation),
    };
  }
  const around = outer === undefined ? undefined : namedRow(ref, outer.context);
  if (outer !== undefined && around === undefined) return rowOfVariable(ref, outer, statement);
  if (outer === undefined || around === undefined) return undefined;
  return {
    fields: around.fields.map(({ name, value }) => ({ name, value: outer.referTo(value) })),
    presence: around.presence === undefined ? undefined : outer.referTo(around.presence),
    named: around.named,
  };
}

/** Returns the name of the type of a table's rows; undefined for any other relation. */
function labelOf({ node }: ScopeRelation): TypeLabel | undefined {
  if (node?.relation.kind !== "table") return undefined;
  const type = rowTypeOfTable(node.relation.table);
  return type.kind === "row" ? type.named : undefined;
}

/** Returns the row that a program variable contains. */
function rowOfVariable(
  { table, _location, ...ref }: ExprRef,
  outer: NonNullable<ExpressionContext["outer"]>,
  { variables }: StatementBinding,
): RowParts | undefined {
  if (ref.star === true && table === undefined) return undefined;
  const named = table === undefined ? ref : { name: table.name };
  const value = variables?.named({ type: "ref", name: named.name, _location }, outer);
  const fields = value && fieldsOfValue(value);
  if (fields === undefined) return undefined;
  return {
    fields: fields.map(({ expression, name }) => ({ name, value: expression })),
    presence: value,
  };
}

/**
 * Returns a column of the relation that is NULL only where an outer join found no row. If the
 * relation has no such column, a column is added to it.
 */
export function presenceColumn(relation: ScopeRelation, statement: StatementBinding): BoundColumn {
  const node = defined(relation.node, "outer join binder: relation has no FROM item");
  if (node.relation.kind === "table") {
    const { primaryKey } = node.relation.table;
    const key = relation.columns.find(({ origin }) => origin?.columnId === primaryKey[0]);
    return defined(
      key ?? relation.systemColumns[0],
      "outer join binder: table has neither a primary key nor _seq",
    );
  }
  const known = statement.presences.get(node);
  if (known !== undefined) return known;
  const made = statement.newColumn({ name: "", type: BOOLEAN });
  statement.presences.set(node, made);
  marked(node, made, statement);
  return made;
}

/**
 * Replaces the relation with a query over the relation, which adds a column that is never NULL.
 */
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

/** Returns a row as a single value, which is NULL if the row is missing. */
export function valueOfRow({ fields, named, presence }: RowParts): BoundExpression {
  const values = fields.map(({ value }) => value);
  const types = fields.map(({ name, value }): RowField => ({ name, type: value.type }));
  const isOptional = presence !== undefined;
  const source = fields.map(({ untyped, value }) => untyped ?? value);
  return {
    kind: "call",
    type: { kind: "row", fields: types, ...(named === undefined ? {} : { named }) },
    name: rowCallName(types),
    args: isOptional ? [presence, ...values] : values,
    ...(isOptional ? {} : { row: { args: values, values: source } }),
    evaluate: (cells: readonly Value[]) => {
      if (!isOptional) return { cells: [...cells] };
      return (cells[0] ?? null) === null ? null : { cells: cells.slice(1) };
    },
    seesNull: true,
    volatility: "immutable",
  };
}
