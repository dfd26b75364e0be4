/**
 * Binds table function calls in FROM and in select lists. In a select list, a call may turn each
 * input row into several rows.
 *
 *     SELECT a, unnest(t.b) FROM t              each row of t as often as b has elements
 *     SELECT a, (jsonb_each(t.b)).* FROM t      all columns of a call that yields several
 *
 * Several calls in the same select list run side by side, and shorter results are padded with
 * NULL. `expansions.ts` determines when each call runs.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { nearestName } from "../../../base/nearest_name.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  type DomainType,
  type Row,
  type RowValue,
  typeName,
  type Value,
} from "../../../types/mod.ts";
import { isAdvisoryFunction, waitsForLock } from "../../functions/advisory.ts";
import { constructorsOf } from "../../functions/ranges.ts";
import {
  functionExists,
  namedForm,
  overloadsNamed,
  resolveAmong,
} from "../../functions/registry.ts";
import { SLEEP } from "../../functions/session.ts";
import type { ResultColumn, TableForm } from "../../functions/table/table_function.ts";
import {
  isTableFunction,
  namedTableForm,
  resolveTableFunction,
} from "../../functions/table/table_functions.ts";
import type {
  AstNode,
  ColumnDefinition,
  Expr,
  ExprCall,
  ExprField,
  ExprRef,
  FromCall,
  FromRows,
} from "../../parse/ast/ast.ts";
import {
  type Bind,
  type CallableRoutine,
  type ExpansionCall,
  type ExpressionContext,
  notAvailable,
  unknownFunction,
} from "../binding.ts";
import type { BoundOutput, BoundTableFunction } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue } from "../bound_nodes.ts";
import { isFunctionalCast } from "../expression/functional_casts.ts";
import { castArgument, fittingOf } from "../expression/integer_parameters.ts";
import { boundInOrder, checkNames } from "../expression/named_arguments.ts";
import { fieldsOfValue, isColumn, valueOfRow } from "../expression/row_values.ts";
import { domainOf, resolveType } from "../expression/types.ts";
import { routineRows } from "./routine_calls.ts";
import { type RoutineCall, resolveRoutine, routinesOf } from "./routine_resolution.ts";
import { bindXmlTable } from "./xml_table.ts";

/** The function that yields the changes to a table. It is bound by `changes_binder.ts`. */
export const CHANGES = "changes";

/** A column of a function call's result, with the domain against which its values are checked. */
export interface CallColumn {
  readonly name: string;
  readonly type: DataType;
  readonly domain?: DomainType;
}

/** A function call in FROM, before its columns are renamed. */
export interface BoundCallItem {
  readonly functions: readonly BoundTableFunction[];
  readonly columns: readonly CallColumn[];
  /**
   * Whether the alias of the call also names its only column: with `json_array_elements(j) AS e`,
   * `e` is the value.
   */
  readonly isValue: boolean;
}

interface BoundCalls extends Pick<BoundCallItem, "columns" | "functions"> {
  /** Whether the columns are the fields of rows. */
  readonly isRow?: boolean;
}

/**
 * Binds a table function call in FROM.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_QUERY
 */
export function bindCallItem(
  item: FromCall | FromRows,
  around: { bind: Bind; context: ExpressionContext },
): BoundCallItem {
  const calls = item.type === "call" ? [item] : item.calls;
  const alone = calls.length === 1 ? item.alias?.name : undefined;
  const bound = calls.map((call) => bindOneCall(call, alone, around));
  const columns = bound.flatMap((each) => each.columns);
  const hasOrdinality = item.withOrdinality === true;
  if (hasOrdinality) columns.push({ name: "ordinality", type: BIGINT });
  const isDefined = calls.some(({ columnDefinitions }) => columnDefinitions !== undefined);
  return {
    functions: bound.flatMap((each) => each.functions),
    columns,
    isValue: columns.length === 1 && !isDefined && bound.every(({ isRow }) => isRow !== true),
  };
}

/**
 * Binds a single function call in FROM.
 *
 * @param alias The name of the column if the call has only one.
 */
function bindOneCall(
  item: FromCall,
  alias: string | undefined,
  { bind, context }: { bind: Bind; context: ExpressionContext },
): BoundCalls {
  const { name, schema } = item.function;
  if (item.xml?.kind === "table") return bindXmlTable(item, item.xml, { bind, context });
  const routines = routinesOf(item, context);
  if (routines !== undefined) return boundRoutine(item, alias, { routines, bind, context });
  if (item.over !== undefined || item.filter !== undefined || item.distinct !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} in FROM with DISTINCT, FILTER or OVER: they are not allowed there`,
      {
        position: item._location.start,
        hint: "remove them, and filter the rows with WHERE",
      },
    );
  }
  if (name === CHANGES) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot call changes in ROWS FROM: its rows cannot be combined with those of other functions",
      {
        position: item._location.start,
        hint: "call changes as a separate item in FROM",
      },
    );
  }
  if (name === "vector_search") {
    throw notAvailable(item, `table function ${name}`);
  }
  if (name === SLEEP || waitsForLock(name)) throw waitInFrom(item, name);
  if (isAdvisoryFunction(name)) {
    const { start: position } = item._location;
    context.statement.requirements.push({ action: "advisory-lock", name, position });
  }
  const form = namedTableForm(name) ?? namedForm(name);
  checkNames(item, form);
  const args = schema === undefined ? boundInOrder(item, form, (arg) => bind(arg, context)) : [];
  const shown = schema === undefined ? name : `${schema}.${name}`;
  const calls = shown === "unnest" && args.length > 1 ? args.map((arg) => [arg]) : [args];
  const alone = alias ?? name;
  const bound = calls.map((own) => withFields(boundCall(shown, own, item)));
  const columns = bound.flatMap((each) =>
    each.columns.map((column) => ({
      ...column,
      name: column.name ?? (bound.length === 1 ? alone : name),
    })),
  );
  const isRow = bound.some((each) => each.isRow);
  return { functions: bound.map((each) => each.made), columns, isRow };
}

/**
 * Replaces the only column of a call by the fields of its type if CREATE TYPE has defined that row
 * type. A missing row becomes a row of NULLs.
 */
function withFields(bound: BoundCall): BoundCall & { readonly isRow: boolean } {
  const { columns, made } = bound;
  const [only] = columns;
  const { type } = only ?? {};
  const isRow = type?.kind === "row" && type.named !== undefined && columns.length === 1;
  if (!isRow) return { ...bound, isRow };
  const missing = type.fields.map(() => null);
  const fieldsIn = ([row = null]: Row): Row => (row === null ? missing : (row as RowValue).cells);
  function* rows(values: readonly Value[]): Generator<Row> {
    for (const row of made.rows(values)) yield fieldsIn(row);
  }
  return { made: { ...made, width: missing.length, rows }, columns: type.fields, isRow };
}

/**
 * Binds a call to a user-defined function, so that its rows appear beside the rows of other calls.
 */
function boundRoutine(
  item: FromCall,
  alias: string | undefined,
  {
    routines,
    ...around
  }: { routines: readonly CallableRoutine[]; bind: Bind; context: ExpressionContext },
): BoundCalls {
  const call = resolveRoutine(item, routines, around);
  const { columns, made } = routineRows(call, around.context);
  const alone = columns.length === 1 ? alias : undefined;
  return {
    functions: [{ ...made, width: columns.length, rows: (values) => shownRows(made, values) }],
    columns: columns.map(({ name, type }) => ({
      name: name ?? alone ?? call.callable.routine.name,
      type,
    })),
  };
}

/** Yields the rows of a function without their last column, which only marks a row as present. */
function* shownRows(made: BoundTableFunction, values: readonly Value[]): Generator<Row> {
  for (const row of made.rows(values)) yield row.slice(0, -1);
}

/**
 * Returns the error for a function in FROM that would have to wait. This is not possible, because
 * functions in FROM produce their rows in one tick.
 */
function waitInFrom(item: FromCall, name: string): DatabaseError {
  const shown = name.toUpperCase();
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot call ${shown} in FROM: functions that wait are not allowed there`,
    {
      position: item._location.start,
      hint: `call it in a select list: FROM (SELECT ${shown}(1)) s`,
    },
  );
}

/**
 * Binds a table function call in a select list.
 * @throws {DatabaseError} INVALID_QUERY where such a call is not allowed.
 */
export function bindExpansion(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const columns = expandedColumns(call, context, bind);
  const [first] = columns;
  if (first !== undefined && columns.length === 1) return columnValue(first);
  const fields = columns.map((column) => ({ name: column.name, value: columnValue(column) }));
  // The first field of a row is NULL only in padding rows, which are added if another call in the
  // select list returns more rows.
  return valueOfRow({ fields, presence: fields[0]?.value });
}

/** Binds a call to a set-returning function in a select list. */
export function bindRoutineExpansion(
  call: RoutineCall,
  context: ExpressionContext,
): BoundExpression {
  const { expansions, statement } = context;
  if (expansions === undefined) throw setElsewhere(call.callable.name, context, call.node);
  const { columns: given, isRow, made } = routineRows(call, context);
  const named = given.map(({ name, type }) => ({ name: name ?? call.callable.routine.name, type }));
  const present = { name: "", type: BOOLEAN };
  const columns = [...named, present].map((column) => statement.newColumn(column));
  expansions.calls.push({ made, columns });
  const [first] = columns;
  if (!isRow && first !== undefined) return columnValue(first);
  const fields = columns
    .slice(0, -1)
    .map((column) => ({ name: column.name, value: columnValue(column) }));
  const presence = columns.at(-1);
  return valueOfRow({ fields, presence: presence && columnValue(presence) });
}

function setElsewhere(name: string, { clause }: ExpressionContext, node: AstNode): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot call ${name} in ${clause}: it returns a set of rows`,
    { position: node._location.start, hint: "call the function in FROM" },
  );
}

/** Returns `(t).c` as `t.c` if `t` is the name of a relation; undefined for any other row. */
export function refOfField(
  { name, row, star, _location }: ExprField,
  context: ExpressionContext,
): ExprRef | undefined {
  if (row.type !== "ref" || row.table !== undefined || row.star === true) return undefined;
  if (isColumn(row, context)) return undefined;
  const table = { name: row.name, _location: row._location };
  return { type: "ref", table, name, star, _location };
}

/** Binds `(f(x)).c`. @throws {DatabaseError} COLUMN_NOT_FOUND, INVALID_QUERY */
export function bindField(
  field: ExprField,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { name, row, star, _location } = field;
  const ref = refOfField(field, context);
  if (ref !== undefined) return bind(ref, context);
  if (star === true) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use (…).* in ${context.clause}: it expands to several columns`,
      {
        position: _location.start,
        hint: "use it as an item of the select list, or select a single column, as in (…).c",
      },
    );
  }
  const fields = fieldsOf(field, context, bind);
  const found = fields.find((each) => each.name === name);
  if (found !== undefined) return found.expression;
  const called = callOfField(field, context);
  if (called !== undefined) return bind(called, context);
  const names = fields.map((each) => each.name);
  const near = nearestName(name, names);
  const shown = row.type === "call" ? `${row.function.name}(…)` : "the row";
  throw new DatabaseError(
    "COLUMN_NOT_FOUND",
    `Cannot find column "${name}" in ${shown}: the columns are ${names.join(" and ")}`,
    {
      position: _location.start,
      ...(near === undefined ? {} : { hint: `did you mean "${near}"?` }),
    },
  );
}

/**
 * Returns `(r).f` as the call `f(r)`; undefined if there is no function `f`. As in PostgreSQL, a
 * type is not called in this way.
 */
export function callOfField(
  { name, row, _location }: ExprField,
  context: ExpressionContext,
): ExprCall | undefined {
  const call: ExprCall = { type: "call", function: { name, _location }, args: [row], _location };
  const isFunction = functionExists(name) && !isFunctionalCast(name);
  return isFunction || routinesOf(call, context) !== undefined ? call : undefined;
}

/**
 * Returns the columns that `(f(x)).*` or `(r).*` denotes.
 * @throws {DatabaseError} INVALID_QUERY
 */
export function fieldsOf(
  { row, name, _location }: ExprField,
  context: ExpressionContext,
  bind: Bind,
): readonly BoundOutput[] {
  if (isTableCall(row)) {
    const columns = expandedColumns(row, context, bind);
    if (columns.length > 1) return columns.map(columnOutput);
  }
  const value = bind(row, context);
  const fields = fieldsOfValue(value);
  if (fields !== undefined) return fields;
  const { type } = value;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot read ${name === "*" ? "the columns" : `column "${name}"`} of a value of type ` +
      `${typeName(type)}: this type has no columns`,
    {
      position: _location.start,
      ...(type.kind === "json"
        ? { hint: "to read a field of a JSON value, use -> 'name' or ->> 'name'" }
        : {}),
    },
  );
}

function isTableCall(row: Expr): row is ExprCall {
  if (row.type !== "call" || row.over !== undefined) return false;
  return row.function.schema === undefined && isTableFunction(row.function.name);
}

/** Returns the columns that a call in a select list yields for each row. */
function expandedColumns(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): readonly BoundColumn[] {
  const { name } = call.function;
  const { expansions, statement } = context;
  const position = call._location.start;
  if (expansions === undefined) throw setElsewhere(name, context, call);
  if (call.distinct !== undefined || call.orderBy !== undefined || call.filter !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} with DISTINCT, ORDER BY or FILTER: it is not an aggregate function`,
      { position },
    );
  }
  const args = boundInOrder(call, namedTableForm(name), (arg) => bind(arg, context));
  const { columns, made } = boundCall(name, args, call);
  if (columns.some(({ domain }) => domain !== undefined)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot call ${name} in ${context.clause}: the row type has fields of domain types, ` +
        "whose conditions are checked only if the call is in FROM",
      { position, hint: "call the function in FROM" },
    );
  }
  const found: ExpansionCall = {
    made,
    columns: columns.map((column) =>
      statement.newColumn({
        name: columns.length === 1 ? name : (column.name ?? name),
        type: column.type,
      }),
    ),
  };
  const known = expansions.known.find(found);
  if (known === undefined) {
    expansions.calls.push(found);
    expansions.known.add(found);
  }
  return (known ?? found).columns;
}

interface BoundCall {
  readonly made: BoundTableFunction;
  readonly columns: readonly ResultColumn[];
}

function boundCall(
  name: string,
  args: readonly BoundExpression[],
  node: ExprCall | FromCall,
): BoundCall {
  const found = fittingOf(args, (given) => resolveTableFunction(name, given));
  if (found === undefined) return scalarCall(name, args, node);
  const { form } = found;
  const columns = columnsOf(name, { form, types: found.types, node });
  const shape = {
    types: found.types,
    columns: columns.map((column) => ({ name: column.name ?? name, type: column.type })),
  };
  const cast = args.map((arg, i) => castArgument(arg, { to: found.types[i] ?? arg.type, node }));
  const made: BoundTableFunction = {
    name,
    args: computedArgs(name, form, cast),
    seesNull: form.seesNull === true,
    width: columns.length,
    rows: (values) => form.rows(values, shape),
  };
  return { made, columns };
}

/** Returns the arguments of a call, or the array that its form computes from them. */
function computedArgs(
  name: string,
  { compute, seesNull }: TableForm,
  args: readonly BoundExpression[],
): readonly BoundExpression[] {
  if (compute === undefined) return args;
  const type: DataType = { kind: "array", element: { kind: "row", fields: [] } };
  const rows: BoundExpression = {
    kind: "call",
    type,
    name: `rows of ${name}`,
    args,
    evaluate: compute,
    seesNull: seesNull === true,
    volatility: "stable",
  };
  return [rows];
}

function columnsOf(
  name: string,
  { form, node, types }: { form: TableForm; types: readonly DataType[]; node: ExprCall | FromCall },
): readonly ResultColumn[] {
  const definitions = "columnDefinitions" in node ? node.columnDefinitions : undefined;
  const position = node._location.start;
  if (form.columns !== "defined") {
    if (definitions === undefined) return form.columns(types) ?? [];
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot define the columns of ${name} here: the function itself determines its columns`,
      {
        position,
      },
    );
  }
  if (definitions === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} without a column definition list: its columns depend on the call`,
      {
        position,
        hint: `add a column definition list, as in ${name}(…) AS x (id INT, name TEXT)`,
      },
    );
  }
  return definitions.map(definedColumn);
}

/** Returns the column that a list of column definitions describes. */
export function definedColumn({ dataType, name: { name } }: ColumnDefinition): CallColumn {
  const domain = domainOf(dataType);
  return { name, type: resolveType(dataType), ...(domain === undefined ? {} : { domain }) };
}

/**
 * Binds a scalar function in FROM. It yields a single row.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
function scalarCall(
  name: string,
  args: readonly BoundExpression[],
  node: ExprCall | FromCall,
): BoundCall {
  const types = args.map(({ type }) => type);
  const { rangeType } = node;
  const overloads = rangeType === undefined ? overloadsNamed(name) : constructorsOf(rangeType);
  const found = fittingOf(args, (given) => resolveAmong(overloads, given));
  if (found === undefined) {
    throw unknownFunction(name, types, node);
  }
  const { argumentTypes, overload, result } = found;
  const value: BoundExpression = {
    kind: "call",
    type: result,
    name,
    args: args.map((arg, i) => castArgument(arg, { to: argumentTypes[i] ?? arg.type, node })),
    evaluate: (values, deps) => overload.evaluate(values, deps, argumentTypes),
    seesNull: overload.seesNull === true,
    volatility: overload.volatility,
  };
  const made: BoundTableFunction = {
    name,
    args: [value],
    seesNull: true,
    width: 1,
    rows: (values) => [values],
  };
  return { made, columns: [{ name: undefined, type: result }] };
}
