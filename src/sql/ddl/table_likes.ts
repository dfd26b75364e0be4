/**
 * Implements LIKE in CREATE TABLE, which copies the current definitions of another table. The
 * columns and constraints of the other table become part of the statement, as if they were written
 * in it. Indexes and comments, for which CREATE TABLE has no syntax, are added once the table's
 * entry is complete.
 *
 * NOT NULL is always copied and foreign keys never are, as in PostgreSQL. A copied identity column
 * gets a new sequence, whereas a copied DEFAULT uses the same sequence as the original.
 */

import type { Principal } from "../../auth/mod.ts";
import {
  type Catalog,
  type ColumnEntry,
  declaredKeyOf,
  type IndexEntry,
  indexPartsOf,
  isInverted,
  operatorClassOf,
  shownColumnsOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import { columnTypeName, type TermKind } from "../../types/mod.ts";
import { parseStored, typesOf, withTypes } from "../bind/expression/type_names.ts";
import { exclusionText } from "../names/exclusion_text.ts";
import { findTable } from "../names/table_names.ts";
import type {
  AstNode,
  CreateColumnDef,
  CreateTableStatement,
  IndexedExpression,
  LikedPart,
  Name,
  TableLike,
} from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { PARSE_LIMITS, parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";
import { type IndexedTable, type WrittenIndex, withIndex } from "./index_elements.ts";
import { unqualified } from "./unqualified.ts";

interface LikeCaller {
  readonly deps: NameDeps;
  readonly principal: Principal;
  /** The namespace in which LIKE looks up unqualified names. */
  readonly namespace: string;
}

/** A table named in LIKE, and the kinds of definitions that are copied from it. */
export interface LikedTable {
  readonly table: TableEntry;
  readonly node: TableLike;
  readonly copies: (part: LikedPart) => boolean;
}

/**
 * Replaces each LIKE in a statement with the definitions of the table that it names. Returns the
 * new statement and the tables.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, INVALID_OPERATION for a view
 */
export function withLikes(
  written: CreateTableStatement,
  caller: LikeCaller,
): { readonly node: CreateTableStatement; readonly likes: readonly LikedTable[] } {
  const likes = (written.likes ?? []).map((node) => likedTable(node, caller));
  if (likes.length === 0) return { node: written, likes };
  const copies = likes.map((like) => ({ after: like.node.after, copy: copyOf(like, caller) }));
  const columnsAt = (place: number): CreateColumnDef[] =>
    copies.flatMap(({ after, copy }) => (after === place ? copy.columns : []));
  const columns = [
    ...columnsAt(0),
    ...written.columns.flatMap((column, i) => [column, ...columnsAt(i + 1)]),
  ];
  const constraints = [
    ...copies.flatMap(({ copy }) => copy.constraints ?? []),
    ...(written.constraints ?? []),
  ];
  return { node: { ...written, columns, constraints }, likes };
}

function likedTable(node: TableLike, { deps, namespace, principal }: LikeCaller): LikedTable {
  const table = findTable(deps, node.table, { namespace, node: node.table, principal });
  const copies = (part: LikedPart): boolean =>
    node.parts.findLast((each) => each.part === part || each.part === "all")?.including === true;
  return { table, node, copies };
}

/**
 * Returns the definitions that LIKE copies from a table. Their syntax nodes have the position of
 * LIKE in the statement.
 */
function copyOf({ copies, node, table }: LikedTable, caller: LikeCaller): CreateTableStatement {
  const parts = shownColumnsOf(table).map((column) =>
    columnText(table, column, { copies, caller }),
  );
  if (copies("constraints")) {
    for (const { name, sql } of table.checks) {
      parts.push(`CONSTRAINT ${nameText(name)} CHECK (${unqualified(sql)})`);
    }
  }
  if (copies("indexes")) {
    const key = declaredKeyOf(table);
    if (key !== undefined) parts.push(`PRIMARY KEY (${columnsText(table, key.columnIds)})`);
    for (const index of table.indexes ?? []) {
      const { columnIds, equalNulls, isConstraint, isPrimary } = index;
      if (!isConstraint || isPrimary === true) continue;
      if (index.isExclusion === true) {
        parts.push(exclusionText(table, index));
        continue;
      }
      const nulls = equalNulls === true ? "NULLS NOT DISTINCT " : "";
      parts.push(`UNIQUE ${nulls}(${columnsText(table, columnIds)})`);
    }
  }
  // The parser's limits are meant for requests and do not apply here, because the copied
  // definitions were already accepted when they were stored.
  const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
  const [statement] = parseStatements(`CREATE TABLE copy (${parts.join(", ")})`, limits);
  const copy = relocated(statement as CreateTableStatement, node._location);
  return withTypes(copy, typesOf(table.columns));
}

function columnText(
  table: TableEntry,
  column: ColumnEntry,
  { caller, copies }: Pick<LikedTable, "copies"> & { caller: LikeCaller },
): string {
  const { columnId, defaultSql, generatedSql, identity, name, notNull } = column;
  const parts = [nameText(name), columnTypeName(column)];
  if (notNull) parts.push("NOT NULL");
  if (identity !== undefined) {
    if (copies("identity")) {
      parts.push(`GENERATED ${identity} AS IDENTITY`, numbersText(table, columnId, caller));
    }
  } else if (generatedSql !== undefined) {
    if (copies("generated")) {
      parts.push(`GENERATED ALWAYS AS (${unqualified(generatedSql)}) STORED`);
    }
  } else if (defaultSql !== undefined && copies("defaults")) parts.push(`DEFAULT ${defaultSql}`);
  return parts.join(" ");
}

/**
 * Returns the options of a column's sequence, in parentheses; "" if all options have their
 * defaults.
 */
function numbersText({ tableId }: TableEntry, columnId: number, { deps }: LikeCaller): string {
  const sequence = deps.catalog
    .sequences()
    .find(({ ownedBy }) => ownedBy?.tableId === tableId && ownedBy.columnId === columnId);
  if (sequence === undefined) return "";
  const { cache, cycles, increment, maximum, minimum, start } = sequence;
  const range = `MINVALUE ${minimum} MAXVALUE ${maximum}`;
  const cycle = cycles ? "CYCLE" : "NO CYCLE";
  return `(INCREMENT BY ${increment} ${range} START WITH ${start} CACHE ${cache} ${cycle})`;
}

function columnNames({ columns }: Pick<TableEntry, "columns">, ids: readonly number[]): string[] {
  return ids.flatMap((id) => columns.find(({ columnId }) => columnId === id)?.name ?? []);
}

function columnsText(table: TableEntry, ids: readonly number[]): string {
  return columnNames(table, ids).map(nameText).join(", ");
}

/**
 * Returns a new table with the indexes and comments copied from other tables.
 * @throws {DatabaseError}
 */
export function withLikedParts<Table extends IndexedTable>(
  table: Table,
  likes: readonly LikedTable[],
  catalog: Pick<Catalog, "tables" | "view">,
): Table {
  return likes.reduce((next, like) => {
    const indexed = like.copies("indexes") ? withIndexes(next, like, catalog) : next;
    return like.copies("comments") ? withComments(indexed, like) : indexed;
  }, table);
}

function withIndexes<Table extends IndexedTable>(
  table: Table,
  { node: { _location }, table: source }: LikedTable,
  catalog: Pick<Catalog, "tables" | "view">,
): Table {
  const plain = (source.indexes ?? []).filter(
    ({ isConstraint, isOfPartitions }) => !isConstraint && isOfPartitions !== true,
  );
  return plain.reduce((next, index) => {
    const copy = writtenCopy(source, index, _location);
    return withIndex(next, copy, { catalog, state: "ready" });
  }, table);
}

/** Returns an index in the form of a statement that would define it, without its name. */
export function writtenCopy(
  source: TableEntry,
  index: IndexEntry,
  _location: AstNode["_location"],
): WrittenIndex {
  const written = (sql: string): IndexedExpression => {
    return { expr: parseStored(sql, source.columns), source: sql, _location };
  };
  const classNamed = (terms: TermKind): Name => ({ name: operatorClassOf(terms), _location });
  const { equalNulls, isUnique } = index;
  const columns = indexPartsOf(source, index).map(({ isExpression, name }) =>
    isExpression ? written(name) : { name, _location },
  );
  const where = index.where && written(index.where.sql);
  const position = _location.start;
  const classes = isInverted(index)
    ? indexPartsOf(source, index).map(({ terms }) => terms && classNamed(terms))
    : undefined;
  const keys = { columns, classes, isUnique, equalNulls, isConstraint: false };
  return { ...keys, where, name: undefined, position };
}

function withComments<Table extends IndexedTable>(
  table: Table,
  { copies, table: source }: LikedTable,
): Table {
  const { indexes } = table;
  const { keyComment } = source;
  return {
    ...table,
    ...(keyComment !== undefined && copies("indexes") && { keyComment }),
    columns: table.columns.map((each) =>
      commentOn(each, source.columns.find(({ name }) => name === each.name)?.comment),
    ),
    checks: table.checks.map((each) =>
      copies("constraints")
        ? commentOn(each, source.checks.find(({ name }) => name === each.name)?.comment)
        : each,
    ),
    ...(indexes !== undefined &&
      copies("indexes") && {
        indexes: indexes.map((each) => {
          const shape = shapeOf(table, each);
          const like = source.indexes?.find((index) => shapeOf(source, index) === shape);
          return commentOn(each, like?.comment);
        }),
      }),
  };
}

function shapeOf(of: Pick<TableEntry, "columns">, index: IndexEntry): string {
  const parts = indexPartsOf(of, index).map(({ name, terms }) => [name, terms]);
  const { equalNulls, isConstraint, isUnique, where } = index;
  return JSON.stringify([isConstraint, isUnique, equalNulls, parts, where?.sql]);
}

function commentOn<T extends { readonly comment?: string | undefined }>(
  entry: T,
  comment: string | undefined,
): T {
  return comment === undefined ? entry : { ...entry, comment };
}
