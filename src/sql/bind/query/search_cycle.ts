/**
 * Rewrites SEARCH and CYCLE of a recursive WITH entry as columns that both sides of the union
 * compute:
 *
 *     a UNION ALL b   SEARCH DEPTH FIRST BY k SET o
 *     SELECT s.*, ARRAY[ROW(s.k)] FROM (a) s  UNION ALL  SELECT s.*, s.o || ROW(s.k) FROM (b) s
 *
 * Here, b also selects the entry's column o. SEARCH BREADTH counts the steps in a row, and CYCLE
 * stops at rows with a key that is already in the path.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type {
  AstNode,
  Expr,
  ExprRef,
  From,
  Name,
  SelectedColumn,
  SelectFromStatement,
  SelectFromUnion,
  SelectStatement,
  WithBinding,
} from "../../parse/ast/ast.ts";
import { emptySelect } from "../../parse/select_block.ts";

/**
 * The alias under which each side of the recursive union is read as a relation. No name in a
 * statement can equal it.
 */
const SIDE = "*SIDE*";

/** A column that SEARCH or CYCLE adds. */
interface AddedColumn {
  readonly name: string;
  readonly first: Expr;
  readonly next: Expr;
}

/**
 * Adds the columns of SEARCH and CYCLE to the union of a recursive WITH entry.
 *
 * @throws {DatabaseError} INVALID_QUERY
 *
 * @param names The names of the entry's columns, without the added columns.
 */
export function extendedUnion(
  query: SelectFromUnion,
  binding: WithBinding,
  names: readonly string[],
): SelectFromUnion {
  requireNames(binding, names);
  const nodes = new Nodes(query);
  const added = [...searchColumns(binding, nodes), ...cycleColumns(binding, nodes)];
  const side = (statement: SelectStatement, given: readonly string[], part: "first" | "next") => {
    const columns = [
      ...names.map((name) => nodes.selected(nodes.ofSide(name))),
      ...added.map((column) => nodes.selected(column[part], column.name)),
    ];
    return nodes.select(columns, statement, given);
  };
  const all = [...names, ...added.map(({ name }) => name)];
  return {
    ...query,
    left: side(query.left, names, "first"),
    right: side(passingOn(query.right, binding, { added, names, nodes }), all, "next"),
  };
}

function searchColumns({ search }: WithBinding, nodes: Nodes): AddedColumn[] {
  if (search === undefined) return [];
  const { by, order, set } = search;
  const keys = by.map(({ name }) => nodes.ofSide(name));
  const before = nodes.ofSide(set.name);
  if (order === "depth") {
    const row = nodes.row(keys);
    return [{ name: set.name, first: nodes.array([row]), next: nodes.binary("||", before, row) }];
  }
  const depth: Expr = { type: "field", row: before, name: "f1", ...nodes.place };
  return [
    {
      name: set.name,
      first: nodes.row([nodes.whole(0), ...keys]),
      next: nodes.row([nodes.binary("+", depth, nodes.whole(1)), ...keys]),
    },
  ];
}

function cycleColumns({ cycle }: WithBinding, nodes: Nodes): AddedColumn[] {
  if (cycle === undefined) return [];
  const { columns, mark, path } = cycle;
  const row = nodes.row(columns.map(({ name }) => nodes.ofSide(name)));
  const before = nodes.ofSide(path.name);
  const { otherwise, value } = marksOf(cycle, nodes);
  const when = nodes.binary("=", row, nodes.any(before));
  const whens = [{ when, value, ...nodes.place }];
  return [
    {
      name: mark.name,
      first: otherwise,
      next: { type: "case", whens, else: otherwise, ...nodes.place },
    },
    { name: path.name, first: nodes.array([row]), next: nodes.binary("||", before, row) },
  ];
}

function marksOf(
  { otherwise, value }: NonNullable<WithBinding["cycle"]>,
  { place }: Nodes,
): { readonly value: Expr; readonly otherwise: Expr } {
  return {
    value: value ?? { type: "boolean", value: true, ...place },
    otherwise: otherwise ?? { type: "boolean", value: false, ...place },
  };
}

/**
 * Extends the recursive side so that it also selects the added columns from the rows of the
 * previous step.
 */
function passingOn(
  side: SelectStatement,
  { alias, cycle }: WithBinding,
  {
    added,
    names,
    nodes,
  }: {
    readonly added: readonly AddedColumn[];
    readonly names: readonly string[];
    readonly nodes: Nodes;
  },
): SelectFromStatement {
  const entry = side.type === "select" ? entryIn(side.from ?? [], alias.name) : undefined;
  if (side.type !== "select" || entry === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use SEARCH or CYCLE with "${alias.name}": the recursive part must read ` +
        `"${alias.name}" in FROM`,
      {
        position: side._location.start,
        hint: "write the recursive part as a SELECT whose FROM contains the WITH entry",
      },
    );
  }
  const of = (name: string): ExprRef => nodes.of(entry, name);
  // The `*` of a recursive WITH entry does not cover the added columns, which come after all other
  // columns.
  const isStar = ({ expr }: SelectedColumn): boolean =>
    expr.type === "ref" &&
    expr.star === true &&
    (expr.table === undefined ? side.from?.length === 1 : expr.table.name === entry);
  const selected = (side.columns ?? []).flatMap((column) =>
    isStar(column) ? names.map((name) => nodes.selected(of(name))) : [column],
  );
  const columns = [...selected, ...added.map(({ name }) => nodes.selected(of(name)))];
  if (cycle === undefined) return { ...side, columns };
  const goesOn = nodes.binary("!=", of(cycle.mark.name), marksOf(cycle, nodes).value);
  const where = side.where === undefined ? goesOn : nodes.binary("AND", side.where, goesOn);
  return { ...side, columns, where };
}

/**
 * Returns the alias under which FROM reads the recursive WITH entry; undefined if FROM does not
 * read it.
 */
function entryIn(from: readonly From[], name: string): string | undefined {
  for (const item of from) {
    if (item.type === "from group" && item.alias === undefined) {
      const inner = entryIn(item.from, name);
      if (inner !== undefined) return inner;
    }
    if (item.type !== "table" || item.name.schema !== undefined) continue;
    if (item.name.name === name) return item.name.alias ?? name;
  }
  return undefined;
}

function requireNames({ cycle, search }: WithBinding, names: readonly string[]): void {
  const known = new Set(names);
  const keys: readonly (readonly Name[])[] = [search?.by ?? [], cycle?.columns ?? []];
  for (const list of keys) {
    const seen = new Set<string>();
    for (const key of list) {
      if (!known.has(key.name)) throw refused(key, "the WITH entry has no column with this name");
      if (seen.has(key.name)) throw refused(key, "it is listed more than once");
      seen.add(key.name);
    }
  }
  const added = [search?.set, cycle?.mark, cycle?.path];
  for (const name of added) {
    if (name === undefined) continue;
    if (known.has(name.name))
      throw refused(name, "the WITH entry already has a column with this name");
    known.add(name.name);
  }
}

function refused({ name, _location }: Name, why: string): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot use "${name}" in SEARCH or CYCLE: ${why}`, {
    position: _location.start,
  });
}

/** Creates syntax nodes, all with the position of the recursive union. */
class Nodes {
  readonly place: AstNode;

  constructor({ _location }: AstNode) {
    this.place = { _location };
  }

  of(table: string, name: string): ExprRef {
    return { type: "ref", table: { name: table, ...this.place }, name, ...this.place };
  }

  ofSide(name: string): ExprRef {
    return this.of(SIDE, name);
  }

  row(expressions: readonly Expr[]): Expr {
    return { type: "list", expressions, ...this.place };
  }

  array(expressions: readonly Expr[]): Expr {
    return { type: "array", expressions, ...this.place };
  }

  whole(value: number): Expr {
    return { type: "integer", value, text: String(value), ...this.place };
  }

  any(array: Expr): Expr {
    return { type: "call", function: { name: "any", ...this.place }, args: [array], ...this.place };
  }

  binary(op: "||" | "+" | "=" | "!=" | "AND", left: Expr, right: Expr): Expr {
    return { type: "binary", op, left, right, ...this.place };
  }

  selected(expr: Expr, name?: string): SelectedColumn {
    const alias = name === undefined ? undefined : { name, ...this.place };
    return { expr, alias, ...this.place };
  }

  select(
    columns: readonly SelectedColumn[],
    statement: SelectStatement,
    names: readonly string[],
  ): SelectFromStatement {
    const columnNames = names.map((name) => ({ name, ...this.place }));
    const from: From = { type: "statement", statement, alias: SIDE, columnNames, ...this.place };
    return { ...emptySelect(), columns, from: [from], ...this.place };
  }
}
