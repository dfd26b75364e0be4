/**
 * Binds calls to user-defined functions, by putting the function's query in place of the call.
 * Plans, rights, policies and live queries therefore never see a call.
 *
 *     f(a)            (query of f)            a scalar subquery, or just its expression
 *     FROM f(a)       FROM LATERAL (query)    a relation
 *     SELECT f(a)     the rows of ARRAY(query), for a function that returns a set
 *
 * The arguments are outer references of the query, so each is evaluated once per call.
 */

import { defined } from "../../../base/assert.ts";
import { counted } from "../../../base/counted.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { FunctionEntry, Routine } from "../../../catalog/mod.ts";
import {
  type ArrayValue,
  BOOLEAN,
  type DataType,
  elementsOf,
  INT,
  type Row,
  type RowValue,
  TEXT,
} from "../../../types/mod.ts";
import type { ExprCall, QName } from "../../parse/ast/ast.ts";
import { type CallableRoutine, type ExpressionContext, type StatementBinding } from "../binding.ts";
import type { BoundOutput, BoundSelect, BoundTableFunction } from "../bound.ts";
import type { BoundExpression, OuterReference } from "../bound_expressions.ts";
import {
  columnOutput,
  columnValue,
  plainSelect,
  selectFrom,
  selectFromQuery,
} from "../bound_nodes.ts";
import { castTo } from "../expression/casts.ts";
import { checkedParts, checkedWhole } from "../expression/domains.ts";
import { fieldsOfValue, valueOfRow } from "../expression/row_values.ts";
import { valueOf } from "../expression/subquery_binder.ts";
import { arrayTypeOf } from "../expression/types.ts";
import { hasSubquery, isVolatile, mapChildren } from "../walk.ts";
import { OuterReferences, RoutineArguments } from "./correlation.ts";
import type { ActualTypes } from "./polymorphic_types.ts";
import { isPlainSelect } from "./query_walk.ts";
import {
  columnsOf,
  isInput,
  isOutput,
  type RoutineCall,
  type RoutineColumn,
  returnsRow,
  typeIn,
  valueType,
} from "./routine_resolution.ts";

/**
 * Binds the query of a function being defined, with unknown arguments.
 *
 * @param options.actual The types that replace polymorphic types.
 * @throws {DatabaseError} If the query has an error, or does not return the declared result.
 */
export function boundDefinition(
  routine: Routine,
  {
    bindQuery,
    actual,
    node,
    statement,
  }: Pick<CallableRoutine, "bindQuery"> & {
    readonly actual: ActualTypes;
    readonly node: Pick<ExprCall, "_location"> & { readonly name: QName };
    readonly statement: StatementBinding;
  },
): BoundSelect {
  const callable = {
    name: routine.name,
    routine,
    defaults: [],
    routinesNamed: undefined,
    bindQuery,
  };
  const args = routine.parameters.filter(isInput).map(({ type }): BoundExpression => {
    const known = typeIn(type, { actual, node });
    return { kind: "outer", type: known, id: statement.newColumn({ name: "", type: known }).id };
  });
  const { _location, name } = node;
  const call: ExprCall = { type: "call", function: name, args: [], _location };
  const outputs = routine.parameters.filter(isOutput);
  const columns = columnsOf(routine, outputs, { actual, node });
  const type = valueType(routine, columns, outputs);
  return boundQuery({ callable, args, columns, type, actual, node: call }, (argument) => argument, {
    mark: () => () => undefined,
    statement,
  });
}

/** Binds the query of a called function. Its outputs become the columns of the result. */
function boundQuery(
  call: RoutineCall,
  read: (argument: BoundExpression) => BoundExpression,
  place: QueryPlace,
): BoundSelect {
  return conforming(writtenQuery(call, read, place), call, place.statement);
}

interface QueryPlace {
  readonly mark: () => () => void;
  readonly statement: StatementBinding;
}

/** Binds the query of a called function with the outputs that it has. */
function writtenQuery(
  { args, callable, node }: RoutineCall,
  read: (argument: BoundExpression) => BoundExpression,
  { mark, statement }: QueryPlace,
): BoundSelect {
  const { routine } = callable;
  const inputs = routine.parameters.filter(isInput);
  const values = args.map((argument, i) => ({
    name: inputs[i]?.name,
    value: (): BoundExpression => read(argument),
  }));
  const outer = new RoutineArguments(statement, { name: routine.name, args: values, mark });
  return callable.bindQuery(outer, node);
}

/**
 * Casts the outputs of a query to the columns of the result. A single row value provides all
 * columns.
 *
 * @throws {DatabaseError} INVALID_DEFINITION, TYPE_MISMATCH
 */
function conforming(
  query: BoundSelect,
  call: RoutineCall,
  statement: StatementBinding,
): BoundSelect {
  const { columns, node } = call;
  if (columns === undefined) return withOutputs(query, settledOutputs(query.outputs), statement);
  const [only] = query.outputs;
  const isWhole = query.outputs.length === 1 && only?.expression.type.kind === "row";
  if (isWhole && returnsRow(call)) {
    const whole = selectFromQuery(query, statement);
    const row = defined(
      whole.outputs[0],
      "function call: query wrapped around the body lost its output",
    ).expression;
    return { ...whole, outputs: castOutputs(fieldsOfValue(row) ?? [], call) };
  }
  if (query.outputs.length === columns.length) {
    return withOutputs(query, castOutputs(query.outputs, call), statement);
  }
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot call function ${call.callable.name}: its query returns ` +
      `${counted(query.outputs.length, "column")}, but must return ${columns.length}`,
    { position: node._location.start },
  );
}

function settledOutputs(outputs: readonly BoundOutput[]): BoundOutput[] {
  return outputs.map(({ expression, name }) => ({
    name,
    expression:
      expression.type.kind === "unknown"
        ? castTo(expression, { to: TEXT, mode: "implicit", node: undefined })
        : expression,
  }));
}

function castOutputs(outputs: readonly BoundOutput[], call: RoutineCall): BoundOutput[] {
  const { callable, columns = [], node } = call;
  if (outputs.length !== columns.length) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot call function ${callable.name}: its query returns a row of ` +
        `${counted(outputs.length, "column")}, but must return ${columns.length}`,
      { position: node._location.start },
    );
  }
  return outputs.map(({ expression }, i) => {
    const column = defined(
      columns[i],
      "function call: body returns more columns than were declared",
    );
    return {
      name: column.name ?? callable.routine.name,
      expression: checkedWhole(
        castTo(expression, { to: column.type, mode: "assignment", node }),
        column,
      ),
    };
  });
}

/**
 * Replaces the outputs of a query. A query with DISTINCT is nested first, because a cast inside
 * DISTINCT could make different rows equal.
 */
function withOutputs(
  query: BoundSelect,
  outputs: readonly BoundOutput[],
  statement: StatementBinding,
): BoundSelect {
  const isCast = outputs.some(({ expression }, i) => expression !== query.outputs[i]?.expression);
  if (!isCast || query.distinct === "none") return { ...query, outputs };
  const whole = selectFromQuery(query, statement);
  const cast = outputs.map(({ expression, name }, i) => ({
    name,
    expression: castTo(
      defined(whole.outputs[i], "function call: query wrapped around the body lost an output")
        .expression,
      {
        to: expression.type,
        mode: "assignment",
        node: undefined,
      },
    ),
  }));
  return { ...whole, outputs: cast };
}

/** Binds a call to a function that returns a single value or a single row. */
export function routineValue(call: RoutineCall, context: ExpressionContext): BoundExpression {
  const { callable, node } = call;
  const { statement } = context;
  if (callable.program !== undefined) return programCall(call, callable.program, statement);
  const outerReferences = new OuterReferences(context);
  const query = queryOver(call, outerReferences, statement);
  const inlined = inlineValue(query, call, outerReferences.list);
  const isFinished = inlined !== undefined && !(statement.isWithinSteps && hasSubquery(inlined));
  if (isFinished) return strict(call, inlined);
  if (statement.isWithinSteps && callable.entry !== undefined) {
    statement.bindAgain(node);
    const { outputs } = writtenQuery(call, readThrough(outerReferences), {
      mark: () => outerReferences.mark(),
      statement,
    });
    return programCall(call, asProgram(callable.entry, outputs.length > 1), statement);
  }
  const one = firstRow(query, statement);
  const single = returnsRow(call) ? asRow(one, call, statement) : one;
  const { type } = defined(
    single.outputs[0],
    "function call: function body has no output",
  ).expression;
  const value = valueOf(
    { query: single, outerReferences, context, node },
    { type, form: { kind: "scalar" } },
  );
  return strict(call, value);
}

const asPrograms = new WeakMap<FunctionEntry, FunctionEntry>();

/** Returns a function with a single query as a program, which a single value can call. */
function asProgram(entry: FunctionEntry, isRow: boolean): FunctionEntry {
  let program = asPrograms.get(entry);
  if (program === undefined) {
    const row = `SELECT ${isRow ? "result" : "*"} FROM (\n${entry.sql}\n) AS result LIMIT 1`;
    program = {
      ...entry,
      routine: { ...entry.routine, program: "plpgsql" },
      sql: `#variable_conflict use_column\nBEGIN RETURN (${row}); END`,
    };
    asPrograms.set(entry, program);
  }
  return program;
}

/** Binds a call to a program. If the program returns a set, the value is an array of rows. */
function programCall(
  call: RoutineCall,
  entry: FunctionEntry,
  statement: StatementBinding,
): BoundExpression {
  const { args, callable, node } = call;
  callable.enter?.(node);
  const { start: position } = node._location;
  statement.requirements.push({ action: "call-program", name: callable.name, position });
  const { isSet, name, volatility } = callable.routine;
  const columns = call.columns?.map((column) => ({ ...column, name: column.name ?? name }));
  if (columns === undefined) throw withoutColumns(call);
  const isRow = returnsRow(call);
  const row: DataType =
    call.type?.kind === "row" && isRow ? call.type : { kind: "row", fields: columns };
  const value = isRow ? row : defined(columns[0], "function call: result column has no type").type;
  const program = { entry, types: args.map(({ type }) => type), columns, isRow, isSet };
  const type = isSet ? arrayTypeOf({ kind: "row", fields: columns }) : value;
  const made: BoundExpression = {
    kind: "call",
    type,
    name: `${callable.name} ${entry.viewId}`,
    args,
    evaluate: (values, { programs }) => programs.call(program, values),
    seesNull: !callable.routine.isStrict,
    // The body of a program may read tables, so even an immutable program is not evaluated ahead
    // of the statement.
    volatility: volatility === "volatile" ? "volatile" : "stable",
    program,
  };
  return checkedParts(made, type);
}

function withoutColumns({ callable: { name }, node }: RoutineCall): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot call ${name} without a column definition list: it returns records without fixed ` +
      "columns",
    { position: node._location.start, hint: `write SELECT * FROM ${name}(…) AS r (a INT, b TEXT)` },
  );
}

/** Returns the rows of a call to a set-returning program, as a query. */
function programRows(
  call: RoutineCall,
  entry: FunctionEntry,
  statement: StatementBinding,
): BoundSelect {
  const rows = programCall(call, entry, statement);
  const { columns: fields = [] } = call;
  const columns = fields.map((field) =>
    statement.newColumn({ name: field.name ?? call.callable.routine.name, type: field.type }),
  );
  const made: BoundTableFunction = {
    name: call.callable.name,
    args: [rows],
    seesNull: false,
    width: columns.length,
    rows: ([list = null]) => elementsOf(list as ArrayValue).map((row) => (row as RowValue).cells),
  };
  return selectFrom(
    { kind: "function", functions: [made], hasOrdinality: false, alias: "", columns },
    columns.map(columnOutput),
  );
}

/**
 * Binds the query of a called function, which reads the arguments as outer references. Constant
 * arguments are inserted directly. A volatile argument is evaluated even if the query does not
 * read it.
 */
function queryOver(
  call: RoutineCall,
  outer: OuterReferences,
  statement: StatementBinding,
): BoundSelect {
  const query = boundQuery(call, readThrough(outer), { mark: () => outer.mark(), statement });
  for (const argument of call.args) if (isVolatile(argument)) outer.referTo(argument);
  return query;
}

/** Returns the function that passes an argument to the query of a function. */
function readThrough(outer: OuterReferences): (argument: BoundExpression) => BoundExpression {
  return (argument) =>
    argument.kind === "constant" || argument.kind === "slot" ? argument : outer.referTo(argument);
}

/** Limits a query to its first row, unless the query can return at most one row anyway. */
function firstRow(query: BoundSelect, statement: StatementBinding): BoundSelect {
  const isSingle =
    (isPlainSelect(query) && query.from === undefined) ||
    (query.isAggregated && query.groupBy.length === 0 && query.groupingSets === undefined);
  if (isSingle && query.expansions.length === 0) return query;
  const limit: BoundExpression = { kind: "constant", type: INT, value: 1 };
  const isLimited = query.limit !== undefined || query.withTies;
  return isLimited ? { ...selectFromQuery(query, statement), limit } : { ...query, limit };
}

/** Combines the outputs of a query into a single row value. */
function asRow(query: BoundSelect, call: RoutineCall, statement: StatementBinding): BoundSelect {
  const whole = query.distinct === "none" ? query : selectFromQuery(query, statement);
  return {
    ...whole,
    outputs: [{ name: call.callable.routine.name, expression: rowOf(whole, call) }],
  };
}

function rowOf({ outputs }: BoundSelect, { columns, type }: RoutineCall): BoundExpression {
  const fields = outputs.map(({ expression, name }, i) => ({
    name: columns?.[i]?.name ?? name,
    value: expression,
  }));
  const row = valueOfRow({ fields, presence: undefined });
  return type?.kind === "row" ? { ...row, type } : row;
}

/**
 * Returns the expression that replaces a call, if the function's query merely computes an
 * expression; undefined if the function has to remain a query. The argument replaces the
 * parameter, so a parameter must occur exactly once, unless evaluating its argument costs nothing.
 */
function inlineValue(
  query: BoundSelect,
  call: RoutineCall,
  references: readonly OuterReference[],
): BoundExpression | undefined {
  const { from, isAggregated, outputs, where } = query;
  const [only] = outputs;
  const isExpression = from === undefined && where === undefined && !isAggregated;
  if (!isExpression || !isPlainSelect(query) || only === undefined) return undefined;
  // A strict function tests its arguments for NULL before it reads them, so each is read more than
  // once.
  if (isStrict(call) && !call.args.every(isFree)) return undefined;
  const counts = new Map<number, number>();
  const replaced = (part: BoundExpression): BoundExpression => {
    const found = part.kind === "outer" ? references.find(({ id }) => id === part.id) : undefined;
    if (found === undefined) return mapChildren(part, replaced);
    counts.set(found.id, (counts.get(found.id) ?? 0) + 1);
    return found.value;
  };
  const value = replaced(returnsRow(call) ? rowOf(query, call) : only.expression);
  const isOnce = references.every(({ id, value: each }) => isFree(each) || counts.get(id) === 1);
  return isOnce ? value : undefined;
}

function isStrict({ callable }: RoutineCall): boolean {
  return callable.routine.isStrict;
}

/** Whether evaluating an expression costs nothing. If so, it may be evaluated several times. */
function isFree(expression: BoundExpression): boolean {
  switch (expression.kind) {
    case "constant":
    case "slot":
    case "column":
    case "outer":
      return true;
    case "cast":
      return isFree(expression.operand);
    default:
      return false;
  }
}

/** Wraps the value of a strict function so that it is NULL if any argument is NULL. */
function strict(call: RoutineCall, value: BoundExpression): BoundExpression {
  const when = missingArgument(call);
  if (when === undefined) return value;
  const { type } = value;
  const nothing: BoundExpression = { kind: "constant", type, value: null };
  return { kind: "case", type, branches: [{ when, value: nothing }], otherwise: value };
}

/**
 * Returns a condition that is true if an argument of a strict function is NULL; undefined if no
 * argument can be NULL.
 */
function missingArgument(call: RoutineCall): BoundExpression | undefined {
  if (!isStrict(call)) return undefined;
  const operands = call.args
    .filter((each) => each.kind !== "constant" || each.value === null)
    .map(
      (operand): BoundExpression => ({
        kind: "is",
        type: BOOLEAN,
        test: "null",
        negated: false,
        operand,
      }),
    );
  if (operands.length === 0) return undefined;
  return operands.length === 1 ? operands[0] : { kind: "or", type: BOOLEAN, operands };
}

/** A call to a user-defined function, bound as a table function for select lists and ROWS FROM. */
export interface MadeRoutine {
  readonly made: BoundTableFunction;
  readonly columns: readonly RoutineColumn[];
  /** Whether the columns form a row. If false, the only column is the function's value. */
  readonly isRow: boolean;
}

/**
 * Binds a function call as a table function over an array of its rows. The last column is never
 * NULL, which distinguishes rows of NULLs from the missing rows of a shorter result.
 */
export function routineRows(call: RoutineCall, context: ExpressionContext): MadeRoutine {
  const { callable, node } = call;
  const { statement } = context;
  if (callable.program !== undefined && callable.routine.isSet) {
    return madeOfProgram(call, programCall(call, callable.program, statement));
  }
  const outerReferences = new OuterReferences(context);
  const bound =
    callable.program === undefined
      ? queryOver(call, outerReferences, statement)
      : oneRow(call, context);
  const query = callable.routine.isSet ? bound : firstRow(bound, statement);
  const single = asRow(query, call, statement);
  const element = defined(single.outputs[0], "function call: function body has no output")
    .expression.type;
  const rows = valueOf(
    { query: single, outerReferences, context, node },
    { type: arrayTypeOf(element), form: { kind: "array", ofArrays: false } },
  );
  const columns = query.outputs.map(({ expression, name }, i) => {
    const column = call.columns?.[i];
    return { name: column === undefined ? name : column.name, type: expression.type };
  });
  const made: BoundTableFunction = {
    name: callable.name,
    args: [strict(call, rows)],
    seesNull: false,
    width: columns.length + 1,
    rows: ([list = null]) => rowsOf(list as ArrayValue),
  };
  return { made, columns, isRow: returnsRow(call) };
}

/** Returns the rows of a call to a program. The call itself is bound as an array of rows. */
function madeOfProgram(call: RoutineCall, rows: BoundExpression): MadeRoutine {
  const { callable, columns = [] } = call;
  const made: BoundTableFunction = {
    name: callable.name,
    args: [rows],
    seesNull: false,
    width: columns.length + 1,
    rows: ([list = null]) => rowsOf(list as ArrayValue),
  };
  return { made, columns, isRow: returnsRow(call) };
}

function rowsOf(list: ArrayValue): Row[] {
  return elementsOf(list).map((row) => (row as RowValue).cells.concat(true));
}

/** Returns the rows of a function call in FROM, as a query. */
export function routineRelation(
  call: RoutineCall,
  { context, mark }: { readonly context: ExpressionContext; readonly mark: () => () => void },
): { readonly query: BoundSelect; readonly isRow: boolean } {
  const { callable } = call;
  const { statement } = context;
  const isRow = returnsRow(call);
  if (!callable.routine.isSet) return { query: oneRow(call, context), isRow };
  if (callable.program !== undefined) {
    return { query: programRows(call, callable.program, statement), isRow };
  }
  const isPlain = call.args.every(isFree);
  const columns = call.args.map(({ type }) => statement.newColumn({ name: "", type }));
  const ids = call.args.map(({ type }) => statement.newColumn({ name: "", type }).id);
  const read = (argument: BoundExpression): BoundExpression => {
    const id = ids[call.args.indexOf(argument)];
    if (isPlain || id === undefined) return argument;
    return { kind: "outer", type: argument.type, id };
  };
  const query = boundQuery(call, read, { mark, statement });
  const when = missingArgument({ ...call, args: call.args.map(read) });
  const rows = when === undefined ? query : filtered(query, when, statement);
  return {
    query: isPlain ? rows : besideArguments(rows, { call, columns, ids, statement }),
    isRow,
  };
}

function filtered(
  query: BoundSelect,
  when: BoundExpression,
  statement: StatementBinding,
): BoundSelect {
  return {
    ...selectFromQuery(query, statement),
    where: { kind: "not", type: BOOLEAN, operand: when },
  };
}

/**
 * Joins the function's query to a single row that contains the arguments of the call, so that each
 * argument is evaluated once, no matter how many times the query reads it.
 */
function besideArguments(
  query: BoundSelect,
  {
    call,
    columns,
    ids,
    statement,
  }: {
    readonly call: RoutineCall;
    readonly columns: readonly ReturnType<StatementBinding["newColumn"]>[];
    readonly ids: readonly number[];
    readonly statement: StatementBinding;
  },
): BoundSelect {
  const made = query.outputs.map(({ expression, name }) =>
    statement.newColumn({ name, type: expression.type }),
  );
  return plainSelect({
    from: {
      kind: "join",
      join: "cross",
      left: {
        kind: "relation",
        relation: { kind: "values", rows: [call.args], alias: "", columns },
      },
      right: { kind: "relation", relation: { kind: "query", query, alias: "", columns: made } },
      condition: undefined,
      outerReferences: ids.map((id, i) => ({
        id,
        value: columnValue(defined(columns[i], "function call: argument has no column")),
      })),
    },
    outputs: made.map((column) => ({ name: column.name, expression: columnValue(column) })),
  });
}

/**
 * Returns the only row of a function that does not return a set. The row is NULL if the function's
 * query returns no row.
 */
function oneRow(call: RoutineCall, context: ExpressionContext): BoundSelect {
  const { statement } = context;
  const value = routineValue(call, context);
  const { name } = call.callable.routine;
  const single = plainSelect({ from: undefined, outputs: [{ name, expression: value }] });
  if (!returnsRow(call)) return single;
  const column = statement.newColumn({ name, type: value.type });
  const relation = { kind: "query", query: single, alias: "", columns: [column] } as const;
  return selectFrom(relation, fieldsOfValue(columnValue(column)) ?? []);
}
