/**
 * Converts the columns, keys and constraints of CREATE TABLE and ADD COLUMN into catalog entries.
 */
import { DatabaseError } from "../../base/errors.ts";
import { CHECKS_MAX, KEY_COLUMNS_MAX } from "../../base/limits.ts";
import {
  type CheckEntry,
  type ColumnEntry,
  checkColumnName,
  checkObjectName,
  hiddenKey,
  keyNameOf,
  type OptionSetting,
  type TableEntry,
  type TableKind,
} from "../../catalog/mod.ts";
import {
  castValue,
  collationOf,
  type DataType,
  isBoundInKey,
  isGeometric,
  isLooselyEqual,
  isObjectName,
  isRangeType,
  mixedCollations,
  typeName,
} from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { castTo } from "../bind/expression/casts.ts";
import { bindCondition } from "../bind/expression/expression_binder.ts";
import { domainOf, resolveType } from "../bind/expression/types.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import type { Scope } from "../bind/scope.ts";
import { columnIdsIn, holdsTimeWord, isImmutable } from "../bind/walk.ts";
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
  TableAlterationResetOptions,
  TableConstraint,
} from "../parse/ast/ast.ts";
import { checkGenerated } from "./generated_columns.ts";
import { type Numbering, numberingOf } from "./numbered_columns.ts";

const FORBIDDEN_IN_DEFAULTS: ReadonlySet<string> = new Set([
  "COLUMN_NOT_FOUND",
  "INVALID_PARAMETER",
  "INVALID_QUERY",
]);

/** The error codes that mean an invalid DEFAULT expression. */
const UNFIT_DEFAULTS: ReadonlySet<string> = new Set([
  ...FORBIDDEN_IN_DEFAULTS,
  "INVALID_VALUE",
  "VALUE_OUT_OF_RANGE",
  "VALUE_TOO_LONG",
  "DIMENSION_MISMATCH",
]);

export interface TableElements
  extends Pick<TableEntry, "columns" | "primaryKey" | "keyName" | "checks" | "nextColumnId"> {
  /** The columns whose DEFAULT needs a new sequence. */
  readonly numberings: readonly Numbering[];
}

/**
 * Returns the catalog entry of a new table.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, UNSUPPORTED_TYPE, RESERVED_NAME …
 */
export function newTable(
  node: CreateTableStatement,
  { kind, tableName }: { kind: TableKind; tableName: string },
): TableElements {
  const key = keyOf(node);
  const keyNames = new Set((key?.columns ?? []).map(({ name }) => name));
  const columns = node.columns.map((column, i) => {
    const made = newColumn(column, { columnId: i + 1, kind });
    return keyNames.has(made.name) ? { ...made, type: typeInKey(made.type) } : made;
  });
  checkNames(node.columns);
  const primaryKey = (key?.columns ?? []).map(({ name, _location }) => {
    const column = columns.find((entry) => entry.name === name);
    if (column === undefined) {
      throw new DatabaseError(
        "COLUMN_NOT_FOUND",
        `Cannot find key column "${name}": the table does not define it`,
        {
          position: _location.start,
        },
      );
    }
    requireKeyType(column, { position: _location.start, what: PRIMARY_KEY });
    const constraints = node.columns.find((each) => each.name.name === name)?.constraints;
    refuseNull(constraints ?? [], name, KEY_IS_NOT_NULL);
    return column.columnId;
  });
  const named = key?.constraintName === undefined ? {} : { keyName: key.constraintName.name };
  const table = { name: tableName, columns, primaryKey, ...named };
  checkConstraintNames(node.constraints ?? []);
  for (const [i, column] of columns.entries()) {
    const written = node.columns[i];
    if (written !== undefined) checkGenerated(table, column, written);
  }
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
  const numberings = node.columns.flatMap((column, i) => numberingOf(column, i + 1) ?? []);
  const nextColumnId = columns.length + 1;
  if (key === undefined && kind !== "stream") {
    return {
      columns: [...columns, hiddenKey(nextColumnId)],
      primaryKey: [nextColumnId],
      checks,
      nextColumnId: nextColumnId + 1,
      numberings,
    };
  }
  return {
    columns: columns.map((column) =>
      primaryKey.includes(column.columnId) ? withoutNull(column) : column,
    ),
    primaryKey,
    ...named,
    checks,
    nextColumnId,
    numberings,
  };
}

/**
 * Returns the type that a column gets if it is part of a primary key. In this type, equal numbers
 * have equal string forms.
 */
function typeInKey(type: DataType): DataType {
  if (isRangeType(type)) return { ...type, bound: typeInKey(type.bound) };
  return type.kind === "numeric" ? { ...type, isTrimmed: true } : type;
}

/** Returns a copy of the column that is NOT NULL. */
export function withoutNull(column: ColumnEntry): ColumnEntry {
  return { ...column, notNull: true };
}

/** Returns the catalog entry of a column in CREATE TABLE or ADD COLUMN. */
export function newColumn(
  node: CreateColumnDef,
  { columnId, kind }: { columnId: number; kind: TableKind },
): ColumnEntry {
  const { constraints, dataType, name } = node;
  const position = name._location.start;
  checkColumnName(name.name, { position, isQuoted: !/^[a-z_][a-z0-9_$]*$/.test(name.name) });
  const type = resolveType(dataType);
  const domain = domainOf(dataType);
  requireStorable(type, dataType, kind);
  const all = constraints ?? [];
  checkConstraintNames(all);
  checkConstraints(all, name.name);
  const numbering = numberingOf(node, columnId);
  if (numbering !== undefined) refuseNull(all, name.name, "a generated value is never NULL");
  const given = all.find((constraint) => constraint.type === "default");
  const stored = all.find((constraint) => constraint.type === "stored");
  const generatedCount = [numbering, given, stored].filter((each) => each !== undefined).length;
  if (generatedCount > 1) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define column "${name.name}": it can have only one of a sequence, a DEFAULT and ` +
        "an expression",
      { position },
    );
  }
  const defaultSql = given?.type === "default" ? given.source : undefined;
  if (given?.type === "default") checkDefault(given.default, { type, name: name.name });
  return {
    columnId,
    name: name.name,
    type,
    ...(domain === undefined ? {} : { domain }),
    notNull:
      numbering !== undefined || all.some(({ type: t }) => t === "not null" || t === "primary key"),
    generatedAlways: numbering?.identity === "always" || stored !== undefined,
    ...(stored?.type === "stored" ? { generatedSql: stored.source } : {}),
    ...(numbering?.identity === undefined ? {} : { identity: numbering.identity }),
    missing: null,
    ...(defaultSql === undefined ? {} : { defaultSql }),
  };
}

export function checksOf(constraints: readonly ColumnConstraint[] | undefined): ConstraintCheck[] {
  return (constraints ?? []).flatMap((constraint) =>
    constraint.type === "check" ? [constraint] : [],
  );
}

/**
 * Requires that the constraints of a table have valid names.
 *
 * @throws {DatabaseError} INVALID_NAME
 */
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

/** The properties of a table that are needed to add a CHECK to it. */
export type CheckedTable = Pick<
  TableEntry,
  "checks" | "columns" | "keyName" | "name" | "primaryKey"
> & {
  /**
   * The prefix of generated constraint names; defaults to the names of the table and the column.
   */
  readonly prefix?: string;
  /**
   * The scope of the table's columns. All checks share it, because creating a scope visits every
   * column.
   */
  readonly scope?: Scope;
};

/**
 * Returns a CHECK constraint with its name. Its expression is bound to verify that it is a
 * condition on the columns.
 *
 * @param columnName The column to which the constraint belongs.
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
      `Cannot define table "${tableName}": it has more than ${CHECKS_MAX} CHECK constraints`,
      {
        position: check._location.start,
        hint: "combine some of the constraints into one with AND",
      },
    );
  }
  const context = { statement: new StatementBinding([]), scope, clause: "CHECK", sink: undefined };
  const condition = bindCondition(check.expr, context);
  readLiterals(context.statement.literals);
  const isFixed = isImmutable(condition);
  if (!isFixed || holdsTimeWord(condition)) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use ${isFixed ? "the current time" : "a volatile function"} in a CHECK ` +
        "constraint: the condition must always give the same result for the same row",
      { position: check._location.start },
    );
  }
  const named = columnName ?? onlyColumnIn(condition, columns);
  const automatic = table.prefix ?? automaticPrefix(tableName, named);
  const wanted = check.constraintName?.name ?? `${automatic}_check`;
  const isKey = (name: string): boolean => name === keyNameOf(table);
  const taken = new Set(checks.map((entry) => entry.name));
  const isTaken = (name: string): boolean => taken.has(name) || isKey(name);
  if (check.constraintName !== undefined) {
    if (isTaken(wanted)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot name constraint "${wanted}": the table's ` +
          `${isKey(wanted) ? "primary key" : "CHECK constraint"} already has this name`,
        { position: check._location.start },
      );
    }
  }
  let name = wanted;
  for (let number = 1; isTaken(name); number += 1) name = `${wanted}${number}`;
  return { name, sql: check.source };
}

function automaticPrefix(tableName: string, columnName: string | undefined): string {
  return columnName === undefined ? tableName : `${tableName}_${columnName}`;
}

/**
 * Returns the column that a condition reads, if it reads exactly one column; undefined otherwise.
 */
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
    throw new DatabaseError(
      "INVALID_DEFINITION",
      "Cannot define two primary keys: a table can have only one",
      {
        position: node._location.start,
        hint: "for a primary key with two columns, write PRIMARY KEY (room_id, id)",
      },
    );
  }
  const [ofColumn] = ofColumns;
  const [key] = ofTable;
  if (ofColumn !== undefined || key === undefined) return ofColumn;
  const names = new Set(key.columns.map(({ name }) => name));
  if (names.size !== key.columns.length || key.columns.length > KEY_COLUMNS_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define the primary key: it must have 1 to ${KEY_COLUMNS_MAX} different columns`,
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

/**
 * Returns whether a table has a column with the given name. Names that differ only in case count
 * as equal, even if quoted.
 */
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
        `Cannot define column "${name}": two of its constraints contradict or repeat each other`,
        { position: _location.start },
      );
    }
    seen.add(type);
  }
  if (seen.has("primary key")) refuseNull(constraints, name, KEY_IS_NOT_NULL);
}

const KEY_IS_NOT_NULL = "a primary key column cannot be NULL";

/**
 * Refuses an explicit NULL constraint on a column that cannot be NULL.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function refuseNull(constraints: readonly ColumnConstraint[], name: string, why: string): void {
  const nullable = constraints.find(({ type }) => type === "null");
  if (nullable === undefined) return;
  throw new DatabaseError("INVALID_DEFINITION", `Cannot define column "${name}": ${why}`, {
    position: nullable._location.start,
  });
}

/**
 * Requires that a type can be stored in a column of the given kind of table.
 * @throws {DatabaseError} UNSUPPORTED_TYPE
 */
export function requireStorable(type: DataType, node: AstNode, kind: TableKind): void {
  const position = node._location.start;
  const isUnscalar = type.kind === "array" && UNSCALAR.has(type.element.kind);
  if (type.kind === "unknown" || isUnscalar || isUndefinedRow(type)) {
    throw new DatabaseError(
      "UNSUPPORTED_TYPE",
      `Cannot store values of type ${typeName(type)}: no table can have a column of this type`,
      { position, ...(isUnscalar && { hint: "store each element in its own row" }) },
    );
  }
  if (holdsObjectName(type)) {
    throw new DatabaseError(
      "UNSUPPORTED_TYPE",
      `Cannot store type ${typeName(type)}: its values contain names, which may change`,
      { position, hint: "store the number or the name: cast the value to OID or TEXT" },
    );
  }
  const collation = collationOf(type);
  if (collation?.kind === "mixed") throw mixedCollations(collation);
  if (type.kind !== "file" || kind !== "stream") return;
  throw new DatabaseError(
    "UNSUPPORTED_TYPE",
    `Cannot store values of type ${typeName(type)} in a ${kind.toUpperCase()} table`,
    { position },
  );
}

/**
 * Whether a type is, or contains, a type whose values refer to catalog objects, such as REGCLASS.
 */
function holdsObjectName(type: DataType): boolean {
  if (type.kind === "array") return holdsObjectName(type.element);
  if (type.kind === "row") return type.fields.some((each) => holdsObjectName(each.type));
  return isObjectName(type);
}

/** Whether a type is, or contains, the row type of a query or of a table. */
function isUndefinedRow(type: DataType): boolean {
  if (type.kind === "array") return isUndefinedRow(type.element);
  return type.kind === "row" && (type.named === undefined || type.named.isOfTable === true);
}

/** Types that cannot be stored as array elements. */
const UNSCALAR: ReadonlySet<DataType["kind"]> = new Set(["embedding", "file", "unknown"]);

/**
 * Requires that a column can be part of a key or an index.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireKeyType(
  { name, type }: Pick<ColumnEntry, "name" | "type">,
  { position, what }: { position: number; what: string },
): void {
  if (isGeometric(type)) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use column "${name}" in ${what}: values of type ${typeName(type)} have no order`,
      { position, hint: "use numbers, such as the coordinates (p[0]), or the text form (p::text)" },
    );
  }
  switch (type.kind) {
    case "text":
      refuseLooseKey(name, type, { position, what });
      return;
    case "json":
    case "jsonpath":
    case "xml":
    case "tsvector":
    case "tsquery":
    case "embedding":
    case "file":
      throw new DatabaseError(
        "INVALID_DEFINITION",
        `Cannot use column "${name}" in ${what}: values of type ${typeName(type)} have no order`,
        { position },
      );
    case "range":
    case "multirange":
      if (isBoundInKey(type.bound)) return;
      break;
    case "array":
    case "row":
    case "interval":
      break;
    default:
      return;
  }
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot use column "${name}" in ${what}: its type, ${typeName(type)}, is not allowed there`,
    { position, hint: "add a key column, such as id BIGINT DEFAULT SNOWFLAKE_ID()" },
  );
}

/**
 * Requires that a DEFAULT contains no column, parameter or aggregate, and that a literal value
 * fits its column.
 */
export function checkDefault(node: Expr, { name, type }: { type: DataType; name: string }): void {
  const position = node._location.start;
  try {
    const bound = bindDefault(node);
    castTo(bound, { to: type, mode: "assignment", node });
    if (bound.kind !== "constant" || bound.value === null) return;
    castValue(bound.value, { from: bound.type, to: type, mode: "assignment", nowMicros: 0 });
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    if (!UNFIT_DEFAULTS.has(error.code)) throw error;
    const isForbidden = FORBIDDEN_IN_DEFAULTS.has(error.code);
    const why = isForbidden
      ? "a DEFAULT must not contain columns, parameters or aggregates"
      : error.message;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use the DEFAULT of column "${name}": ${why}`,
      { position, cause: error },
    );
  }
}

/** Returns the option names in RESET in the form used by the catalog. */
export function resetNames({ names }: TableAlterationResetOptions): Omit<OptionSetting, "value">[] {
  return names.map(({ _location, name }) => ({ name, position: _location.start }));
}

/** Returns the entries of WITH or SET in the form used by the catalog. */
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
          `Cannot set option ${name}: its value must not be NULL or bytes`,
          {
            position,
          },
        );
    }
  });
}

/** The name for a primary key in messages. */
const PRIMARY_KEY = "a primary key";
/** The name for a PARTITION BY key in messages. */
export const PARTITION_KEY = "a partition key";

/**
 * Refuses text with a nondeterministic collation in a primary key or partition key. A primary key
 * must identify a row, and equal values must belong to the same partition, but under such a
 * collation, different strings can be equal.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function refuseLooseKey(
  name: string,
  type: DataType,
  { position, what }: { position: number; what: string },
): void {
  if ((what !== PRIMARY_KEY && what !== PARTITION_KEY) || !isLooselyEqual(type)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use column "${name}" in ${what}: its collation is nondeterministic, but ${what} ` +
      "requires exactly equal strings",
    {
      position,
      hint:
        what === PRIMARY_KEY
          ? "use a different key, and make this column UNIQUE"
          : "use a different key, or a column with a deterministic collation",
    },
  );
}
