/** Resolves column references through the names in scope. */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import { BOOLEAN } from "../../types/mod.ts";
import type { ExprRef, SelectedColumn } from "../parse/ast/ast.ts";
import type { BoundRelation } from "./bound.ts";
import type { BoundColumn, BoundExpression } from "./bound_expressions.ts";
import { insteadOfFunction } from "./other_names.ts";

/**
 * The place of a relation in a bound FROM. The relation in this place may be replaced while the
 * query is being bound.
 */
export interface RelationNode {
  readonly kind: "relation";
  relation: BoundRelation;
}

/** The names that a FROM item adds to the scope. */
export interface ScopeRelation {
  /** The alias, or the table name if the item has no alias. */
  readonly alias: string;
  /** The namespace of a table without an alias, which makes `ns.t.c` a valid reference. */
  readonly namespace: string | undefined;
  /** The columns of the relation to which `*` expands. */
  readonly columns: readonly BoundColumn[];
  /**
   * The field names of the relation's rows, if FROM gives other names to the columns of a table or
   * view. As in PostgreSQL, a row keeps the names from the definition of the table or view.
   */
  readonly fieldNames?: readonly string[] | undefined;
  /**
   * The columns `_seq` and `_deleted` of a stored table, preceded by its hidden key if it has one.
   */
  readonly systemColumns: readonly BoundColumn[];
  /**
   * The value of a table function. The alias alone refers to this value, unless there is a column
   * of the same name.
   */
  readonly value?: BoundColumn | undefined;
  /** Binds `tableoid`; absent if the relation's rows belong to no table. */
  readonly tableOid?: (() => BoundExpression) | undefined;
  /** The place of the relation in FROM; absent if the relation is not part of FROM. */
  readonly node?: RelationNode;
  /**
   * Whether the relation is on the nullable side of an outer join, where its row may be missing.
   */
  readonly isOpen?: true;
}

/** The system column that identifies the table or partition of a row. */
const TABLE_OID = "tableoid";

/**
 * The maximum number of columns that are searched one by one. A longer list is indexed at the
 * first lookup.
 */
const SEARCHED_COLUMNS_MAX = 32;

const indexes = new WeakMap<readonly BoundColumn[], ReadonlyMap<string, readonly BoundColumn[]>>();

/**
 * Finds a column by name in several lists of columns; undefined if no list contains it.
 *
 * @throws {DatabaseError} AMBIGUOUS_COLUMN
 */
function columnOf(
  { _location, name }: ExprRef,
  lists: readonly (readonly BoundColumn[])[],
): BoundColumn | undefined {
  let found: BoundColumn | undefined;
  let count = 0;
  for (const list of lists) {
    const isLong = list.length > SEARCHED_COLUMNS_MAX;
    for (const column of isLong ? (indexOf(list).get(name) ?? []) : list) {
      if (column.name !== name) continue;
      found ??= column;
      count += 1;
    }
  }
  if (count < 2) return found;
  throw ambiguous({ _location, name }, count);
}

function ambiguous(
  { _location, name }: Pick<ExprRef, "_location" | "name">,
  count: number,
): DatabaseError {
  return new DatabaseError(
    "AMBIGUOUS_COLUMN",
    `Cannot resolve column "${name}": ${count} tables in FROM have a column with this name`,
    { position: _location.start, hint: "qualify the column with its table, as in table.column" },
  );
}

function indexOf(columns: readonly BoundColumn[]): ReadonlyMap<string, readonly BoundColumn[]> {
  const known = indexes.get(columns);
  if (known !== undefined) return known;
  const index = Map.groupBy(columns, ({ name }) => name);
  indexes.set(columns, index);
  return index;
}

function columnsOfAll(relations: readonly ScopeRelation[]): readonly BoundColumn[] {
  const [first] = relations;
  // Relations are usually added one by one, in which case no list has to be copied.
  if (first !== undefined && relations.length === 1) return first.columns;
  return relations.flatMap(({ columns }) => columns);
}

export class Scope {
  readonly relations: readonly ScopeRelation[];
  /**
   * The columns to which unqualified names may refer and which `*` selects, in order. Columns
   * merged by USING or NATURAL appear once.
   */
  readonly visible: readonly BoundColumn[];

  /**
   * The items of the enclosing select list. Their aliases are not columns here, but error messages
   * mention them.
   */
  readonly #selected: readonly SelectedColumn[];

  constructor(
    relations: readonly ScopeRelation[],
    visible: readonly BoundColumn[] = columnsOfAll(relations),
    selected: readonly SelectedColumn[] = [],
  ) {
    this.relations = relations;
    this.visible = visible;
    this.#selected = selected;
  }

  /**
   * Returns the column to which a reference resolves.
   * @throws {DatabaseError} COLUMN_NOT_FOUND, AMBIGUOUS_COLUMN, TABLE_NOT_FOUND
   */
  resolve(ref: ExprRef): BoundColumn {
    const found = this.find(ref);
    if (found !== undefined) return found;
    throw this.#notFound(ref);
  }

  /**
   * Like `resolve`, but returns undefined for a name that may belong to an outer query: an unknown
   * column, or a table that is not in this FROM.
   */
  lookup(ref: ExprRef): BoundColumn | undefined {
    const { table } = ref;
    if (table === undefined) return this.find(ref);
    const relation = this.relationNamed(table);
    if (relation === undefined) return undefined;
    const found = columnOf(ref, [relation.columns, relation.systemColumns]);
    if (found !== undefined) return found;
    throw this.#notFound(ref);
  }

  /** Whether a reference begins with the name of a relation that has no such column. */
  lacksColumn({ _location, name, table }: ExprRef): boolean {
    const relation = table && this.relationNamed(table);
    if (relation === undefined) return false;
    const { columns, systemColumns } = relation;
    return columnOf({ type: "ref", name, _location }, [columns, systemColumns]) === undefined;
  }

  /** Like `resolve`, but returns undefined if the column does not exist. */
  find(ref: ExprRef): BoundColumn | undefined {
    if (ref.table !== undefined) {
      const { columns, systemColumns } = this.relationOf(ref, ref.table);
      return columnOf(ref, [columns, systemColumns]);
    }
    const lists = [this.visible];
    for (const { systemColumns } of this.relations) lists.push(systemColumns);
    return columnOf(ref, lists) ?? this.#valueNamed(ref);
  }

  /**
   * Returns the value of `tableoid`; undefined if a reference means anything else.
   *
   * @param presenceOf Returns a column that is NULL only where an outer join found no row.
   * @throws {DatabaseError} AMBIGUOUS_COLUMN
   */
  tableOid(
    ref: ExprRef,
    presenceOf: (relation: ScopeRelation) => BoundExpression,
  ): BoundExpression | undefined {
    const { name, table } = ref;
    if (name !== TABLE_OID) return undefined;
    const given = table === undefined ? this.relations : [this.relationNamed(table)];
    if (given.some((each) => each?.columns.some((column) => column.name === name) === true))
      return undefined;
    const [relation, ...others] = given.filter((each) => each?.tableOid !== undefined);
    if (others.length > 0) throw ambiguous(ref, others.length + 1);
    const value = relation?.tableOid?.();
    if (relation === undefined || value === undefined || relation.isOpen !== true) return value;
    const when: BoundExpression = {
      kind: "is",
      type: BOOLEAN,
      test: "null",
      negated: true,
      operand: presenceOf(relation),
    };
    return { kind: "case", type: value.type, branches: [{ when, value }], otherwise: undefined };
  }

  /** Returns the relation to whose row `t` or `t.*` refers, even if there is also a column `t`. */
  rowNamed({ name, star, table }: ExprRef): ScopeRelation | undefined {
    if (table !== undefined) return star === true ? this.relationNamed(table) : undefined;
    return this.relations.find(({ alias }) => alias === name);
  }

  /** Returns a scope with the same names, for use on the nullable side of an outer join. */
  opened(): Scope {
    const relations = this.relations.map((relation) => ({ ...relation, isOpen: true as const }));
    return new Scope(relations, this.visible);
  }

  /**
   * Returns a scope with the same names for the clauses of a query that has the given select list.
   */
  beside(selected: readonly SelectedColumn[] | undefined): Scope {
    return new Scope(this.relations, this.visible, selected);
  }

  #valueNamed({ name }: ExprRef): BoundColumn | undefined {
    return this.relations.find(({ alias, value }) => alias === name && value !== undefined)?.value;
  }

  /**
   * Returns the relation to which `t.c` or `ns.t.c` refers.
   * @throws {DatabaseError} TABLE_NOT_FOUND
   */
  relationOf(
    node: { readonly _location: { readonly start: number } },
    table: { readonly name: string; readonly schema?: string | undefined },
  ): ScopeRelation {
    const relation = this.relationNamed(table);
    if (relation !== undefined) return relation;
    const name = table.schema === undefined ? table.name : `${table.schema}.${table.name}`;
    const renamed = this.relations.find(({ columns }) => isOfTable(columns, table));
    throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find table "${name}": it is not in FROM`, {
      position: node._location.start,
      ...this.#hintOfTable(table.name, renamed),
    });
  }

  #hintOfTable(name: string, renamed: ScopeRelation | undefined): { readonly hint?: string } {
    if (renamed !== undefined)
      return { hint: `in this query, the table is called "${renamed.alias}"` };
    if (this.relations.length === 0) return { hint: NO_FROM };
    const isColumn = this.visible.some((column) => column.name === name);
    return isColumn ? { hint: `to read a field of the column, write ${name} ->> 'field'` } : {};
  }

  /** Returns the relation to which `t.c` or `ns.t.c` refers; undefined if this FROM has none. */
  relationNamed(table: {
    readonly name: string;
    readonly schema?: string | undefined;
  }): ScopeRelation | undefined {
    return this.relations.find(
      ({ alias, namespace }) =>
        alias === table.name && (table.schema === undefined || table.schema === namespace),
    );
  }

  #notFound(ref: ExprRef): DatabaseError {
    const names = this.relations.flatMap(({ columns }) => columns.map(({ name }) => name));
    const near = nearestName(ref.name, names);
    const shown = ref.table === undefined ? ref.name : `${ref.table.name}.${ref.name}`;
    const { start: position, end } = ref._location;
    // The text of a reference is longer than the column name only if the name is quoted.
    const isQuoted = ref.table === undefined && end - position > ref.name.length;
    const isAlias =
      ref.table === undefined && this.#selected.some(({ alias }) => alias?.name === ref.name);
    const hint = isAlias
      ? ALIAS
      : near !== undefined
        ? `did you mean "${near}"?`
        : isQuoted
          ? "double quotes enclose names; write strings in single quotes"
          : this.relations.length === 0
            ? `${NO_FROM}; write strings in single quotes`
            : insteadOfFunction(ref.name);
    return new DatabaseError(
      "COLUMN_NOT_FOUND",
      `Cannot find column "${shown}"`,
      hint === undefined ? { position } : { position, hint },
    );
  }
}

/** Whether columns belong to the table with the given name, whatever its alias in FROM. */
function isOfTable(
  columns: readonly BoundColumn[],
  { name, schema }: { readonly name: string; readonly schema?: string | undefined },
): boolean {
  const table = columns[0]?.origin?.table;
  return table?.name === name && (schema === undefined || schema === table.namespace);
}

const ALIAS =
  "this is an alias from the select list, which can be used only in ORDER BY and GROUP BY, and " +
  "only as a whole expression; repeat the aliased expression, or select from a subquery that " +
  "defines the alias";

const NO_FROM = "the query has no FROM; write FROM namespace.table";
