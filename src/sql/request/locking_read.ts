/**
 * Runs SELECT … FOR UPDATE, NO KEY UPDATE, SHARE and KEY SHARE.
 *
 * The query also selects the `_seq` of each row that it locks. Within a transaction, these row
 * versions are its locks: the commit fails if one of the rows has been changed in the meantime.
 * Another transaction that tries to lock one of these rows fails or, with SKIP LOCKED, skips it.
 * Rows that the transaction has written itself need no lock.
 */
import { type Principal, requireWrite } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TableEntry } from "../../catalog/mod.ts";
import type { RowLocks } from "../activity/row_locks.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import { refuseMaterialized } from "../names/materialized_views.ts";
import { findTable } from "../names/table_names.ts";
import type { Expr, SelectForStatement, SelectFromStatement } from "../parse/ast/ast.ts";
import { relocated } from "../parse/ast/tree_parts.ts";
import { parseStatements } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { NameDeps } from "../prepare/binding_deps.ts";

/**
 * The maximum number of attempts with SKIP LOCKED. The query is repeated if other transactions
 * have locked rows that it found.
 */
const ATTEMPTS_MAX = 10;

/** A table whose rows are locked. */
interface LockedTable {
  /** The name under which the query refers to the table. */
  readonly alias: string;
  readonly table: TableEntry;
}

export interface LockingReadOptions {
  readonly deps: NameDeps & Pick<SqlEnvironment, "history">;
  readonly locks: RowLocks;
  readonly principal: Principal;
  readonly namespace: string;
  /**
   * The transaction that holds the locks; absent for a standalone statement, whose locks would end
   * immediately.
   */
  readonly transaction: Transaction | undefined;
  /** Runs a query on the event loop. */
  readonly run: (query: SelectFromStatement) => Promise<StatementResult>;
}

/**
 * Runs SELECT … FOR UPDATE: reads rows and locks them.
 * @throws {DatabaseError} SERIALIZATION_FAILURE, LOCK_NOT_AVAILABLE, INVALID_OPERATION …
 */
export async function readAndLock(
  node: SelectForStatement,
  options: LockingReadOptions,
): Promise<StatementResult> {
  const { locks, transaction } = options;
  const tables = lockedTables(node, options);
  if (transaction?.isReadOnly === true) {
    throw new DatabaseError("INVALID_OPERATION", "Cannot lock rows: the transaction is READ ONLY", {
      position: node._location.start,
    });
  }
  for (let attempt = 1; ; attempt += 1) {
    const passed = tables.map(({ table }) =>
      node.wait === "skip locked" ? locks.excluding(table.tableId, node.strength, transaction) : [],
    );
    const answer = await options.run(withSeqs(node, tables, passed));
    const { result, seqs } = withoutSeqs(answer, tables.length);
    const isFree = seqs.every((list) =>
      list.every((seq) => !locks.isExcluded(seq, node.strength, transaction)),
    );
    if (isFree) {
      if (transaction !== undefined) lockAll(node, { tables, seqs, transaction }, options);
      return result;
    }
    if (node.wait !== "skip locked" || attempt === ATTEMPTS_MAX) throw lockedByOther(node, tables);
  }
}

/** Returns the names of the tables whose rows a query locks. */
export function lockedNames({ of, query }: SelectForStatement): readonly string[] {
  if (of.length > 0) return of.map(({ name }) => name);
  return (query.from ?? []).flatMap((item) =>
    item.type === "table" ? [item.name.alias ?? item.name.name] : [],
  );
}

/** Returns the tables whose rows a query locks. @throws {DatabaseError} */
export function lockedTables(
  { of, query, strength }: SelectForStatement,
  { deps, namespace, principal }: { deps: NameDeps; namespace: string; principal: Principal },
): readonly LockedTable[] {
  const named = (query.from ?? []).map((item) =>
    item.type === "table" ? { alias: item.name.alias ?? item.name.name, item } : undefined,
  );
  const what = `FOR ${strength.toUpperCase()}`;
  for (const { name, _location } of of) {
    if (named.some((each) => each?.alias === name)) continue;
    throw new DatabaseError("INVALID_QUERY", `Cannot use ${what}: table "${name}" is not in FROM`, {
      position: _location.start,
    });
  }
  const wanted = named.filter(
    (each) => of.length === 0 || of.some(({ name }) => name === each?.alias),
  );
  return wanted.map((each, index) => {
    if (each === undefined) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot use ${what}: FROM contains items that are not tables`,
        {
          position: query.from?.[index]?._location.start,
          hint: "list the tables to lock, as in FOR UPDATE OF t",
        },
      );
    }
    const { alias, item } = each;
    const table = findTable(deps, item.name, { namespace, node: item.name, principal });
    const position = item.name._location.start;
    refuseMaterialized("lock rows of", table, item.name);
    requireWrite(principal, table, {
      namespace: deps.catalog.namespace(table.namespace),
      position,
    });
    if (item.systemTime !== undefined) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot lock rows of ${table.namespace}.${table.name}: FOR SYSTEM_TIME AS OF reads an ` +
          "earlier state, which cannot be locked",
        { position, hint: "omit FOR SYSTEM_TIME AS OF" },
      );
    }
    if (item.sample !== undefined) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot lock rows of ${table.namespace}.${table.name}: TABLESAMPLE could choose other rows ` +
          "to lock than to return",
        { position, hint: "omit TABLESAMPLE" },
      );
    }
    if (table.primaryKey.length === 0 || table.kind === "stream") {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot lock rows of ${table.namespace}.${table.name}: only rows in USER and SHARED ` +
          "tables with a primary key can be locked",
        { position },
      );
    }
    return { alias, table };
  });
}

/**
 * Adds the `_seq` of each locked row after the columns of a query, and excludes the rows to skip.
 * Rows written by the transaction have no `_seq` yet.
 */
function withSeqs(
  { query }: SelectForStatement,
  tables: readonly LockedTable[],
  passed: readonly (readonly number[])[],
): SelectFromStatement {
  const seqs = tables.map(({ alias }) => `${nameText(alias)}._seq`);
  const conditions = seqs.flatMap((seq, index) => {
    const list = passed[index] ?? [];
    return list.length === 0 ? [] : [`(${seq} NOT IN (${list.join(", ")})) IS NOT FALSE`];
  });
  const where = conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`;
  const [parsed] = parseStatements(`SELECT ${seqs.join(", ")}${where}`);
  const added = relocated(
    defined(parsed, "locking read: SQL text contains no statement"),
    query._location,
  );
  if (added.type !== "select") return query;
  return {
    ...query,
    columns: [...(query.columns ?? []), ...(added.columns ?? [])],
    where: both(query.where, added.where),
  };
}

function both(left: Expr | undefined, right: Expr | undefined): Expr | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return { type: "binary", op: "AND", left, right, _location: left._location };
}

/** Removes the seq columns from the rows of a result, and returns the seqs. */
function withoutSeqs(
  { rows = [], schema = [], ...rest }: StatementResult,
  count: number,
): { result: StatementResult; seqs: readonly (readonly number[])[] } {
  const width = schema.length - count;
  const seqs = Array.from({ length: count }, (_, index) => {
    const list = rows.map((row) => row[width + index]);
    return [...new Set(list.filter((seq) => typeof seq === "number"))];
  });
  const shown = rows.map((row) => row.slice(0, width));
  return { result: { ...rest, schema: schema.slice(0, width), rows: shown }, seqs };
}

interface RowsToLock {
  readonly tables: readonly LockedTable[];
  readonly seqs: readonly (readonly number[])[];
  readonly transaction: Transaction;
}

/**
 * Locks rows for the transaction. Must be called in a tick in which no other transaction holds a
 * conflicting lock.
 */
function lockAll(
  { strength }: SelectForStatement,
  { seqs, tables, transaction }: RowsToLock,
  { deps, locks, principal }: LockingReadOptions,
): void {
  for (const [index, { table }] of tables.entries()) {
    const found = Float64Array.from(seqs[index] ?? []);
    const owner = ownerOf(principal, table);
    const { columns } = deps.history.versions(table.tableId, {
      seqs: found,
      owners: new Float64Array(found.length).fill(owner),
      columnIds: table.primaryKey,
    });
    for (const [row, seq] of found.entries()) {
      const key = columns.map((values) => values[row] ?? null);
      const before = locks.strengthOf(seq, transaction);
      transaction.lock({ tableId: table.tableId, owner, key, seq }, before);
      locks.take({ seq, tableId: table.tableId }, strength, transaction);
    }
  }
}

function lockedByOther(
  { _location, wait }: SelectForStatement,
  tables: readonly LockedTable[],
): DatabaseError {
  const names = tables.map(({ table }) => `${table.namespace}.${table.name}`).join(", ");
  const message = `Cannot lock rows of ${names}: a concurrent transaction has already locked some of them`;
  const position = _location.start;
  return wait === "nowait"
    ? new DatabaseError("LOCK_NOT_AVAILABLE", message, { position })
    : new DatabaseError("SERIALIZATION_FAILURE", message, {
        position,
        hint: "run the transaction again",
      });
}
