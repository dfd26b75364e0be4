/**
 * Implements CREATE TABLE … AS and SELECT … INTO. The table is first created with the columns of
 * the query; then the query's rows are inserted in one commit. A reader thread may read these
 * rows.
 *
 * If the INSERT fails, the table is dropped again. Until the commit, other users see an empty
 * table.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import { collateClause, typeName } from "../../types/mod.ts";
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
import { fill, populationOf, type RefreshingStatement } from "./refresh.ts";

/** Returns the CREATE TABLE statement for the new table, without its columns. */
export function tableOf(node: CreateTableAsStatement): CreateTableStatement {
  const { _location, ifNotExists, kind, materialized, name, options, temporary } = node;
  const columns: CreateTableStatement["columns"] = [];
  return {
    type: "create table",
    kind,
    name,
    ifNotExists,
    columns,
    options,
    materialized,
    temporary,
    _location,
  };
}

/**
 * Returns the query without system columns, which `*` would include if the query were a separate
 * statement.
 */
export function rowsOf({ _location, query }: CreateTableAsStatement): SelectStatement {
  const around = parsed("SELECT * FROM (SELECT 1) AS rows", "select");
  const [item] = around.from ?? [];
  if (item?.type !== "statement")
    throw new Error("CREATE TABLE AS: SQL text has no subquery in FROM");
  return {
    ...relocated<SelectFromStatement>(around, _location),
    from: [{ ...item, statement: query, _location }],
  };
}

export interface TableAsSteps {
  /** Returns the current definition of a table. */
  readonly table: (path: { namespace: string; name: string }) => TableEntry | undefined;
  /** The namespace in which CREATE TABLE AS looks up unqualified names. */
  readonly namespace: string;
  readonly prepare: (node: CreateTableAsStatement) => Prepared;
  readonly define: (node: DefiningStatement) => Promise<StatementResult>;
  readonly change: (node: InsertStatement | RefreshingStatement) => Promise<StatementResult>;
}

/** Runs CREATE TABLE AS and CREATE MATERIALIZED VIEW. @throws {DatabaseError} */
export async function createTableAs(
  node: CreateTableAsStatement,
  steps: TableAsSteps,
): Promise<StatementResult> {
  const { define, prepare } = steps;
  const { _location, materialized, withData } = node;
  const name = { ...node.name, schema: node.name.schema ?? steps.namespace };
  const path = { namespace: name.schema, name: name.name };
  const found = (): TableEntry | undefined => steps.table(path);
  const isThere = found() !== undefined;
  const created = await define(definitionOf(node, prepare(node)));
  // The table can exist already only if the statement has IF NOT EXISTS.
  if (isThere || !withData) return created;
  const tableId = found()?.tableId;
  try {
    const { lastSeq, rowCount } =
      materialized === undefined
        ? await insertRows(node, steps)
        : await fillRows(node, steps, found);
    const what = materialized === undefined ? "Table" : "Materialized view";
    const message = `${what} ${name.schema}.${name.name} created with ${rowCount} row(s)`;
    return { ...created, message, rowCount, lastSeq: lastSeq ?? null };
  } catch (error) {
    const names = [{ ...name, _location }];
    const isMaterialized = materialized === undefined ? undefined : true;
    const drop: DropTableStatement = { type: "drop table", isMaterialized, names, _location };
    if (tableId !== undefined && found()?.tableId === tableId) await define(drop);
    throw error;
  }
}

function insertRows(
  { _location, name, query }: CreateTableAsStatement,
  { change }: TableAsSteps,
): Promise<StatementResult> {
  const into = relocated(parsed(`INSERT INTO ${qnameText(name)} SELECT 1`, "insert"), _location);
  return change({ ...into, insert: query });
}

function fillRows(
  { _location, name }: CreateTableAsStatement,
  { change, define }: TableAsSteps,
  table: () => TableEntry | undefined,
): Promise<StatementResult> {
  const populate = (isPopulated: boolean): Promise<StatementResult> =>
    define(populationOf(name, isPopulated, _location));
  return fill({ _location }, { change, populate, table });
}

/** Returns a table definition that fits the rows of a query. @throws {DatabaseError} */
function definitionOf(node: CreateTableAsStatement, prepared: Prepared): CreateTableStatement {
  const { _location, columnNames = [] } = node;
  if (prepared.kind !== "query")
    throw new Error("CREATE TABLE AS: prepared statement is not a query");
  const fields = defined(prepared.fields, "CREATE TABLE AS: query has no output fields");
  if (columnNames.length > fields.length) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot name ${columnNames.length} columns: the query returns only ${fields.length}`,
      { position: columnNames[0]?._location.start },
    );
  }
  const columns = fields.map(({ name }, i) => {
    const type = prepared.types[i];
    const shown = type === undefined || type.kind === "unknown" ? "TEXT" : typeName(type);
    const collate = type === undefined ? "" : collateClause(type);
    return `${nameText(columnNames[i]?.name ?? name)} ${shown}${collate}`;
  });
  const table = parsed(`CREATE TABLE copy (${columns.join(", ")})`, "create table");
  return { ...tableOf(node), columns: relocated(table, _location).columns };
}

/** Parses SQL of any length that the server has generated. */
function parsed<Type extends "create table" | "insert" | "select">(
  text: string,
  type: Type,
): Extract<ReturnType<typeof parseStatements>[number], { type: Type }> {
  const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
  const [statement] = parseStatements(text, limits);
  if (statement?.type !== type)
    throw new Error(`CREATE TABLE AS: SQL text is not a ${type} statement`);
  return statement as Extract<typeof statement, { type: Type }>;
}
