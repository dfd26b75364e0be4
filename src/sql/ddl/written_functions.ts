/**
 * Expands the calls of functions in the expressions that are stored with a table: CHECK, DEFAULT,
 * generated columns, indexes and policies.
 *
 *     CHECK (app.half(n) > 2)         is stored as    CHECK (CAST(CAST(n AS int) / 2 AS int) > 2)
 *
 * Such an expression is evaluated without the catalog, and with the rights of its author. If it
 * called the function, replacing the function could change the meaning of stored rows, or what a
 * policy permits. The expression therefore contains the query that the function had when the
 * expression was defined.
 */
import { mayReadView, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { VIEW_DEPTH_MAX } from "../../base/limits.ts";
import type { Catalog, FunctionEntry, RoutineParameter } from "../../catalog/mod.ts";
import { isBuiltIn } from "../bind/binding.ts";
import { isInput, isOutput, placedArguments } from "../bind/query/routine_resolution.ts";
import type {
  Expr,
  ExprCall,
  ExprRef,
  FromTable,
  SelectStatement,
  Statement,
} from "../parse/ast/ast.ts";
import { holdsQuery } from "../parse/ast/query_nodes.ts";
import { isPart, partsOf, relocated } from "../parse/ast/tree_parts.ts";
import { parseExpression, parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { expressionToSql, queryText } from "../parse/print/print_queries.ts";

interface WritingPlace {
  readonly catalog: Pick<Catalog, "functionsNamed" | "namespace" | "tableById">;
  readonly principal: Principal;
  /** The namespace of unqualified names. */
  readonly namespace: string;
}

/** Definitions whose text keeps its calls, and is bound with the catalog. */
const KEPT: ReadonlySet<Statement["type"]> = new Set(["create function", "create view"] as const);

/**
 * Writes out the functions that a definition calls in its expressions, in place.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE, LIMIT_EXCEEDED
 */
export function writeFunctions(node: Statement, place: WritingPlace): void {
  if (KEPT.has(node.type)) return;
  const isPolicy = node.type === "create policy" || node.type === "alter policy";
  for (const part of partsOf(node)) {
    const holder = part as Record<string, unknown>;
    if (typeof holder["source"] !== "string" && !(isPolicy && part === node)) continue;
    for (const [key, value] of Object.entries(holder)) {
      if (!isPart(value) || key === "_location" || key === "name") continue;
      const written = writtenIn(value, place, 0);
      if (written === value) continue;
      holder[key] = written;
      if (typeof holder["source"] === "string") holder["source"] = expressionToSql(written as Expr);
    }
  }
}

/** Returns a tree in which the calls of functions are written out; the same tree if it has none. */
function writtenIn(tree: unknown, place: WritingPlace, depth: number): unknown {
  if (!isPart(tree)) return tree;
  if (Array.isArray(tree)) {
    const items: unknown[] = tree;
    const written = items.map((each) => writtenIn(each, place, depth));
    return written.some((each, i) => each !== items[i]) ? written : tree;
  }
  // A long list of literals contains no calls.
  if ("literals" in tree && tree.literals !== undefined) return tree;
  let copy: Record<string, unknown> | undefined;
  for (const [key, value] of Object.entries(tree)) {
    const written = writtenIn(value, place, depth);
    if (written === value) continue;
    copy ??= { ...tree };
    copy[key] = written;
  }
  const node = copy ?? tree;
  const isCall = "type" in node && node.type === "call";
  return isCall ? writtenCall(node as unknown as ExprCall, place, depth) : node;
}

function writtenCall(call: ExprCall, place: WritingPlace, depth: number): Expr {
  const { name, schema = place.namespace } = call.function;
  if (call.function.schema === undefined && isBuiltIn(name)) return call;
  const { catalog, principal } = place;
  const found = catalog
    .functionsNamed(schema, name)
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(schema)))
    .flatMap((entry) => {
      const args = argumentsFor(entry, call);
      return args === undefined ? [] : [{ entry, args }];
    });
  const [only, ...others] = found;
  if (only === undefined) return call;
  if (others.length > 0) {
    throw refused(call, only.entry, "several functions of this name accept its arguments", {
      hint: "write the expression itself, or rename one of the functions",
    });
  }
  if (depth >= VIEW_DEPTH_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot call function ${schema}.${name}: functions are nested deeper than ${VIEW_DEPTH_MAX}`,
      { position: call._location.start },
    );
  }
  const expression = parseExpression(textOf(only.entry, only.args, { call, place, depth }));
  return relocated(expression, call._location);
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

/** Returns the argument of each parameter; undefined if the call does not fit the function. */
function argumentsFor({ routine }: FunctionEntry, call: ExprCall): Expr[] | undefined {
  const inputs = routine.parameters.filter(isInput);
  const placed = placedArguments(call, inputs);
  const args = placed?.map((argument, i) => {
    const text = inputs[i]?.defaultSql;
    return argument ?? (text === undefined ? undefined : parseExpression(text));
  });
  return args?.every((each) => each !== undefined) === true ? args : undefined;
}

interface WrittenCall {
  readonly call: ExprCall;
  readonly place: WritingPlace;
  readonly depth: number;
}

/** Returns the text of an expression that has the value of a call. */
function textOf(entry: FunctionEntry, args: readonly Expr[], at: WrittenCall): string {
  const { call, depth, place } = at;
  const { routine, searchNamespace } = entry;
  const inputs = routine.parameters.filter(isInput);
  const outputs = routine.parameters.filter(isOutput);
  if (routine.isSet || outputs.length > 1 || isRow(entry)) {
    throw refused(call, entry, "it returns rows, but must return one value");
  }
  if (inputs.some(({ mode, type }) => mode === "variadic" || isRowType(type))) {
    throw refused(call, entry, "it takes rows, or any number of arguments");
  }
  const given = args.map((argument, i) => castText(expressionToSql(argument), inputs[i]));
  const [query] = parseStatements(entry.sql) as [SelectStatement];
  const around = { ...place, namespace: searchNamespace };
  const body = writtenIn(query, around, depth + 1) as SelectStatement;
  const expression = expressionOf(body);
  const value =
    expression === undefined
      ? queriedText(entry, body, { given, call, place })
      : substitutedText(expression, { inputs, given, entry });
  const result = castText(
    value,
    outputs[0] ?? { type: routine.returns, typeName: routine.returnsName },
  );
  if (!routine.isStrict || given.length === 0) return result;
  const isMissing = given.map((each) => `(${each}) IS NULL`).join(" OR ");
  return `CASE WHEN ${isMissing} THEN NULL ELSE ${result} END`;
}

function isRowType(type: unknown): boolean {
  return typeof type === "object" && type !== null && "kind" in type && type.kind === "row";
}

function isRow({ routine: { returns } }: FunctionEntry): boolean {
  return returns === "record" || isRowType(returns);
}

/** Casts a value to the type of a parameter, unless the type depends on the call. */
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

/** Returns the expression that a query computes without reading anything; otherwise undefined. */
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

/** Replaces the parameters in an expression with the arguments. */
function substitutedText(
  expression: Expr,
  {
    entry,
    given,
    inputs,
  }: {
    readonly inputs: readonly RoutineParameter[];
    readonly given: readonly string[];
    readonly entry: FunctionEntry;
  },
): string {
  const replaced = (tree: unknown): unknown => {
    if (!isPart(tree)) return tree;
    if (Array.isArray(tree)) return tree.map(replaced);
    const at = parameterIn(tree, entry, inputs);
    const text = at === undefined ? undefined : given[at];
    if (text !== undefined) return parseExpression(`(${text})`);
    return mapped(tree, replaced);
  };
  return expressionToSql(replaced(expression) as Expr);
}

/** The parts of a node that are read before its type is known. */
interface NodeParts {
  readonly type?: unknown;
  /** The n of a parameter `$n`. */
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

/** Returns a query whose value is that of a function that reads tables or has several clauses. */
function queriedText(
  entry: FunctionEntry,
  body: SelectStatement,
  {
    call,
    given,
    place,
  }: { readonly given: readonly string[]; readonly call: ExprCall; readonly place: WritingPlace },
): string {
  const { routine } = entry;
  requireCurrentNames(entry, call, place);
  const inputs = routine.parameters.filter(isInput);
  const alias = nameText(routine.name);
  const named = (at: number): string => nameText(inputs[at]?.name ?? String(at + 1));
  const text = queryText(withTableNames(body, entry, (at) => `${alias}.${named(at)}`));
  if (given.length === 0) return `(SELECT r.v FROM (${text}) AS r (v) LIMIT 1)`;
  const values = given.map((each, i) => `${each} AS ${named(i)}`).join(", ");
  return `(SELECT r.v FROM (SELECT ${values}) AS ${alias}, LATERAL (${text}) AS r (v) LIMIT 1)`;
}

/** Requires that the text of a function still has the names of its tables and columns. */
function requireCurrentNames(
  entry: FunctionEntry,
  call: ExprCall,
  { catalog }: WritingPlace,
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
  throw refused(call, entry, "a table or a column that it reads has been renamed", {
    hint: "create the function again first: CREATE OR REPLACE FUNCTION",
  });
}

/** Qualifies the tables of a query, and replaces `$n` with the column that has its value. */
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
  const changed = (tree: unknown): unknown => {
    if (!isPart(tree)) return tree;
    if (Array.isArray(tree)) return tree.map(changed);
    const node = tree as NodeParts & Pick<Partial<FromTable>, "name">;
    if (node.type === "parameter") return parseExpression(parameter((node.index ?? 0) - 1));
    const copy = mapped(tree, changed);
    const { name, type } = node;
    if (type !== "table" || name?.schema !== undefined || entries.has(name?.name ?? ""))
      return copy;
    return { ...copy, name: { ...name, schema: searchNamespace } };
  };
  return changed(query) as SelectStatement;
}

/** Returns a copy of a part with changed contents. */
function mapped(part: object, change: (inside: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, change(value)]));
}
