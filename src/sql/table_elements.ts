/**
 * Columns, keys and constraints of CREATE TABLE and ADD COLUMN → catalog entries.
 */
import { DatabaseError } from "../base/errors.ts";
import { KEY_COLUMNS_MAX } from "../base/limits.ts";
import {
  type CheckEntry,
  type ColumnEntry,
  checkColumnName,
  type OptionSetting,
  type TableEntry,
  type TableKind,
} from "../catalog/mod.ts";
import { castValue, type DataType, typeName } from "../types/mod.ts";
import { StatementBinding } from "./bind/binding.ts";
import type { BoundExpression } from "./bind/bound.ts";
import { castTo } from "./bind/casts.ts";
import { bindCondition } from "./bind/expression_binder.ts";
import { isSerial, resolveType } from "./bind/types.ts";
import { readLiterals } from "./bind/untyped_literals.ts";
import { columnIdsIn, isImmutable } from "./bind/walk.ts";
import { bindDefault, checkScope } from "./execute/table_runtime.ts";
import type {
  AstNode,
  ColumnConstraint,
  ConstraintCheck,
  CreateColumnDef,
  CreateTableStatement,
  Expr,
  OptionEntry,
} from "./parse/ast.ts";

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

export type TableElements = Pick<TableEntry, "columns" | "primaryKey" | "checks" | "nextColumnId">;

/** @throws {DatabaseError} INVALID_DEFINITION, UNSUPPORTED_TYPE, RESERVED_NAME … */
export function newTable(
  node: CreateTableStatement,
  { kind, tableName }: { kind: TableKind; tableName: string },
): TableElements {
  const columns = node.columns.map((column, i) => newColumn(column, { columnId: i + 1, kind }));
  checkNames(node.columns);
  const keyNames = keyNamesOf(node) ?? (kind === "stream" ? [] : undefined);
  if (keyNames === undefined) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create table ${tableName}: a ${kind.toUpperCase()} table needs a PRIMARY KEY`,
      { position: node._location.start, hint: "id BIGINT PRIMARY KEY DEFAULT SNOWFLAKE_ID()" },
    );
  }
  const primaryKey = keyNames.map(({ name, _location }) => {
    const column = columns.find((entry) => entry.name === name);
    if (column === undefined) {
      throw new DatabaseError("COLUMN_NOT_FOUND", `Cannot find key column "${name}"`, {
        position: _location.start,
      });
    }
    requireKeyType(column, _location.start);
    return column.columnId;
  });
  const checks: CheckEntry[] = [];
  for (const column of node.columns) {
    for (const check of checksOf(column.constraints)) {
      checks.push(newCheck(check, { checks, columns, tableName, columnName: column.name.name }));
    }
  }
  for (const constraint of node.constraints ?? []) {
    if (constraint.type === "check") {
      checks.push(newCheck(constraint, { checks, columns, tableName }));
    }
  }
  return {
    columns: columns.map((column) =>
      primaryKey.includes(column.columnId) ? { ...column, notNull: true } : column,
    ),
    primaryKey,
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
  checkConstraints(all, name.name);
  const isGenerated = all.some(({ type: t }) => t === "auto increment" || t === "add generated");
  if (isGenerated && type.kind !== "bigint") {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot generate values for column "${name.name}": it must be BIGINT`,
      { position },
    );
  }
  const hasSnowflake = isGenerated || isSerial(dataType);
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

/** A CHECK with its name; binding it proves that it is a condition over the columns. */
export function newCheck(
  check: ConstraintCheck,
  {
    checks,
    columnName,
    columns,
    tableName,
  }: {
    checks: readonly CheckEntry[];
    columns: readonly ColumnEntry[];
    tableName: string;
    /** The column whose constraint it is. */
    columnName?: string;
  },
): CheckEntry {
  const { scope } = checkScope(columns);
  const place = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const condition = bindCondition(check.expr, place);
  readLiterals(place.statement.literals);
  if (!isImmutable(condition)) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      "Cannot use such a function in CHECK: it must give the same answer each time",
      { position: check._location.start },
    );
  }
  const named = columnName ?? onlyColumnIn(condition, columns);
  const wanted = check.constraintName?.name ?? automaticName(tableName, named);
  const isTaken = (name: string): boolean => checks.some((entry) => entry.name === name);
  if (check.constraintName !== undefined && isTaken(wanted)) {
    throw new DatabaseError("ALREADY_EXISTS", `Cannot name constraint "${wanted}": it exists`, {
      position: check._location.start,
    });
  }
  let name = wanted;
  for (let number = 1; isTaken(name); number += 1) name = `${wanted}${number}`;
  return { name, sql: check.source };
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

/** The name of the primary key among the constraints of a table. */
export function keyNameOf(tableName: string): string {
  return `${tableName}_pkey`;
}

function keyNamesOf(
  node: CreateTableStatement,
): readonly (AstNode & { name: string })[] | undefined {
  const ofColumns = node.columns.filter(({ constraints = [] }) =>
    constraints.some(({ type }) => type === "primary key"),
  );
  const ofTable = (node.constraints ?? []).flatMap((c) => (c.type === "primary key" ? [c] : []));
  if (ofColumns.length + ofTable.length > 1) {
    throw new DatabaseError("INVALID_DEFINITION", "Cannot define two primary keys", {
      position: node._location.start,
      hint: "PRIMARY KEY (a, b) is one key of two columns",
    });
  }
  const [column] = ofColumns;
  if (column !== undefined) return [column.name];
  const [key] = ofTable;
  if (key === undefined) return undefined;
  const names = new Set(key.columns.map(({ name }) => name));
  if (names.size !== key.columns.length || key.columns.length > KEY_COLUMNS_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define the primary key: it has 1 to ${KEY_COLUMNS_MAX} different columns`,
      { position: key._location.start },
    );
  }
  return key.columns;
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
  const nullable = constraints.find(({ type }) => type === "null");
  if (nullable !== undefined && seen.has("primary key")) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define column "${name}": a key is not NULL`,
      { position: nullable._location.start },
    );
  }
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
