/**
 * Columns, keys and constraints of CREATE TABLE and ADD COLUMN → catalog entries.
 */
import { DatabaseError } from "../../base/errors.ts";
import { CHECKS_MAX, KEY_COLUMNS_MAX } from "../../base/limits.ts";
import {
  type CheckEntry,
  type ColumnEntry,
  checkColumnName,
  checkObjectName,
  keyNameOf,
  type OptionSetting,
  type TableEntry,
  type TableKind,
} from "../../catalog/mod.ts";
import { castValue, type DataType, isTimeWord, typeName } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { castTo } from "../bind/expression/casts.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { isSerial, resolveType } from "../bind/expression/types.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import type { Scope } from "../bind/scope.ts";
import { childrenOf, columnIdsIn, isImmutable } from "../bind/walk.ts";
import { bindDefault, checkScope } from "../execute/build/table_runtime.ts";
import type {
  AstNode,
  ColumnConstraint,
  ConstraintCheck,
  CreateColumnDef,
  CreateTableStatement,
  Expr,
  Name,
  OptionEntry,
  TableConstraint,
} from "../parse/ast/ast.ts";

const FORBIDDEN_IN_DEFAULTS: ReadonlySet<string> = new Set([
  "COLUMN_NOT_FOUND",
  "INVALID_PARAMETER",
  "INVALID_QUERY",
]);

/** What a DEFAULT can be refused with that is the definition's own fault. */
const UNFIT_DEFAULTS: ReadonlySet<string> = new Set([
  ...FORBIDDEN_IN_DEFAULTS,
  "INVALID_VALUE",
  "VALUE_OUT_OF_RANGE",
  "VALUE_TOO_LONG",
  "DIMENSION_MISMATCH",
]);

const SNOWFLAKE_DEFAULT = "SNOWFLAKE_ID()";

export type TableElements = Pick<
  TableEntry,
  "columns" | "primaryKey" | "keyName" | "checks" | "nextColumnId"
>;

/** @throws {DatabaseError} INVALID_DEFINITION, UNSUPPORTED_TYPE, RESERVED_NAME … */
export function newTable(
  node: CreateTableStatement,
  { kind, tableName }: { kind: TableKind; tableName: string },
): TableElements {
  const columns = node.columns.map((column, i) => newColumn(column, { columnId: i + 1, kind }));
  checkNames(node.columns);
  const key = keyOf(node);
  if (key === undefined && kind !== "stream") {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create table ${tableName}: a ${kind.toUpperCase()} table needs a PRIMARY KEY`,
      { position: node._location.start, hint: "id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID()" },
    );
  }
  const primaryKey = (key?.columns ?? []).map(({ name, _location }) => {
    const column = columns.find((entry) => entry.name === name);
    if (column === undefined) {
      throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find key column "${name}"`, {
        position: _location.start,
      });
    }
    requireKeyType(column, _location.start);
    const constraints = node.columns.find((each) => each.name.name === name)?.constraints;
    refuseNull(constraints ?? [], name, KEY_IS_NOT_NULL);
    return column.columnId;
  });
  const named = key?.constraintName === undefined ? {} : { keyName: key.constraintName.name };
  const table = { name: tableName, columns, primaryKey, ...named };
  checkConstraintNames(node.constraints ?? []);
  const checks: CheckEntry[] = [];
  const checked: CheckedTable = { ...table, checks, scope: checkScope(table).scope };
  for (const column of node.columns) {
    for (const check of checksOf(column.constraints)) {
      checks.push(newCheck(check, checked, column.name.name));
    }
  }
  for (const constraint of node.constraints ?? []) {
    if (constraint.type === "check") checks.push(newCheck(constraint, checked));
  }
  return {
    columns: columns.map((column) =>
      primaryKey.includes(column.columnId) ? { ...column, notNull: true } : column,
    ),
    primaryKey,
    ...named,
    checks,
    nextColumnId: columns.length + 1,
  };
}

/** A column of CREATE TABLE or ADD COLUMN. */
export function newColumn(
  { constraints, dataType, name }: CreateColumnDef,
  { columnId, kind }: { columnId: number; kind: TableKind },
): ColumnEntry {
  const position = name._location.start;
  checkColumnName(name.name, { position, isQuoted: !/^[a-z_][a-z0-9_$]*$/.test(name.name) });
  const type = resolveType(dataType);
  requireStorable(type, dataType, kind);
  const all = constraints ?? [];
  checkConstraintNames(all);
  checkConstraints(all, name.name);
  const isGenerated = all.some(({ type: t }) => t === "auto increment" || t === "add generated");
  if (isGenerated && type.kind !== "bigint") {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot generate values for column "${name.name}" of type ${typeName(type)}: ` +
        "generated ids are BIGINT",
      {
        position: dataType._location.start,
        hint:
          type.kind === "uuid"
            ? `${name.name} UUID PRIMARY KEY DEFAULT gen_random_uuid()`
            : `${name.name} BIGINT PRIMARY KEY AUTO_INCREMENT`,
      },
    );
  }
  const hasSnowflake = isGenerated || isSerial(dataType);
  if (hasSnowflake) refuseNull(all, name.name, "a generated value is not NULL");
  const given = all.find((constraint) => constraint.type === "default");
  if (hasSnowflake && given !== undefined) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define column "${name.name}": it has a generated value and a DEFAULT`,
      { position },
    );
  }
  const defaultSql = hasSnowflake
    ? SNOWFLAKE_DEFAULT
    : given?.type === "default"
      ? given.source
      : undefined;
  if (given?.type === "default") checkDefault(given.default, { type, name: name.name });
  return {
    columnId,
    name: name.name,
    type,
    notNull: hasSnowflake || all.some(({ type: t }) => t === "not null" || t === "primary key"),
    generatedAlways: all.some((c) => c.type === "add generated" && c.always === "always"),
    missing: null,
    ...(defaultSql === undefined ? {} : { defaultSql }),
  };
}

export function checksOf(constraints: readonly ColumnConstraint[] | undefined): ConstraintCheck[] {
  return (constraints ?? []).flatMap((constraint) =>
    constraint.type === "check" ? [constraint] : [],
  );
}

/** @throws {DatabaseError} INVALID_NAME */
export function checkConstraintNames(
  constraints: readonly (ColumnConstraint | TableConstraint)[],
): void {
  for (const { constraintName } of constraints) {
    if (constraintName === undefined) continue;
    checkObjectName("constraint", constraintName.name, {
      position: constraintName._location.start,
    });
  }
}

/** A table that gets a CHECK. */
export type CheckedTable = Pick<
  TableEntry,
  "checks" | "columns" | "keyName" | "name" | "primaryKey"
> & {
  /** Of its columns, where it gets many: each scope made anew is a look at every column. */
  readonly scope?: Scope;
};

/**
 * A CHECK with its name; binding it proves that it is a condition over the columns.
 *
 * @param columnName The column whose constraint it is.
 */
export function newCheck(
  check: ConstraintCheck,
  table: CheckedTable,
  columnName?: string,
): CheckEntry {
  const { checks, columns, name: tableName, scope = checkScope(table).scope } = table;
  if (checks.length >= CHECKS_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot check table "${tableName}": it has more than ${CHECKS_MAX} checks`,
      { position: check._location.start, hint: "combine some of them with AND" },
    );
  }
  const place = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const condition = bindCondition(check.expr, place);
  readLiterals(place.statement.literals);
  const isFixed = isImmutable(condition);
  if (!isFixed || holdsTimeWord(condition)) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use such a ${isFixed ? "time" : "function"} in CHECK: it must give the same answer each time`,
      { position: check._location.start },
    );
  }
  const named = columnName ?? onlyColumnIn(condition, columns);
  const wanted = check.constraintName?.name ?? automaticName(tableName, named);
  const isKey = (name: string): boolean => table.primaryKey.length > 0 && name === keyNameOf(table);
  const taken = new Set(checks.map((entry) => entry.name));
  const isTaken = (name: string): boolean => taken.has(name) || isKey(name);
  if (check.constraintName !== undefined) {
    if (isTaken(wanted)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot name constraint "${wanted}": ${isKey(wanted) ? "the key" : "a check"} has that name`,
        { position: check._location.start },
      );
    }
  }
  let name = wanted;
  for (let number = 1; isTaken(name); number += 1) name = `${wanted}${number}`;
  return { name, sql: check.source };
}

/** Whether a literal such as 'now' is cast to a time, which is another one at each write. */
function holdsTimeWord(expression: BoundExpression): boolean {
  if (expression.kind === "call" && expression.readsTimeWords === true) {
    const [operand] = expression.args;
    const value = operand?.kind === "constant" ? operand.value : undefined;
    if (typeof value === "string" && isTimeWord(value)) return true;
  }
  return childrenOf(expression).some(holdsTimeWord);
}

function automaticName(tableName: string, columnName: string | undefined): string {
  return columnName === undefined ? `${tableName}_check` : `${tableName}_${columnName}_check`;
}

/** The one column that a condition reads, if it is one. */
function onlyColumnIn(
  condition: BoundExpression,
  columns: readonly ColumnEntry[],
): string | undefined {
  const [position, ...others] = columnIdsIn(condition);
  return position === undefined || others.length > 0 ? undefined : columns[position]?.name;
}

interface NewKey {
  readonly columns: readonly Name[];
  readonly constraintName: Name | undefined;
}

function keyOf(node: CreateTableStatement): NewKey | undefined {
  const ofColumns = node.columns.flatMap(({ constraints = [], name }): NewKey[] => {
    const key = constraints.find(({ type }) => type === "primary key");
    return key === undefined ? [] : [{ columns: [name], constraintName: key.constraintName }];
  });
  const ofTable = (node.constraints ?? []).flatMap((c) => (c.type === "primary key" ? [c] : []));
  if (ofColumns.length + ofTable.length > 1) {
    throw new DatabaseError("INVALID_DEFINITION", "Cannot define two primary keys", {
      position: node._location.start,
      hint: "PRIMARY KEY (a, b) is one key of two columns",
    });
  }
  const [ofColumn] = ofColumns;
  const [key] = ofTable;
  if (ofColumn !== undefined || key === undefined) return ofColumn;
  const names = new Set(key.columns.map(({ name }) => name));
  if (names.size !== key.columns.length || key.columns.length > KEY_COLUMNS_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define the primary key: it has 1 to ${KEY_COLUMNS_MAX} different columns`,
      { position: key._location.start },
    );
  }
  return { columns: key.columns, constraintName: key.constraintName };
}

function checkNames(columns: readonly CreateColumnDef[]): void {
  const seen = new Set<string>();
  for (const { name } of columns) {
    const folded = name.name.toLowerCase();
    if (seen.has(folded)) {
      throw new DatabaseError("INVALID_DEFINITION", `Cannot define column "${name.name}" twice`, {
        position: name._location.start,
      });
    }
    seen.add(folded);
  }
}

/** Whether a column has this name, quoted or not: names differ by more than their case. */
export function hasColumn(columns: readonly ColumnEntry[], name: string): boolean {
  const folded = name.toLowerCase();
  return columns.some((column) => column.name.toLowerCase() === folded);
}

function checkConstraints(constraints: readonly ColumnConstraint[], name: string): void {
  const seen = new Set<string>();
  for (const { _location, type } of constraints) {
    if (type === "check") continue;
    const clashes =
      (type === "null" && seen.has("not null")) || (type === "not null" && seen.has("null"));
    if (clashes || seen.has(type)) {
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot define column "${name}": its constraints contradict or repeat each other`,
        { position: _location.start },
      );
    }
    seen.add(type);
  }
  if (seen.has("primary key")) refuseNull(constraints, name, KEY_IS_NOT_NULL);
}

const KEY_IS_NOT_NULL = "a key is not NULL";

/** @throws {DatabaseError} INVALID_DEFINITION when a column that cannot be NULL is called so. */
function refuseNull(constraints: readonly ColumnConstraint[], name: string, why: string): void {
  const nullable = constraints.find(({ type }) => type === "null");
  if (nullable === undefined) return;
  throw new DatabaseError("INVALID_DEFINITION", `Cannot define column "${name}": ${why}`, {
    position: nullable._location.start,
  });
}

function requireStorable(type: DataType, node: AstNode, kind: TableKind): void {
  const isStorable = type.kind !== "interval" && type.kind !== "array" && type.kind !== "unknown";
  const position = node._location.start;
  if (!isStorable) {
    throw new DatabaseError(
      "UNSUPPORTED_TYPE",
      `Cannot store type ${typeName(type)}: no table has columns of it`,
      {
        position,
        ...(type.kind === "array" && { hint: "a JSONB column holds arrays" }),
        ...(type.kind === "interval" && { hint: "a TEXT column holds it; read it by ::interval" }),
      },
    );
  }
  if (type.kind !== "file" || kind !== "stream") return;
  throw new DatabaseError(
    "UNSUPPORTED_TYPE",
    `Cannot store type ${typeName(type)} in a ${kind.toUpperCase()} table`,
    { position },
  );
}

function requireKeyType({ name, type }: ColumnEntry, position: number): void {
  switch (type.kind) {
    case "json":
    case "embedding":
    case "file":
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot use column "${name}" in a primary key: ${typeName(type)} has no order`,
        { position },
      );
    default:
      return;
  }
}

/** A DEFAULT names no column, parameter or aggregate, and a plain value fits its column. */
export function checkDefault(node: Expr, { name, type }: { type: DataType; name: string }): void {
  const position = node._location.start;
  try {
    const bound = bindDefault(node);
    castTo(bound, { to: type, mode: "assignment", node });
    if (bound.kind !== "constant" || bound.value === null) return;
    castValue(bound.value, { from: bound.type, to: type, mode: "assignment", nowMicros: 0 });
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    if (!UNFIT_DEFAULTS.has(error.condition)) throw error;
    const isForbidden = FORBIDDEN_IN_DEFAULTS.has(error.condition);
    const why = isForbidden ? "it may hold no column, parameter or aggregate" : error.message;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use the DEFAULT of column "${name}": ${why}`,
      { position, cause: error },
    );
  }
}

/** WITH and SET entries as the catalog reads them. */
export function optionSettings(entries: readonly OptionEntry[] | undefined): OptionSetting[] {
  return (entries ?? []).map(({ _location, name, value }) => {
    const position = _location.start;
    switch (value.type) {
      case "identifier":
        return { name, value: value.name, position };
      case "integer":
      case "numeric":
        return { name, value: value.value, position };
      case "string":
      case "boolean":
        return { name, value: value.value, position };
      case "bytes":
      case "null":
        throw new DatabaseError(
          "INVALID_OPTION",
          `Cannot read option ${name}: a word or number is needed`,
          {
            position,
          },
        );
    }
  });
}
