/**
 * Binds FOR SYSTEM_TIME AS OF, which reads a table as of an earlier time.
 *
 * The time applies to one table in FROM. It is computed once per run, so it cannot read columns.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { BIGINT, DATETIME, isInteger, typeName } from "../../../types/mod.ts";
import type { Expr, FromTable, SelectStatement } from "../../parse/ast/ast.ts";
import type { StatementBinding } from "../binding.ts";
import type { PastRead } from "../bound.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { readerOf } from "../row_rights.ts";
import { Scope } from "../scope.ts";
import type { SelectDeps } from "./select_deps.ts";

/**
 * Binds the time in FOR SYSTEM_TIME AS OF, and records that the statement reads history. Returns
 * undefined if the FROM item has no such clause.
 *
 * @throws {DatabaseError} INVALID_OPERATION for a STREAM table; TYPE_MISMATCH
 */
export function bindPast(
  { systemTime }: FromTable,
  table: TableEntry,
  deps: Pick<SelectDeps, "rights" | "statement">,
): PastRead | undefined {
  if (systemTime === undefined) return undefined;
  if (table.kind === "stream") throw withoutHistory(systemTime, "a STREAM table");
  return notedPast({ table, moment: bindMoment(systemTime, deps.statement) }, deps);
}

/** Adds a read as of an earlier time to the statement, and records the right that it requires. */
export function notedPast(
  read: Omit<PastRead, "index">,
  { rights, statement }: Pick<SelectDeps, "rights" | "statement">,
): PastRead {
  const { table } = read;
  const viewOwner = readerOf(table, rights);
  statement.requirements.push({ action: "read-history", table, viewOwner });
  const past = { ...read, index: statement.pastReads.length };
  statement.pastReads.push(past);
  return past;
}

/**
 * Refuses FOR SYSTEM_TIME on a relation that keeps no history.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function requireNow({ systemTime }: FromTable, what: string): void {
  if (systemTime !== undefined) throw withoutHistory(systemTime, what);
}

function withoutHistory(node: Expr, what: string): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot read ${what} FOR SYSTEM_TIME AS OF: it keeps no earlier states`,
    {
      position: node._location.start,
      hint: "only USER and SHARED tables keep earlier states; read such a table directly",
    },
  );
}

/**
 * Binds an expression that reads no columns and is evaluated once per run.
 *
 * @param clause The clause that contains the expression, for messages.
 */
export function bindWithoutColumns(
  node: Expr,
  clause: string,
  statement: StatementBinding,
): BoundExpression {
  const bindInner = ({ _location }: SelectStatement): never => {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use a subquery in ${clause}: the value must be known before the statement runs`,
      {
        position: _location.start,
        hint: "pass the value as a parameter",
      },
    );
  };
  return bindExpression(node, {
    statement,
    scope: new Scope([]),
    clause,
    sink: undefined,
    bindInner,
  });
}

function bindMoment(node: Expr, statement: StatementBinding): BoundExpression {
  const moment = bindWithoutColumns(node, "FOR SYSTEM_TIME AS OF", statement);
  const { type } = moment;
  if (isInteger(type)) return castTo(moment, { to: BIGINT, mode: "implicit", node });
  switch (type.kind) {
    case "datetime":
    case "timestamp":
      return moment;
    case "unknown":
      return castTo(moment, { to: DATETIME, mode: "implicit", node });
    default:
      throw new DatabaseError(
        "TYPE_MISMATCH",
        `Cannot read a table AS OF a value of type ${typeName(type)}: the type must be BIGINT, ` +
          "TIMESTAMP or TIMESTAMPTZ",
        {
          position: node._location.start,
          hint: "cast the value, as in TIMESTAMPTZ '2026-01-31 12:00Z', or pass a _seq as a BIGINT",
        },
      );
  }
}
