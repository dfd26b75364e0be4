/**
 * WITH: named queries, also recursive ones.
 *
 * An entry is bound once and may be read at many places. Entries see the ones before them; behind
 * RECURSIVE all see each other, and an entry sees itself: the rows that its last step made.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError, withDetails } from "../../../base/errors.ts";
import type { DataType } from "../../../types/mod.ts";
import type {
  FromTable,
  SelectFromUnion,
  WithBinding,
  WithStatement,
} from "../../parse/ast/ast.ts";
import { isChangeNode } from "../../parse/ast/query_nodes.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import { type Correlation, notAvailable, type StatementBinding } from "../binding.ts";
import type { BoundCte, BoundRecursion, BoundRelation, BoundSelect } from "../bound.ts";
import { columnOutput, selectFrom, selectFromQuery } from "../bound_nodes.ts";
import { settled } from "../expression/expression_binder.ts";
import { declaredOf, PassedOn } from "./correlation.ts";
import { isVolatileQuery, readsOuterColumns } from "./query_walk.ts";
import { refusedPlaceOf } from "./recursive_form.ts";
import { recursiveOutputs, roomyColumns, widened } from "./recursive_types.ts";
import { boundNow, type CteEntry, type SelectWorld } from "./select_world.ts";
import { setOperationOf } from "./set_binder.ts";
import { inOrderOfReading } from "./with_order.ts";

/** The world of the query behind WITH. @throws {DatabaseError} */
export function worldWith(node: WithStatement, world: SelectWorld): SelectWorld {
  requireOwnNames(node);
  const isRecursive = node.type === "with recursive";
  let { ctes } = world;
  for (const binding of isRecursive ? inOrderOfReading(node.bind) : node.bind) {
    const entry = bindEntry(binding, { ...world, ctes }, isRecursive);
    ctes = { entry, others: ctes };
  }
  return { ...world, ctes };
}

function requireOwnNames({ bind }: WithStatement): void {
  const names = new Set<string>();
  for (const { alias } of bind) {
    if (names.has(alias.name)) {
      throw new DatabaseError("INVALID_QUERY", `Cannot name two entries of WITH "${alias.name}"`, {
        position: alias._location.start,
      });
    }
    names.add(alias.name);
  }
}

function bindEntry(binding: WithBinding, world: SelectWorld, isRecursive: boolean): CteEntry {
  const inner: SelectWorld = { ...world, isOutermost: false, keepsUntyped: false };
  const bind = (outer: Correlation | undefined): BoundSelect =>
    isRecursive
      ? bindRecursive(binding, { ...inner, outer })
      : hintingAtRecursive(binding, () => boundNow(binding.statement, { ...inner, outer }));
  const { name, _location } = binding.alias;
  const { height, query } = world.statement.named(() => bind(world.outer), {
    name,
    position: _location.start,
  });
  const names = namesOf(binding, query);
  const cte: BoundCte = {
    name,
    query,
    isKept: binding.materialized === true,
    isVolatile: isVolatileQuery(query),
    readsOuter: readsOuterColumns(query),
    references: { count: 0 },
  };
  return { kind: "query", name, names, cte, height, outer: world.outer, bind };
}

/** A table that is not found where the entry has its name was meant to be the entry itself. */
function hintingAtRecursive(
  { alias, statement }: WithBinding,
  bind: () => BoundSelect,
): BoundSelect {
  try {
    return bind();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.condition !== "TABLE_NOT_FOUND") throw error;
    const { position } = error;
    if (position === undefined || !readsTableAt(statement, { name: alias.name, position })) {
      throw error;
    }
    throw withDetails(error, { hint: `WITH RECURSIVE lets "${alias.name}" read itself` });
  }
}

function readsTableAt(
  statement: WithBinding["statement"],
  wanted: { readonly name: string; readonly position: number },
): boolean {
  for (const part of partsOf(statement)) {
    const item: Partial<FromTable> = part;
    if (item.type !== "table" || item.name === undefined) continue;
    const { name, schema, _location } = item.name;
    if (schema === undefined && name === wanted.name && _location.start === wanted.position) {
      return true;
    }
  }
  return false;
}

function namesOf({ alias, columnNames }: WithBinding, { outputs }: BoundSelect): string[] {
  if (columnNames !== undefined && columnNames.length > outputs.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot name ${columnNames.length} columns of "${alias.name}": there are ${outputs.length}`,
      { position: alias._location.start },
    );
  }
  return outputs.map((output, i) => columnNames?.[i]?.name ?? output.name);
}

/** `a UNION [ALL] b`, where b may read the entry itself; any other query may not. */
function bindRecursive(binding: WithBinding, world: SelectWorld): BoundSelect {
  const { statement: query } = binding;
  if (query.type === "with" || query.type === "with recursive") {
    const inner = inOwnWith(query, binding, world);
    if (inner !== undefined) return inner;
  }
  const isUnion = query.type === "union" || query.type === "union all";
  const isBare = isUnion && query.orderBy === undefined && query.limit === undefined;
  if (!isBare) {
    const entry: CteEntry = { kind: "forbidden", name: binding.alias.name };
    return boundNow(query, withEntry(world, entry));
  }
  return bindUnion(query, binding, world);
}

/**
 * Makes `WITH s … a UNION [ALL] b` readable as a recursion: both sides see s. Returns undefined if
 * s has the name of the entry.
 */
function inOwnWith(
  node: WithStatement,
  binding: WithBinding,
  world: SelectWorld,
): BoundSelect | undefined {
  const { name } = binding.alias;
  if (isChangeNode(node.in) || node.bind.some(({ alias }) => alias.name === name)) return undefined;
  const inner = worldWith(node, withEntry(world, { kind: "forbidden", name }));
  return bindRecursive({ ...binding, statement: node.in }, inner);
}

function withEntry(world: SelectWorld, entry: CteEntry): SelectWorld {
  return { ...world, ctes: { entry, others: world.ctes } };
}

function bindUnion(query: SelectFromUnion, binding: WithBinding, world: SelectWorld): BoundSelect {
  const { name } = binding.alias;
  const { statement } = world;
  const untyped: SelectWorld = { ...world, keepsUntyped: true };
  const left = boundNow(query.left, withEntry(untyped, { kind: "forbidden", name }));
  const first: BoundSelect = {
    ...left,
    outputs: left.outputs.map((output) => ({ ...output, expression: settled(output.expression) })),
  };
  const names = namesOf(binding, first);
  const side = boundUntilWide(first, names, { query, name, world: untyped });
  // Not recursive after all: an ordinary union, whose sides give each other their types.
  if (!side.isRecursive) return setOperationOf(query, [left, side.next], world);
  const { next, recursion, types } = side;
  const columns = names.map((column, i) =>
    statement.newColumn({ name: column, type: defined(types[i], "a column has its type") }),
  );
  const outputsOf = (given: BoundSelect): BoundSelect["outputs"] =>
    recursiveOutputs(given, types, { name, columnNames: names, node: query.right });
  const relation: BoundRelation = {
    kind: "recursive",
    recursion,
    isAll: query.type === "union all",
    first: withOutputs(first, outputsOf, statement),
    next: withOutputs(next, outputsOf, statement),
    alias: name,
    columns,
  };
  return selectFrom(relation, columns.map(columnOutput));
}

/** The recursive side, and the final types of both sides. */
interface RecursiveSide {
  readonly next: BoundSelect;
  readonly recursion: BoundRecursion;
  readonly types: readonly DataType[];
  /** Whether it reads the entry at all. */
  readonly isRecursive: boolean;
}

/** Binds the recursive side, and binds it again for as long as it needs wider columns. */
function boundUntilWide(
  first: BoundSelect,
  names: readonly string[],
  { name, query, world }: { query: SelectFromUnion; name: string; world: SelectWorld },
): RecursiveSide {
  let columns = roomyColumns(first.outputs.map(({ expression }) => expression.type));
  const restore = countsAround(world);
  for (let round = 0; ; round += 1) {
    const types = columns.map(({ type }) => type);
    const recursion: BoundRecursion = { name };
    const working: CteEntry = {
      kind: "working",
      name,
      columns: names.map((column, i) => ({
        name: column,
        type: defined(types[i], "a column has its type"),
      })),
      recursion,
      outer: world.outer,
      references: { count: 0 },
    };
    const next = boundNow(query.right, withEntry(world, working));
    const side = { next, recursion, types, isRecursive: working.references.count > 0 };
    if (!side.isRecursive) return side;
    checkForm(side, working.references.count, { first, query });
    const given = next.outputs.map(({ expression }) => expression.type);
    const wider = widened(columns, given, round);
    if (wider === columns) return side;
    world.statement.bindAgain(query.right);
    restore();
    columns = wider;
  }
}

/**
 * Binding again must not count further reads of outer entries. Returns a function that undoes them.
 */
function countsAround({ ctes }: SelectWorld): () => void {
  const counts = new Map<{ count: number }, number>();
  for (let list = ctes; list !== undefined; list = list.others) {
    const { entry } = list;
    if (entry.kind === "forbidden") continue;
    const references = entry.kind === "query" ? entry.cte.references : entry.references;
    counts.set(references, references.count);
  }
  return () => {
    for (const [references, count] of counts) references.count = count;
  };
}

function checkForm(
  { next, recursion }: RecursiveSide,
  readCount: number,
  { first, query }: { first: BoundSelect; query: SelectFromUnion },
): void {
  const { name } = recursion;
  if (readCount > 1) throw recursiveForm(`"${name}" is read more than once`, query.right);
  const place = refusedPlaceOf(next, recursion);
  if (place !== undefined) throw recursiveForm(`"${name}" is read in ${place}`, query.right);
  if (next.outputs.length !== first.outputs.length) {
    throw recursiveForm(
      `its sides have ${first.outputs.length} and ${next.outputs.length} columns`,
      query.right,
    );
  }
}

/** A side with changed outputs. Casts go above DISTINCT, which must compare the original values. */
function withOutputs(
  query: BoundSelect,
  outputsOf: (query: BoundSelect) => BoundSelect["outputs"],
  statement: StatementBinding,
): BoundSelect {
  const source = query.distinct === "none" ? query : selectFromQuery(query, statement);
  return { ...source, outputs: outputsOf(source) };
}

/** What an unqualified name in FROM means among the entries of WITH. */
export function findEntry(item: FromTable, world: SelectWorld): CteEntry | undefined {
  if (item.name.schema !== undefined) return undefined;
  for (let list = world.ctes; list !== undefined; list = list.others) {
    if (list.entry.name === item.name.name) return list.entry;
  }
  return undefined;
}

/** An entry as a relation, each time with columns of its own. @throws {DatabaseError} */
export function relationOfEntry(
  entry: CteEntry,
  item: FromTable,
  { outer, statement }: SelectWorld,
): BoundRelation {
  const alias = item.name.alias ?? item.name.name;
  if (entry.kind === "forbidden") {
    throw recursiveForm(`"${entry.name}" is read outside of the second side of its UNION`, item);
  }
  if (entry.kind === "working") {
    // An entry that is bound again for a subquery was already counted at its declaration.
    const isDirect = entry.outer === outer;
    if (isDirect) entry.references.count += 1;
    else if (declaredOf(outer) !== entry.outer) {
      throw recursiveForm(`"${entry.name}" is read in a subquery`, item);
    }
    const columns = entry.columns.map((column) => statement.newColumn(column));
    return { kind: "working", recursion: entry.recursion, alias, columns };
  }
  const { cte, height, names } = entry;
  statement.readTower(height);
  const columns = cte.query.outputs.map(({ expression }, i) =>
    statement.newColumn({ name: names[i] ?? "", type: expression.type }),
  );
  if (
    !cte.readsOuter ||
    entry.outer === outer ||
    outer === undefined ||
    entry.outer === undefined
  ) {
    cte.references.count += 1;
    return { kind: "cte", cte, alias, columns };
  }
  // A subquery reads what the entry reads around it: the entry is bound again, as a part of it.
  if (cte.isVolatile) {
    throw notAvailable(item, "a volatile WITH entry of outer columns in a subquery");
  }
  const query = entry.bind(new PassedOn(entry.outer, outer));
  return { kind: "query", query, isEntry: true, alias, columns };
}

function recursiveForm(
  why: string,
  node: { readonly _location: { readonly start: number } },
): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot run a recursive query: ${why}`, {
    position: node._location.start,
    hint: "the form is: a query UNION [ALL] a query that reads the entry once in FROM",
  });
}
