/**
 * Parses CREATE, REFRESH, ALTER and DROP MATERIALIZED VIEW. CREATE, ALTER and DROP become
 * statements about tables, because a table contains the rows of a materialized view.
 */
import { DatabaseError } from "../../base/errors.ts";
import { parseAlterTable } from "./alter.ts";
import type {
  AlterOwnerStatement,
  AlterTableStatement,
  CreateTableAsStatement,
  DropTableStatement,
  RefreshStatement,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfNotExists, parseDropTable, refuseTableClauses } from "./ddl.ts";
import { parseOptions } from "./options.ts";
import { parseQuery } from "./select.ts";
import { acceptData } from "./table_as.ts";

/** Parses the rest of a statement after `CREATE MATERIALIZED VIEW`. */
export function parseCreateMaterialized(cursor: Cursor, start: number): CreateTableAsStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = cursor.qname("a materialized view");
  const columnNames = cursor.is("(") ? cursor.nameList("a column") : undefined;
  if (!cursor.is("as")) refuseTableClauses(cursor);
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  if (!cursor.is("as")) refuseTableClauses(cursor);
  cursor.expect("as");
  const at = cursor.start;
  const query = parseQuery(cursor);
  const materialized = { query, source: cursor.text.slice(at, cursor.end) };
  const withData = acceptData(cursor);
  const _location = cursor.since(start);
  const kind = "shared";
  const before = { kind, name, ifNotExists, columnNames, options } as const;
  return { type: "create table as", ...before, query, materialized, withData, _location };
}

/** Parses a statement that begins with REFRESH. */
export function parseRefresh(cursor: Cursor, start: number): RefreshStatement {
  cursor.expectAll("refresh", "materialized", "view");
  const concurrently = cursor.accept("concurrently") ? true : undefined;
  const name = cursor.qname("a materialized view");
  const at = cursor.start;
  const withData = cursor.is("with") ? acceptData(cursor) : undefined;
  if (concurrently === true && withData === false) {
    throw new DatabaseError("INVALID_SQL", "Cannot combine CONCURRENTLY with WITH NO DATA", {
      position: at,
      hint: "omit CONCURRENTLY",
    });
  }
  return {
    type: "refresh materialized view",
    name,
    concurrently,
    withData,
    _location: cursor.since(start),
  };
}

/** Parses the rest of a statement after `ALTER MATERIALIZED VIEW`. */
export function parseAlterMaterialized(
  cursor: Cursor,
  start: number,
): AlterOwnerStatement | AlterTableStatement {
  const node = parseAlterTable(cursor, start, undefined);
  if (node.type === "alter owner") return { ...node, kind: "materialized view" };
  if (node.type !== "alter table") return cursor.refuse("partitions of a materialized view");
  return { ...node, isMaterialized: true };
}

/** Parses the rest of a statement after `DROP MATERIALIZED VIEW`. */
export function parseDropMaterialized(cursor: Cursor, start: number): DropTableStatement {
  return { ...parseDropTable(cursor, start, undefined), isMaterialized: true };
}
