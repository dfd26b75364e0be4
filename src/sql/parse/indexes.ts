/** Parses CREATE INDEX, ALTER INDEX and DROP INDEX. */
import { DatabaseError } from "../../base/errors.ts";
import type {
  AlterIndexStatement,
  CreateIndexStatement,
  DropIndexStatement,
  IndexedColumn,
} from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import { acceptCollation } from "./collations.ts";
import type { Cursor } from "./cursor.ts";
import {
  acceptBehaviour,
  acceptIfExists,
  acceptIfNotExists,
  acceptIncluded,
  acceptNulls,
  parseQNames,
} from "./ddl.ts";
import { parseIndexedExpression, parseIndexedPart } from "./indexed_parts.ts";
import { acceptOperatorClass } from "./operator_classes.ts";
import { parseOptions } from "./options.ts";
import { refuseIndexAlteration } from "./refused.ts";
import { Token } from "./text/lexer.ts";

/** The methods of PostgreSQL's indexes that a sorted index replaces. */
const SORTED_METHODS: ReadonlySet<string> = new Set(["hash", "brin"]);

/** Parses the rest of a statement after `CREATE [UNIQUE] INDEX`. */
export function parseCreateIndex(
  cursor: Cursor,
  start: number,
  isUnique: boolean,
): CreateIndexStatement {
  // Every index is built while other statements write, so the only effect of CONCURRENTLY is that
  // the statement cannot run in a transaction.
  const isConcurrent = acceptConcurrently(cursor);
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.is("on") && ifNotExists !== true ? undefined : cursor.name("an index");
  cursor.expect("on");
  const only = cursor.accept("only") ? true : undefined;
  const table = cursor.qname("a table");
  const written = cursor.accept("using") ? parseMethod(cursor, isUnique) : "btree";
  const method = written === "gin" ? written : undefined;
  cursor.expect("(");
  const columns: IndexedColumn[] = [];
  do {
    columns.push(method === "gin" ? parseInvertedColumn(cursor) : parseIndexedColumn(cursor));
    requireListed(cursor, columns.length, "columns of a single index");
  } while (cursor.accept(","));
  cursor.expect(")");
  const clauses = acceptClauses(cursor, written);
  const where = cursor.accept("where") ? parseIndexedExpression(cursor) : undefined;
  const _location = cursor.since(start);
  return {
    type: "create index",
    isUnique,
    ...isConcurrent,
    ...(only && { only }),
    ifNotExists,
    name,
    table,
    ...(method === undefined ? {} : { method }),
    columns,
    ...clauses,
    where,
    _location,
  };
}

/** Parses the rest of a statement after `ALTER INDEX`. */
export function parseAlterIndex(cursor: Cursor, start: number): AlterIndexStatement {
  const ifExists = acceptIfExists(cursor);
  const name = cursor.qname("an index");
  refuseIndexAlteration(cursor);
  if (cursor.acceptAll("attach", "partition")) {
    const change = { type: "attach", partition: cursor.qname("an index") } as const;
    return { type: "alter index", name, ifExists, change, _location: cursor.since(start) };
  }
  cursor.expectAll("rename", "to");
  const change = { type: "rename", to: cursor.name("an index") } as const;
  return { type: "alter index", name, ifExists, change, _location: cursor.since(start) };
}

/** Parses the rest of a statement after `DROP INDEX`. */
export function parseDropIndex(cursor: Cursor, start: number): DropIndexStatement {
  const isConcurrent = acceptConcurrently(cursor);
  const ifExists = acceptIfExists(cursor);
  const names = parseQNames(cursor, "an index");
  const cascade = acceptBehaviour(cursor);
  const _location = cursor.since(start);
  return { type: "drop index", ...isConcurrent, names, ifExists, cascade, _location };
}

function acceptConcurrently(cursor: Cursor): { readonly isConcurrent?: true } {
  return cursor.accept("concurrently") ? { isConcurrent: true } : {};
}

/**
 * Parses the name of an index method. A sorted index serves every condition that PostgreSQL answers
 * with a hash or BRIN index.
 */
function parseMethod(cursor: Cursor, isUnique: boolean): string {
  const method = cursor.name("an index method");
  if (method.name === "btree" || method.name === "gin") return method.name;
  if (SORTED_METHODS.has(method.name)) {
    if (!isUnique) return method.name;
    cursor.refuse(
      `UNIQUE in an index USING ${method.name}`,
      "write USING btree",
      method._location.start,
    );
  }
  cursor.refuse(
    `an index USING ${method.name}`,
    method.name === "hnsw" || method.name === "ivfflat"
      ? "omit the index: ORDER BY v <-> $1 LIMIT 10 reads all embeddings"
      : "write USING btree, or for words, trigrams, JSONB and arrays, USING gin",
    method._location.start,
  );
}

function parseIndexedColumn(cursor: Cursor): IndexedColumn {
  const part = parseIndexedPart(cursor);
  const collation = acceptCollation(cursor);
  acceptOperatorClass(cursor);
  const order = cursor.acceptOneOf("asc", "desc");
  const nulls = cursor.accept("nulls") ? cursor.expectOneOf("first", "last") : undefined;
  return { part, ...(collation === undefined ? {} : { collation }), order, nulls };
}

function parseInvertedColumn(cursor: Cursor): IndexedColumn {
  const part = parseIndexedPart(cursor);
  const operatorClass = cursor.kind === Token.word ? cursor.name("an operator class") : undefined;
  return operatorClass === undefined ? { part } : { part, operatorClass };
}

/** PostgreSQL's storage parameters for indexes, which have no effect here. */
const INDEX_PARAMETER =
  /^(?:fillfactor|deduplicate_items|buffering|fastupdate|gin_pending_list_limit|pages_per_range|autosummarize)$/;

function acceptParameters(cursor: Cursor): void {
  const { start } = cursor;
  cursor.expect("with");
  const options = parseOptions(cursor);
  const other = options.find(({ name }) => !INDEX_PARAMETER.test(name));
  if (other !== undefined) cursor.refuse(`the index parameter ${other.name}`, undefined, start);
  const fill = options.find(({ name }) => name === "fillfactor")?.value;
  if (fill?.type === "integer" && (fill.value < 10 || fill.value > 100)) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot use fillfactor ${fill.value}: it must be between 10 and 100`,
      { position: fill._location.start },
    );
  }
}

/**
 * Parses the clauses between the columns and the WHERE condition of an index.
 *
 * @param method The index method, as it is written.
 */
function acceptClauses(
  cursor: Cursor,
  method: string,
): Pick<CreateIndexStatement, "equalNulls" | "included"> {
  if (SORTED_METHODS.has(method) && cursor.is("include")) {
    cursor.refuse(`INCLUDE in an index USING ${method}`, "write USING btree");
  }
  const clauses = { ...acceptIncluded(cursor), ...acceptNulls(cursor) };
  if (cursor.is("with")) acceptParameters(cursor);
  if (cursor.is("tablespace")) {
    cursor.refuse("TABLESPACE", "remove it: an index is stored together with its table");
  }
  return clauses;
}
