/**
 * Binds WITH: named queries, including recursive ones.
 *
 * A WITH entry is bound once and may be read in many places. Each entry can refer to earlier
 * entries. With RECURSIVE, all entries can refer to each other, and an entry that refers to itself
 * reads the rows that its last step produced.
 */
import { assert, defined } from "../../../base/assert.ts";
import { DatabaseError, withDetails } from "../../../base/errors.ts";
import type { DataType } from "../../../types/mod.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import type {
  FromTable,
  SelectFromUnion,
  SelectStatement,
  WithBinding,
  WithStatement,
} from "../../parse/ast/ast.ts";
import { isChangeNode, isChanging } from "../../parse/ast/query_nodes.ts";
import { directPartsOf, isPart, partsOf } from "../../parse/ast/tree_parts.ts";
import { type Correlation, notAvailable, type StatementBinding } from "../binding.ts";
import type { BoundCte, BoundFrom, BoundRecursion, BoundRelation, BoundSelect } from "../bound.ts";
import { columnOutput, selectFrom, selectFromQuery } from "../bound_nodes.ts";
import { settled } from "../expression/expression_binder.ts";
import { declaredOf, PassedOn } from "./correlation.ts";
import { isVolatileQuery, readsOuterColumns } from "./query_walk.ts";
import { recursiveOutputs, widened } from "./recursive_types.ts";
import { extendedUnion } from "./search_cycle.ts";
import { boundNow, type CteEntry, type SelectDeps } from "./select_deps.ts";
import { setOperationOf } from "./set_binder.ts";

/** Binds a WITH entry that is a change. The entries before the change are in scope. */
export type BindChangingEntry = (binding: WithBinding, deps: SelectDeps) => CteEntry;

/**
 * Returns the dependencies for binding the query after WITH.
 *
 * @param bindChanging Binds an entry that is a change; absent where WITH may contain only queries.
 * @throws {DatabaseError}
 */
export function depsWith(
  node: WithStatement,
  deps: SelectDeps,
  bindChanging?: BindChangingEntry,
): SelectDeps {
  requireOwnNames(node);
  const isRecursive = node.type === "with recursive";
  let { ctes } = deps;
  for (const binding of isRecursive ? inOrderOfReading(node.bind) : node.bind) {
    const inner: SelectDeps = { ...deps, ctes };
    const entry = isChanging(binding.statement)
      ? (bindChanging ?? refuseChange)(binding, isRecursive ? withItself(binding, inner) : inner)
      : bindEntry(binding, inner, isRecursive);
    ctes = { entry, others: ctes };
  }
  return { ...deps, ctes };
}

function requireOwnNames({ bind }: WithStatement): void {
  const names = new Set<string>();
  for (const { alias } of bind) {
    if (names.has(alias.name)) {
      throw new DatabaseError(
        "INVALID_QUERY",
        `Cannot define "${alias.name}" twice in the same WITH clause`,
        {
          position: alias._location.start,
          hint: "give the WITH entries different names",
        },
      );
    }
    names.add(alias.name);
  }
}

/**
 * Adds a WITH entry that is a change to its own scope as unreadable, because a change must not
 * read the rows that it returns.
 */
function withItself({ alias: { name } }: WithBinding, deps: SelectDeps): SelectDeps {
  return withEntry(deps, { kind: "forbidden", name });
}

function refuseChange({ alias, statement }: WithBinding): never {
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot change rows in "${alias.name}": INSERT, UPDATE and DELETE are allowed only in the ` +
      "outermost WITH clause",
    {
      position: statement._location.start,
      hint: "move the WITH entry to the beginning of the whole statement",
    },
  );
}

/** Returns the query of a WITH entry, which must not be a change. */
function queryOf({ statement }: WithBinding): SelectStatement {
  assert(!isChangeNode(statement), "WITH binder: data-modifying entry was bound as a query");
  return statement;
}

function bindEntry(binding: WithBinding, deps: SelectDeps, isRecursive: boolean): CteEntry {
  const inner: SelectDeps = { ...deps, isOutermost: false, keepsUntyped: false };
  const bind = (outer: Correlation | undefined): BoundSelect =>
    isRecursive
      ? bindRecursive(binding, { ...inner, outer })
      : hintingAtRecursive(binding, () => boundNow(queryOf(binding), { ...inner, outer }));
  if (!isRecursive) requireNoWalk(binding);
  const { name, _location } = binding.alias;
  const { height, query } = deps.statement.named(() => bind(deps.outer), {
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
  return { kind: "query", name, names, cte, height, outer: deps.outer, bind };
}

/**
 * Adds a hint to the error about an unknown table with the same name as the WITH entry, because
 * the author probably meant the entry itself.
 */
function hintingAtRecursive(
  { alias, statement }: WithBinding,
  bind: () => BoundSelect,
): BoundSelect {
  try {
    return bind();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== "TABLE_NOT_FOUND") throw error;
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

/**
 * Returns the column names of a WITH entry.
 * @throws {DatabaseError}
 */
export function namesOf(
  { alias, columnNames }: WithBinding,
  { outputs }: Pick<BoundSelect, "outputs">,
): string[] {
  if (columnNames !== undefined && columnNames.length > outputs.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot name ${columnNames.length} columns of "${alias.name}": its query returns only ` +
        outputs.length,
      { position: alias._location.start, hint: "write at most one name per column" },
    );
  }
  return outputs.map((output, i) => columnNames?.[i]?.name ?? output.name);
}

/**
 * Binds `a UNION [ALL] b`, in which b may read the recursive WITH entry itself. No other kind of
 * query may do so.
 */
function bindRecursive(binding: WithBinding, deps: SelectDeps): BoundSelect {
  const query = queryOf(binding);
  if (query.type === "with" || query.type === "with recursive") {
    const inner = inOwnWith(query, binding, deps);
    if (inner !== undefined) return inner;
  }
  const isUnion = query.type === "union" || query.type === "union all";
  const isBare = isUnion && query.orderBy === undefined && query.limit === undefined;
  const isWalk = binding.search !== undefined || binding.cycle !== undefined;
  if (isWalk) {
    if (!isBare) throw notRecursive(binding);
    return bindWalk(query, binding, deps);
  }
  if (!isBare) {
    const entry: CteEntry = { kind: "forbidden", name: binding.alias.name };
    return boundNow(query, withEntry(deps, entry));
  }
  return bindUnion(query, binding, deps);
}

/**
 * Binds a recursive query with the columns of SEARCH and CYCLE. The first side of its union is
 * bound twice, because its column names are needed before the rewriting.
 */
function bindWalk(query: SelectFromUnion, binding: WithBinding, deps: SelectDeps): BoundSelect {
  const restore = countsAround(deps);
  const entry: CteEntry = { kind: "forbidden", name: binding.alias.name };
  const names = namesOf(binding, boundNow(query.left, withEntry(deps, entry)));
  deps.statement.bindAgain(query.left);
  restore();
  const extended = extendedUnion(query, binding, names);
  return bindUnion(extended, { ...binding, columnNames: undefined }, deps);
}

/**
 * Refuses SEARCH and CYCLE in a WITH entry that is not recursive.
 * @throws {DatabaseError} INVALID_QUERY
 */
function requireNoWalk(binding: WithBinding): void {
  if (binding.search !== undefined || binding.cycle !== undefined) throw notRecursive(binding);
}

function notRecursive({ alias }: WithBinding): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use SEARCH or CYCLE with "${alias.name}": the WITH entry is not recursive`,
    { position: alias._location.start, hint: "write WITH RECURSIVE name AS (… UNION ALL …)" },
  );
}

/**
 * Moves the inner WITH of `WITH s … a UNION [ALL] b` into the scope of both sides, so that the
 * union can be bound as a recursive query. Returns undefined if s has the same name as the
 * recursive entry.
 */
function inOwnWith(
  node: WithStatement,
  binding: WithBinding,
  deps: SelectDeps,
): BoundSelect | undefined {
  const { name } = binding.alias;
  if (isChangeNode(node.in) || node.bind.some(({ alias }) => alias.name === name)) return undefined;
  const inner = depsWith(node, withEntry(deps, { kind: "forbidden", name }));
  return bindRecursive({ ...binding, statement: node.in }, inner);
}

function withEntry(deps: SelectDeps, entry: CteEntry): SelectDeps {
  return { ...deps, ctes: { entry, others: deps.ctes } };
}

function bindUnion(query: SelectFromUnion, binding: WithBinding, deps: SelectDeps): BoundSelect {
  const { name } = binding.alias;
  const { statement } = deps;
  const untyped: SelectDeps = { ...deps, keepsUntyped: true };
  const left = boundNow(query.left, withEntry(untyped, { kind: "forbidden", name }));
  const first: BoundSelect = {
    ...left,
    outputs: left.outputs.map((output) => ({ ...output, expression: settled(output.expression) })),
  };
  const names = namesOf(binding, first);
  const side = boundUntilWide(first, names, { query, name, deps: untyped });
  // Neither side of the union reads the WITH entry, so the query is an ordinary union, whose
  // column types are common to both sides.
  if (!side.isRecursive) requireNoWalk(binding);
  if (!side.isRecursive) return setOperationOf(query, [left, side.next], deps);
  const { next, recursion, types } = side;
  const columns = names.map((column, i) =>
    statement.newColumn({
      name: column,
      type: defined(types[i], "WITH binder: column has no type"),
    }),
  );
  if (query.type !== "union all") {
    for (const { type } of columns) requireOrder(type, "UNION", query.right._location.start);
  }
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

/** The bound recursive side of a union, with the final column types of both sides. */
interface RecursiveSide {
  readonly next: BoundSelect;
  readonly recursion: BoundRecursion;
  readonly types: readonly DataType[];
  /** Whether either side of the union reads the recursive entry. */
  readonly isRecursive: boolean;
}

/** Binds the recursive side repeatedly until no column needs to be wider. */
function boundUntilWide(
  first: BoundSelect,
  names: readonly string[],
  { name, query, deps }: { query: SelectFromUnion; name: string; deps: SelectDeps },
): RecursiveSide {
  let types: readonly DataType[] = first.outputs.map(({ expression }) => expression.type);
  const restore = countsAround(deps);
  for (let round = 0; ; round += 1) {
    const recursion: BoundRecursion = { name };
    const working: CteEntry = {
      kind: "working",
      name,
      columns: names.map((column, i) => ({
        name: column,
        type: defined(types[i], "WITH binder: column has no type"),
      })),
      recursion,
      outer: deps.outer,
      references: { count: 0 },
    };
    const next = boundNow(query.right, withEntry(deps, working));
    const side = { next, recursion, types, isRecursive: working.references.count > 0 };
    if (!side.isRecursive) return side;
    checkForm(side, working.references.count, { first, query });
    const given = next.outputs.map(({ expression }) => expression.type);
    const wider = widened(types, given, round);
    if (wider === types) return side;
    deps.statement.bindAgain(query.right);
    restore();
    types = wider;
  }
}

/**
 * Returns a function that restores the read counts of outer WITH entries, so that reads are not
 * counted twice when a side is bound again.
 */
function countsAround({ ctes }: SelectDeps): () => void {
  const counts = new Map<{ count: number }, number>();
  for (let list = ctes; list !== undefined; list = list.others) {
    const { entry } = list;
    if (entry.kind === "forbidden" || entry.kind === "changed") continue;
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
      `the two parts of the WITH entry have ${first.outputs.length} and ` +
        `${next.outputs.length} columns`,
      query.right,
    );
  }
}

/**
 * Replaces the outputs of one side of a recursive union. Casts are applied outside DISTINCT, which
 * must compare the original values.
 */
function withOutputs(
  query: BoundSelect,
  outputsOf: (query: BoundSelect) => BoundSelect["outputs"],
  statement: StatementBinding,
): BoundSelect {
  const source = query.distinct === "none" ? query : selectFromQuery(query, statement);
  return { ...source, outputs: outputsOf(source) };
}

/** Looks up an unqualified name in FROM among the WITH entries. */
export function findEntry(item: FromTable, deps: SelectDeps): CteEntry | undefined {
  if (item.name.schema !== undefined) return undefined;
  for (let list = deps.ctes; list !== undefined; list = list.others) {
    if (list.entry.name === item.name.name) return list.entry;
  }
  return undefined;
}

/**
 * Returns a WITH entry as a relation. Each call creates new columns for the relation.
 * @throws {DatabaseError}
 */
export function relationOfEntry(
  entry: CteEntry,
  item: FromTable,
  { outer, statement }: SelectDeps,
): BoundRelation {
  const alias = item.name.alias ?? item.name.name;
  if (entry.kind === "forbidden") {
    throw recursiveForm(
      `"${entry.name}" is read outside the recursive part, which follows UNION`,
      item,
    );
  }
  if (entry.kind === "working") {
    // A WITH entry that is bound again in a subquery has already been counted as read where it was
    // declared.
    const isDirect = entry.outer === outer;
    if (isDirect) entry.references.count += 1;
    else if (declaredOf(outer) !== entry.outer) {
      throw recursiveForm(`"${entry.name}" is read in a subquery`, item);
    }
    const columns = entry.columns.map((column) => statement.newColumn(column));
    return { kind: "working", recursion: entry.recursion, alias, columns };
  }
  if (entry.kind === "changed") {
    if (entry.columns === undefined) throw withoutReturning(entry.name, item);
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
  // A subquery evaluates the outer references of a WITH entry itself, so the entry is bound again
  // as part of the subquery.
  if (cte.isVolatile) {
    throw notAvailable(item, "a volatile WITH entry that reads outer columns in a subquery");
  }
  const query = entry.bind(new PassedOn(entry.outer, outer));
  return { kind: "query", query, isEntry: true, alias, columns };
}

function withoutReturning(name: string, item: FromTable): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot read "${name}": the statement in this WITH entry has no RETURNING clause`,
    {
      position: item._location.start,
      hint: "to read the rows that it wrote, add RETURNING * to it",
    },
  );
}

function recursiveForm(
  why: string,
  node: { readonly _location: { readonly start: number } },
): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot run a recursive query: ${why}`, {
    position: node._location.start,
    hint:
      "write it as: first query UNION [ALL] a query that reads the WITH entry exactly once, in " +
      "FROM",
  });
}

/**
 * Describes the first forbidden place in which a query reads its own recursion; undefined if there
 * is none. The forbidden places are the nullable side of an outer join, the right side of EXCEPT,
 * either side of INTERSECT ALL or EXCEPT ALL, and inside a query that aggregates. In most of them,
 * more rows in one step could mean fewer rows in the next, and an empty step could still produce
 * rows, so the recursion might never end. INTERSECT ALL and EXCEPT ALL depend on how many times a
 * row occurs in a step. A WITH entry that reads the recursion contains the rows of a single step,
 * so it may be read anywhere.
 */
function refusedPlaceOf(query: BoundSelect, recursion: BoundRecursion): string | undefined {
  return placeInQuery(query, recursion, undefined);
}

function placeInQuery(
  query: BoundSelect,
  recursion: BoundRecursion,
  around: string | undefined,
): string | undefined {
  // GROUP BY is allowed, because an empty step has no groups. Without grouping keys, even an empty
  // step yields a row, so the query must not read the recursion.
  const isOver = query.aggregates.length > 0 || (query.isAggregated && query.groupBy.length === 0);
  return placeIn(query.from, recursion, isOver ? (around ?? "a query that aggregates") : around);
}

function placeIn(
  from: BoundFrom | undefined,
  recursion: BoundRecursion,
  around: string | undefined,
): string | undefined {
  if (from === undefined) return undefined;
  if (from.kind === "join") {
    const open = around ?? "the nullable side of an outer join";
    const left = placeIn(from.left, recursion, from.join === "full" ? open : around);
    const isOpen = from.join === "left" || from.join === "full";
    return left ?? placeIn(from.right, recursion, isOpen ? open : around);
  }
  const { relation } = from;
  switch (relation.kind) {
    case "working":
      return relation.recursion === recursion ? around : undefined;
    case "query":
      if (relation.isEntry === true) return undefined;
      return placeInQuery(relation.query, recursion, around);
    case "set": {
      const isCounted = relation.isAll && relation.operator !== "union";
      const before = isCounted ? (around ?? `${relation.operator.toUpperCase()} ALL`) : around;
      const behind = relation.operator === "except" ? (around ?? "EXCEPT") : before;
      return (
        placeInQuery(relation.left, recursion, before) ??
        placeInQuery(relation.right, recursion, behind)
      );
    }
    default:
      return undefined;
  }
}

/**
 * Returns the entries of WITH RECURSIVE in the order in which they are bound: each entry follows
 * the entries that it reads, even if those are written later. The written order is kept if it
 * already satisfies this condition. Entries that read each other in a cycle are refused.
 */
function inOrderOfReading(entries: readonly WithBinding[]): readonly WithBinding[] {
  const places = new Map(entries.map(({ alias }, place) => [alias.name, place]));
  const read = entries.map(({ alias, statement }) => {
    const names = new Set<string>();
    addNamesRead(statement, new Set(), names);
    // A WITH entry that reads only itself is not part of a cycle with other entries, and is bound
    // as a recursive query.
    names.delete(alias.name);
    return [...names].flatMap((name) => places.get(name) ?? []);
  });
  if (read.every((each, place) => each.every((other) => other < place))) return entries;

  const readers = entries.map((): number[] => []);
  for (const [place, each] of read.entries()) {
    for (const other of each) readers[other]?.push(place);
  }
  const openCounts = read.map(({ length }) => length);
  const order = openCounts.flatMap((count, place) => (count === 0 ? [place] : []));
  for (const place of order) {
    for (const reader of readers[place] ?? []) {
      const openCount =
        defined(openCounts[reader], "WITH binder: reference from outside the WITH entries") - 1;
      openCounts[reader] = openCount;
      if (openCount === 0) order.push(reader);
    }
  }
  const inCircle = entries[openCounts.findIndex((count) => count > 0)];
  if (inCircle !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot run a recursive query: several WITH entries read each other in a cycle",
      {
        position: inCircle.alias._location.start,
        hint: "use a single WITH entry that reads itself",
      },
    );
  }
  return order.map((place) => defined(entries[place], "WITH binder: no entry at this position"));
}

/**
 * Adds the names in FROM that may refer to WITH entries: unqualified names not hidden by an inner
 * WITH.
 */
function addNamesRead(part: unknown, hidden: ReadonlySet<string>, names: Set<string>): void {
  if (!isPart(part)) return;
  if (isWith(part)) {
    const isRecursive = part.type === "with recursive";
    const all = new Set([...hidden, ...part.bind.map(({ alias }) => alias.name)]);
    const before = new Set(hidden);
    for (const { alias, statement } of part.bind) {
      addNamesRead(statement, isRecursive ? all : before, names);
      before.add(alias.name);
    }
    addNamesRead(part.in, all, names);
    return;
  }
  if (isTable(part)) {
    const { name, schema } = part.name;
    if (schema === undefined && !hidden.has(name)) names.add(name);
  }
  for (const child of directPartsOf(part)) addNamesRead(child, hidden, names);
}

function isWith(part: object): part is WithStatement {
  return "type" in part && (part.type === "with" || part.type === "with recursive");
}

function isTable(part: object): part is FromTable {
  return "type" in part && part.type === "table";
}
