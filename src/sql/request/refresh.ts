/**
 * Implements REFRESH MATERIALIZED VIEW: evaluates the query again, and changes the rows of the
 * materialized view to the new result.
 *
 * A single statement deletes the rows that are no longer in the result and inserts the new rows,
 * so that readers and live queries see the difference as one commit. Rows are compared by the text
 * form of their values, because equal values may differ, such as 1.0 and 1.00.
 *
 *     unpopulated ──rows inserted──► populated ──difference──► populated
 *          ▲                             │
 *          └────────WITH NO DATA─────────┘
 *
 * Nobody can read an unpopulated view, so it may be filled in several commits.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { shownColumnsOf, type TableEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { materializedQueryName, requireMaterialized } from "../names/materialized_views.ts";
import { findTable } from "../names/table_names.ts";
import type {
  AlterTableStatement,
  DeleteStatement,
  InsertStatement,
  QName,
  RefreshStatement,
  WithStatement,
} from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { PARSE_LIMITS, parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";

/** A statement that changes the rows of a materialized view. */
export type RefreshingStatement = DeleteStatement | InsertStatement | WithStatement;

export interface RefreshSteps {
  /** Returns the current definition of the materialized view. */
  readonly table: () => TableEntry | undefined;
  /** Records whether the materialized view is populated. */
  readonly populate: (isPopulated: boolean) => Promise<StatementResult>;
  readonly change: (node: RefreshingStatement) => Promise<StatementResult>;
}

/** Runs REFRESH MATERIALIZED VIEW. @throws {DatabaseError} */
export async function refresh(
  node: RefreshStatement,
  { change, populate, table }: RefreshSteps,
): Promise<StatementResult> {
  const now = (): TableEntry => existing(table(), node);
  const { materialized } = now();
  if (node.withData === false) {
    const { asUser } = await populate(false);
    const { lastSeq } = await change(deletionOf(now(), node));
    return { asUser, rowCount: 0, message: refreshedMessage(now()), lastSeq: lastSeq ?? null };
  }
  if (materialized?.isPopulated === true) {
    const { asUser, lastSeq } = await change(differenceOf(now(), node));
    return { asUser, rowCount: 0, message: refreshedMessage(now()), lastSeq: lastSeq ?? null };
  }
  const filled = await fill(node, { change, populate, table });
  return { ...filled, rowCount: 0, message: refreshedMessage(now()) };
}

/**
 * Returns the materialized view that REFRESH names, and the change to its definition for which the
 * same right is required.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, INVALID_OPERATION
 */
export function refreshedView(
  { _location, concurrently, name, withData }: RefreshStatement,
  {
    deps,
    namespace,
    principal,
  }: { readonly deps: NameDeps; readonly namespace: string; readonly principal: Principal },
): { readonly table: TableEntry; readonly change: AlterTableStatement } {
  const table = findTable(deps, name, { namespace, node: name, principal });
  requireMaterialized(true, table, { node: name, verb: "REFRESH" });
  if (concurrently === true && table.materialized?.isPopulated === false) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot refresh materialized view ${nameOf(table)} CONCURRENTLY: it has not been populated`,
      { position: name._location.start, hint: "omit CONCURRENTLY" },
    );
  }
  const isKeyed = table.indexes?.some(
    ({ expressions, isUnique, state, where }) =>
      isUnique && state === "ready" && expressions === undefined && where === undefined,
  );
  if (concurrently === true && isKeyed !== true) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot refresh materialized view ${nameOf(table)} CONCURRENTLY: this requires a unique ` +
        "index on plain columns and without WHERE",
      {
        position: name._location.start,
        hint: "leave out CONCURRENTLY; readers never wait for a refresh anyway",
      },
    );
  }
  return { table, change: populationOf(name, withData !== false, _location) };
}

/** Returns the statement that records whether a materialized view is populated. */
export function populationOf(
  name: QName,
  isPopulated: boolean,
  _location: RefreshStatement["_location"],
): AlterTableStatement {
  return {
    type: "alter table",
    table: { ...name, _location },
    isMaterialized: true,
    changes: [{ type: "populate", isPopulated, _location }],
    _location,
  };
}

/** Computes the rows of an unpopulated materialized view, and marks it as populated. */
export async function fill(
  node: Located,
  { change, populate, table }: RefreshSteps,
): Promise<StatementResult> {
  // An interrupted REFRESH WITH NO DATA may have left rows behind.
  await change(deletionOf(existing(table(), node), node));
  const { lastSeq, rowCount } = await change(insertionOf(existing(table(), node), node));
  const populated = await populate(true);
  return { ...populated, rowCount, lastSeq: lastSeq ?? populated.lastSeq ?? null };
}

/**
 * Returns the materialized view being refreshed. @throws {DatabaseError} if another request has
 * dropped it in the meantime.
 */
function existing(table: TableEntry | undefined, { _location }: Located): TableEntry {
  if (table !== undefined) return table;
  throw new DatabaseError(
    "TABLE_NOT_FOUND",
    "Cannot refresh the materialized view: it was dropped in the meantime",
    { position: _location.start, hint: "create it again with CREATE MATERIALIZED VIEW" },
  );
}

function refreshedMessage(table: TableEntry): string {
  return `Materialized view ${nameOf(table)} refreshed`;
}

type Located = Pick<RefreshStatement, "_location">;

function deletionOf(table: TableEntry, { _location }: Located): RefreshingStatement {
  return asRefresh(`DELETE FROM ${pathOf(table)} WHERE TRUE`, _location);
}

function insertionOf(table: TableEntry, { _location }: Located): RefreshingStatement {
  const columns = shownColumnsOf(table).map(({ name }) => nameText(name));
  return asRefresh(
    `INSERT INTO ${pathOf(table)} (${columns.join(", ")}) SELECT * FROM ${queryPathOf(table)}`,
    _location,
  );
}

function differenceOf(table: TableEntry, { _location }: Located): RefreshingStatement {
  const shown = shownColumnsOf(table).map(({ name }) => nameText(name));
  const numbered = shown.map((_, i) => `c${i + 1}`).join(", ");
  const columns = shown.join(", ");
  const path = pathOf(table);
  return asRefresh(
    `WITH fresh AS MATERIALIZED (
       SELECT *, row_number() OVER (PARTITION BY k) AS n
       FROM (SELECT *, ROW(${numbered})::TEXT AS k
             FROM ${queryPathOf(table)} AS result (${numbered})) AS keyed
     ), stored AS MATERIALIZED (
       SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id) AS n
       FROM (SELECT _key AS id, ROW(${columns})::TEXT AS k FROM ${path}) AS keyed
     ), gone AS (
       DELETE FROM ${path} WHERE _key IN (
         SELECT id FROM stored WHERE NOT EXISTS (
           SELECT 1 FROM fresh WHERE fresh.k = stored.k AND fresh.n = stored.n))
     )
     INSERT INTO ${path} (${columns}) SELECT ${numbered} FROM fresh WHERE NOT EXISTS (
       SELECT 1 FROM stored WHERE stored.k = fresh.k AND stored.n = fresh.n)`,
    _location,
  );
}

function pathOf({ name, namespace }: TableEntry): string {
  return `${nameText(namespace)}.${nameText(name)}`;
}

function queryPathOf({ name, namespace }: TableEntry): string {
  return `${nameText(namespace)}.${nameText(materializedQueryName(name))}`;
}

/** Parses a change, and marks its target tables so that they may be a materialized view. */
function asRefresh(text: string, at: RefreshStatement["_location"]): RefreshingStatement {
  const limits = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };
  const node = relocated(
    defined(parseStatements(text, limits)[0], "REFRESH: SQL text contains no statement"),
    at,
  );
  if (node.type === "insert" || node.type === "delete") return marked(node);
  if (node.type !== "with") throw new Error("REFRESH: SQL text is not a change");
  const bind = node.bind.map((each) => ({ ...each, statement: marked(each.statement) }));
  return { ...node, bind, in: marked(node.in) };
}

function marked<Type extends WithStatement["in"]>(node: Type): Type {
  if (node.type === "insert") return { ...node, into: { ...node.into, isRefresh: true } };
  if (node.type === "delete") return { ...node, from: { ...node.from, isRefresh: true } };
  return node;
}
