/**
 * Expands function calls in the expressions stored with a table: CHECK, DEFAULT, generated
 * columns, indexes and policies.
 *
 *     CHECK (app.half(n) > 2)         is stored as    CHECK (CAST(CAST(n AS int) / 2 AS int) > 2)
 *
 * Such an expression is evaluated without the catalog, and with the rights of its author. If it
 * still called the function, replacing the function could change the meaning of stored rows, or
 * the rows that a policy permits. The expression therefore contains the function's query as it was
 * when the expression was defined.
 */
import { mayReadView, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { VIEW_DEPTH_MAX, VIEWS_MAX, WRITTEN_TEXT_MAX } from "../../base/limits.ts";
import type { Catalog, FunctionEntry, RoutineParameter } from "../../catalog/mod.ts";
import { isBuiltIn } from "../bind/binding.ts";
import { typeNamesIn } from "../bind/expression/type_names.ts";
import { isInput, isOutput, placedArguments } from "../bind/query/routine_resolution.ts";
import { isVolatileFunction } from "../functions/registry.ts";
import { functionsIn } from "../names/views.ts";
import type {
  Expr,
  ExprCall,
  ExprRef,
  FromTable,
  SelectStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { holdsQuery } from "../parse/ast/query_nodes.ts";
import { changedPart, isPart, partsOf, relocated, rewritten } from "../parse/ast/tree_parts.ts";
import type { Mutable } from "../parse/cursor.ts";
import { parseExpression, parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { expressionToSql, queryText } from "../parse/print/print_queries.ts";

interface WritingPlace {
  readonly catalog: Pick<Catalog, "functionsNamed" | "namespace" | "tableById" | "viewById">;
  readonly principal: Principal;
  /** The namespace in which unqualified function names are looked up. */
  readonly namespace: string;
}

/**
 * The kinds of definitions whose SQL keeps its function calls, because it is bound with the
 * catalog.
 */
const KEPT: ReadonlySet<Statement["type"]> = new Set([
  "create aggregate",
  "create function",
  "create view",
] as const);

/** A piece of SQL in which function calls are being expanded. */
interface WrittenText extends WritingPlace {
  /** The function whose body contains the SQL; undefined for the SQL of the definition itself. */
  readonly caller: FunctionEntry | undefined;
  /** The number of functions that enclose the SQL. */
  readonly depth: number;
  /**
   * Counts a function call that has been expanded.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  readonly countCall: (call: ExprCall) => void;
  /**
   * Counts the characters of the SQL that replaces a call.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  readonly count: (characters: number, call: ExprCall) => void;
}

/**
 * Returns a definition with the function calls in its expressions expanded. The original stays
 * unchanged, because the functions may be replaced before it is bound again.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE, LIMIT_EXCEEDED
 */
export function writeFunctions<Node extends Statement>(node: Node, place: WritingPlace): Node {
  if (KEPT.has(node.type)) return node;
  const text = { ...place, caller: undefined, depth: 0, ...counters() };
  const isPolicy = node.type === "create policy" || node.type === "alter policy";
  // The query of a materialized view is bound with the catalog, like the query of an ordinary
  // view.
  const kept = node.type === "create table" ? node.materialized : undefined;
  const written = (part: object): object => {
    if (part === kept) return part;
    const isHolder = !Array.isArray(part) && (hasSource(part) || (isPolicy && part === node));
    if (!isHolder) return changedPart(part, written);
    let copy: Record<string, unknown> | undefined;
    for (const [key, value] of Object.entries(part)) {
      if (!isPart(value) || key === "_location" || key === "name") continue;
      const expression = writtenIn(value, text);
      if (expression === value) continue;
      copy ??= { ...part };
      copy[key] = expression;
      if (hasSource(part)) copy["source"] = expressionToSql(expression as Expr);
    }
    return copy ?? part;
  };
  return written(node) as Node;
}

/** Whether a part of a definition contains the SQL of its expression. */
function hasSource(part: object): boolean {
  return "source" in part && typeof part.source === "string";
}

/**
 * Returns counters that limit the size of the stored SQL, which doubles with each function that
 * calls another function twice.
 */
function counters(): Pick<WrittenText, "count" | "countCall"> {
  let calls = 0;
  let total = 0;
  const requireSmall = ({ function: { name }, _location }: ExprCall): void => {
    if (calls <= VIEWS_MAX && total <= WRITTEN_TEXT_MAX) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot store a definition that calls function ${name}: it calls more than ${VIEWS_MAX} ` +
        `functions, or their bodies have more than ${WRITTEN_TEXT_MAX} characters in total`,
      { position: _location.start },
    );
  };
  return {
    count: (characters, call) => {
      total += characters;
      requireSmall(call);
    },
    countCall: (call) => {
      calls += 1;
      requireSmall(call);
    },
  };
}

/**
 * Returns a syntax tree with its function calls expanded, or the same tree if it contains no
 * calls.
 */
function writtenIn(tree: object, text: WrittenText): object {
  return rewritten(tree, (node) => {
    const isCall = "type" in node && node.type === "call";
    return isCall ? writtenCall(node as ExprCall, text) : node;
  });
}

function writtenCall(call: ExprCall, text: WrittenText): Expr {
  const { name, schema = text.namespace } = call.function;
  if (call.function.schema === undefined && isBuiltIn(name)) return call;
  const { caller, catalog, depth, principal } = text;
  const named =
    caller === undefined
      ? catalog.functionsNamed(schema, name)
      : functionsIn(caller, { namespace: schema, name }, catalog);
  const found = named
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(schema)))
    .flatMap((entry) => {
      const args = argumentsFor(entry, call, text);
      return args === undefined ? [] : [{ entry, args }];
    });
  const [only, ...others] = found;
  if (only === undefined) return call;
  if (others.length > 0) {
    throw refused(call, only.entry, "several functions with this name accept these arguments", {
      hint: "write out the function's expression instead, or rename one of the functions",
    });
  }
  if (only.entry.routine.aggregate !== undefined) {
    throw refused(call, only.entry, "it is an aggregate, which is computed from many rows", {});
  }
  if (only.entry.routine.program !== undefined) {
    throw refused(call, only.entry, "the body of the function is not a single SQL query", {
      hint: "rewrite the function as a single query with LANGUAGE sql",
    });
  }
  if (depth >= VIEW_DEPTH_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot call function ${schema}.${name}: functions are nested more than ` +
        `${VIEW_DEPTH_MAX} levels deep`,
      { position: call._location.start },
    );
  }
  const expression = parseExpression(textOf(only.entry, only.args, { call, text }));
  return relocated(expression, call._location);
}

/** Returns the context in which names in the body of a function are looked up. */
function within(entry: FunctionEntry, text: WrittenText): WrittenText {
  return { ...text, namespace: entry.searchNamespace, caller: entry, depth: text.depth + 1 };
}

/**
 * Qualifies the type names in the body of a function with the namespace in which the function
 * looks them up.
 */
function withNamespaces<Tree extends object>(tree: Tree, { searchNamespace }: FunctionEntry): Tree {
  for (const node of typeNamesIn(tree)) (node as Mutable<typeof node>).schema ??= searchNamespace;
  return tree;
}

function refused(
  call: ExprCall,
  { namespace, routine }: FunctionEntry,
  why: string,
  details: { readonly hint?: string } = {},
): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot call function ${namespace}.${routine.name} in a stored expression: ${why}`,
    { position: call._location.start, ...details },
  );
}

/**
 * Returns the argument of a call for each parameter; undefined if the call does not fit the
 * function.
 */
function argumentsFor(entry: FunctionEntry, call: ExprCall, text: WrittenText): Expr[] | undefined {
  const inputs = entry.routine.parameters.filter(isInput);
  const placed = placedArguments(call, inputs);
  const args = placed?.map((argument, i) => {
    const omitted = inputs[i]?.defaultSql;
    if (argument !== undefined || omitted === undefined) return argument;
    const parsed = withNamespaces(parseExpression(omitted), entry);
    return writtenIn(parsed, within(entry, text)) as Expr;
  });
  return args?.every((each) => each !== undefined) === true ? args : undefined;
}

interface WrittenCall {
  readonly call: ExprCall;
  readonly text: WrittenText;
}

/** An argument of a call, in the form that replaces the function's parameter. */
interface GivenArgument {
  readonly sql: string;
  readonly isVolatile: boolean;
}

/** Returns the SQL of an expression that has the same value as a call. */
function textOf(entry: FunctionEntry, args: readonly Expr[], at: WrittenCall): string {
  const { call, text } = at;
  const { routine, sql } = entry;
  const inputs = routine.parameters.filter(isInput);
  const outputs = routine.parameters.filter(isOutput);
  if (routine.isSet || outputs.length > 1 || isRow(entry)) {
    throw refused(
      call,
      entry,
      "the function returns a set of rows, but must return a single value",
    );
  }
  if (inputs.some(({ mode, type }) => mode === "variadic" || isRowType(type))) {
    throw refused(call, entry, "the function takes rows or a variable number of arguments");
  }
  text.countCall(call);
  const given = args.map((argument, i) => ({
    sql: castText(expressionToSql(argument), inputs[i]),
    isVolatile: callsVolatile(argument),
  }));
  const [parsed] = parseStatements(sql) as [SelectStatement];
  const body = writtenIn(withNamespaces(parsed, entry), within(entry, text)) as SelectStatement;
  const expression = expressionOf(body);
  const value =
    expression === undefined
      ? queriedText(entry, body, { given, ...at })
      : substitutedText(expression, { given, entry, ...at });
  const result = castText(
    value,
    outputs[0] ?? { type: routine.returns, typeName: routine.returnsName },
  );
  if (!routine.isStrict || given.length === 0) return result;
  if (given.some(({ isVolatile }) => isVolatile)) throw evaluatedTwice(call, entry);
  const isMissing = given.map((each) => `(${each.sql}) IS NULL`).join(" OR ");
  text.count(isMissing.length, call);
  return `CASE WHEN ${isMissing} THEN NULL ELSE ${result} END`;
}

function callsVolatile(argument: Expr): boolean {
  for (const part of partsOf(argument)) {
    const { function: called, type }: { type?: unknown; function?: ExprCall["function"] } = part;
    if (type === "call" && called !== undefined && isVolatileFunction(called.name)) return true;
  }
  return false;
}

function evaluatedTwice(call: ExprCall, entry: FunctionEntry): DatabaseError {
  const why = "the body of the function does not use a volatile argument exactly once";
  return refused(call, entry, why, { hint: "write out the function's expression instead" });
}

function isRowType(type: unknown): boolean {
  return typeof type === "object" && type !== null && "kind" in type && type.kind === "row";
}

function isRow({ routine: { returns } }: FunctionEntry): boolean {
  return returns === "record" || isRowType(returns);
}

/** Casts a value to the type of a parameter, unless the parameter's type depends on the call. */
function castText(
  value: string,
  to: {
    readonly type?: RoutineParameter["type"] | undefined;
    readonly typeName?: string | undefined;
  } = {},
): string {
  if (typeof to.type !== "object" || to.typeName === undefined) return `(${value})`;
  return `CAST(${value} AS ${to.typeName})`;
}

/** Returns the expression that a query computes; undefined if the query reads any relation. */
function expressionOf(query: SelectStatement): Expr | undefined {
  if (query.type !== "select") return undefined;
  const { columns = [], ...rest } = query;
  const [only, ...others] = columns;
  const isPlain = Object.entries(rest).every(
    ([key, value]) => key === "type" || key === "_location" || value === undefined,
  );
  if (!isPlain || only === undefined || others.length > 0) return undefined;
  for (const part of partsOf(only.expr)) if (holdsQuery(part)) return undefined;
  return only.expr;
}

/** Replaces the parameters of a function in an expression with the call's arguments. */
function substitutedText(
  expression: Expr,
  {
    call,
    entry,
    given,
    text,
  }: WrittenCall & { readonly given: readonly GivenArgument[]; readonly entry: FunctionEntry },
): string {
  const inputs = entry.routine.parameters.filter(isInput);
  const counts = given.map(() => 0);
  const values = given.map(({ sql }) => parseExpression(`(${sql})`));
  const written = rewritten(expression, (part) => {
    const at = Array.isArray(part) ? undefined : parameterIn(part, entry, inputs);
    const value = at === undefined ? undefined : values[at];
    if (at === undefined || value === undefined) return part;
    text.count(given[at]?.sql.length ?? 0, call);
    counts[at] = (counts[at] ?? 0) + 1;
    return value;
  });
  if (given.some(({ isVolatile }, i) => isVolatile && counts[i] !== 1)) {
    throw evaluatedTwice(call, entry);
  }
  return expressionToSql(written);
}

/** The properties of a syntax node that are read before its type is known. */
interface NodeParts {
  readonly type?: unknown;
  /** The number n of a parameter `$n`. */
  readonly index?: number;
}

/** Returns the index of the parameter to which a node refers; undefined for any other node. */
function parameterIn(
  node: object,
  { routine }: FunctionEntry,
  inputs: readonly RoutineParameter[],
): number | undefined {
  const { index, name, table, type } = node as NodeParts & Pick<Partial<ExprRef>, "name" | "table">;
  if (type === "parameter") return (index ?? 0) - 1;
  if (type !== "ref" || (table !== undefined && table.name !== routine.name)) return undefined;
  const at = inputs.findIndex((each) => each.name === name);
  return at === -1 ? undefined : at;
}

/**
 * Returns a query that has the same value as a call to a function that reads tables or has several
 * clauses.
 */
function queriedText(
  entry: FunctionEntry,
  body: SelectStatement,
  { call, given, text: { catalog } }: WrittenCall & { readonly given: readonly GivenArgument[] },
): string {
  const { routine } = entry;
  requireCurrentNames(entry, call, catalog);
  const inputs = routine.parameters.filter(isInput);
  const alias = nameText(routine.name);
  const named = (at: number): string => nameText(inputs[at]?.name ?? String(at + 1));
  const text = queryText(withTableNames(body, entry, (at) => `${alias}.${named(at)}`));
  if (given.length === 0) return `(SELECT r.v FROM (${text}) AS r (v) LIMIT 1)`;
  const values = given.map(({ sql }, i) => `${sql} AS ${named(i)}`).join(", ");
  return `(SELECT r.v FROM (SELECT ${values}) AS ${alias}, LATERAL (${text}) AS r (v) LIMIT 1)`;
}

/**
 * Requires that the tables and columns used by a function still have the names that occur in its
 * body.
 */
function requireCurrentNames(
  entry: FunctionEntry,
  call: ExprCall,
  catalog: WritingPlace["catalog"],
): void {
  const isRenamed = entry.tables.some(({ columns, renamedFrom, tableId }) => {
    const table = catalog.tableById(tableId);
    return (
      renamedFrom !== undefined ||
      columns.some(
        ({ columnId, name }) =>
          table?.columns.find((each) => each.columnId === columnId)?.name !== name,
      )
    );
  });
  if (!isRenamed) return;
  throw refused(call, entry, "a table or column that its body reads has been renamed", {
    hint: "first create the function again with CREATE OR REPLACE FUNCTION",
  });
}

/**
 * Qualifies the tables of a query, and replaces each `$n` with the column that contains its value.
 */
function withTableNames(
  query: SelectStatement,
  { searchNamespace }: FunctionEntry,
  parameter: (at: number) => string,
): SelectStatement {
  const entries = new Set<string>();
  for (const part of partsOf(query)) {
    const { bind }: { bind?: readonly { readonly alias: { readonly name: string } }[] } = part;
    for (const { alias } of bind ?? []) entries.add(alias.name);
  }
  return rewritten(query, (part) => {
    if (Array.isArray(part)) return part;
    const { index = 0, name, type } = part as NodeParts & Pick<Partial<FromTable>, "name">;
    if (type === "parameter") return parseExpression(parameter(index - 1));
    if (type !== "table" || name?.schema !== undefined || entries.has(name?.name ?? ""))
      return part;
    return { ...part, name: { ...name, schema: searchNamespace } };
  });
}
