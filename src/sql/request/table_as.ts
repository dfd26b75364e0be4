/**
 * Implements CREATE TABLE … AS and SELECT … INTO. The table is first created with the columns of
 * the query; its rows are then inserted in one commit, and may be read in a reader thread.
 *
 * If the INSERT fails, the table is dropped again. Other users see the table without rows until the
 * commit.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { type Catalog } from "../../catalog/mod.ts";
import { typeName } from "../../types/mod.ts";
import type {
  CreateTableAsStatement,
  CreateTableStatement,
  DropTableStatement,
  InsertStatement,
  SelectFromStatement,
  SelectStatement,
} from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { PARSE_LIMITS, parseStatements } from "../parse/parser.ts";
import { nameText, qnameText } from "../parse/print/print_expressions.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { DefiningStatement } from "../rights/statement_kinds.ts";

/** Returns the definition of the table without its columns. */
export function tableOf(node: CreateTableAsStatement): CreateTableStatement {
  const { _location, ifNotExists, kind, name, options } = node;
  return { type: "create table", kind, name, ifNotExists, columns: [], options, _location };
}

/** Returns the query without the system columns that `*` would include in a separate statement. */
export function rowsOf({ _location, query }: CreateTableAsStatement): SelectStatement {
  const around = parsed("SELECT * FROM (SELECT 1) AS rows", "select");
  const [item] = around.from ?? [];
  if (item?.type !== "statement") throw new Error("the text reads a subquery");
  return {
    ...relocated<SelectFromStatement>(around, _location),
    from: [{ ...item, statement: query, _location }],
  };
}

export interface TableAsSteps {
  readonly catalog: Pick<Catalog, "table">;
  /** The namespace in which CREATE TABLE AS looks up unqualified names. */
  readonly namespace: string;
  readonly prepare: (query: SelectStatement) => Prepared;
  readonly define: (node: DefiningStatement) => Promise<StatementResult>;
  readonly insert: (node: InsertStatement) => Promise<StatementResult>;
}

/** Runs CREATE TABLE AS. @throws {DatabaseError} */
export async function createTableAs(
  node: CreateTableAsStatement,
  { catalog, define, insert, namespace, prepare }: TableAsSteps,
): Promise<StatementResult> {
  const { _location, name, query, withData } = node;
  const found = (): number | undefined =>
    catalog.table(name.schema ?? namespace, name.name)?.tableId;
  const isThere = found() !== undefined;
  const created = await define(definitionOf(node, prepare(rowsOf(node))));
  // The table may already exist only if the statement says IF NOT EXISTS.
  if (isThere || !withData) return created;
  const tableId = found();
  try {
    const into = relocated(parsed(`INSERT INTO ${qnameText(name)} SELECT 1`, "insert"), _location);
    const { lastSeq, rowCount } = await insert({ ...into, insert: query });
    const message = `Table ${name.schema ?? namespace}.${name.name} created with ${rowCount} row(s)`;
    return { ...created, message, rowCount, lastSeq: lastSeq ?? null };
  } catch (error) {
    const names = [{ ...name, _location }];
    const drop: DropTableStatement = { type: "drop table", names, _location };
    if (tableId !== undefined && found() === tableId) await define(drop);
    throw error;
  }
}

/** Returns the definition of a table for the rows of a query. @throws {DatabaseError} */
function definitionOf(node: CreateTableAsStatement, prepared: Prepared): CreateTableStatement {
  const { _location, columnNames = [] } = node;
  if (prepared.kind !== "query") throw new Error("CREATE TABLE … AS reads a query");
  const fields = defined(prepared.fields, "a query must have fields");
  if (columnNames.length > fields.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot name ${columnNames.length} columns: the query has ${fields.length}`,
      { position: columnNames[0]?._location.start },
    );
  }
  const columns = fields.map(({ name }, i) => {
    const type = prepared.types[i];
    const shown = type === undefined || type.kind === "unknown" ? "TEXT" : typeName(type);
    return `${nameText(columnNames[i]?.name ?? name)} ${shown}`;
  });
  const table = parsed(`CREATE TABLE copy (${columns.join(", ")})`, "create table");
  return { ...tableOf(node), columns: relocated(table, _location).columns };
}

/** Parses SQL text that the server has generated, of any length. */
function parsed<Type extends "create table" | "insert" | "select">(
  text: string,
  type: Type,
): Extract<ReturnType<typeof parseStatements>[number], { type: Type }> {
  const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
  const [statement] = parseStatements(text, limits);
  if (statement?.type !== type) throw new Error(`the text is not a ${type}`);
  return statement as Extract<typeof statement, { type: Type }>;
}
