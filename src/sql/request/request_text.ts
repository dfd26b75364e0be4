/**
 * Parses the SQL of a request, and checks that its statements may be combined. This happens before
 * any statement is bound, and does not need the catalog.
 */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { ExecuteAsStatement, PrepareStatement, Statement } from "../parse/ast/ast.ts";
import { isBegin, rowsNode } from "../parse/ast/query_nodes.ts";
import { parseRequest } from "../parse/parser.ts";
import type { SqlRequest } from "../ports/engine.ts";
import type { SqlLimits } from "../ports/environment.ts";
import { parseLimitsOf } from "../ports/parameters.ts";
import { withPrepared } from "./prepared_texts.ts";

export interface RequestTextOptions {
  readonly limits: SqlLimits;
  /** Whether the request has an idempotency key. */
  readonly isRepeatable: boolean;
  /** Whether the request continues a transaction. */
  readonly isHeld: boolean;
  /** The statements prepared by earlier requests of the transaction. */
  readonly prepared: ReadonlyMap<string, PrepareStatement>;
  readonly parameterCount: number;
}

/**
 * Parses the SQL of a request.
 * @throws {DatabaseError} if the SQL does not parse, or its statements cannot be combined
 */
export function statementsOf(
  { files, sql, sqlUtf8 }: SqlRequest,
  { isHeld, isRepeatable, limits, parameterCount, prepared }: RequestTextOptions,
): readonly Statement[] {
  const { parameterCount: highest, statements: written } = parseRequest(
    sql,
    parseLimitsOf(limits),
    sqlUtf8,
  );
  const statements = withPrepared(written, { earlier: prepared, lengthMax: limits.sqlBytesMax });
  const isTransaction =
    isBegin(statements[0]) &&
    statements.at(-1)?.type === "commit" &&
    statements.slice(1).every((node) => !isBegin(node));
  if (parameterCount > 0 && statements.length > 1 && !isTransaction) {
    throw new DatabaseError(
      "PARAMS_WITH_BATCH",
      "Cannot bind parameters: the request has several statements outside a transaction; put " +
        "them between BEGIN and COMMIT",
    );
  }
  if (isRepeatable && isHeld) requireCommit(statements);
  else if (isRepeatable) requireRepeatable(statements, isTransaction);
  if (files !== undefined && statements.length > 1) {
    throw new DatabaseError(
      "INVALID_INPUT",
      "Cannot upload files in a request with several statements: send each statement in its " +
        "own request",
    );
  }
  const view = highest > 0 ? statements.findIndex(({ type }) => type === "create view") : -1;
  if (view !== -1) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      "Cannot use a parameter in a view: write the value as a literal",
      {
        position: statements[view]?._location.start,
        statementIndex: view,
      },
    );
  }
  if (highest !== parameterCount) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind ${counted(parameterCount, "parameter")}: ` +
        (highest === 0 ? "the SQL uses none" : `the highest parameter in the SQL is $${highest}`),
    );
  }
  return statements;
}

/**
 * Requires that a request is a COMMIT if it has an idempotency key and continues a transaction,
 * because only a COMMIT has a lasting effect.
 *
 * @throws {DatabaseError} INVALID_INPUT
 */
function requireCommit(statements: readonly Statement[]): void {
  if (statements.length === 1 && statements[0]?.type === "commit") return;
  throw new DatabaseError(
    "INVALID_INPUT",
    "Cannot use an idempotency_key in an open transaction: it is allowed only in the request " +
      "that consists of the COMMIT",
  );
}

const SAVEPOINTS: ReadonlySet<Statement["type"]> = new Set<Statement["type"]>([
  "savepoint",
  "set constraints",
  "release savepoint",
  "rollback to",
]);

/**
 * Requires that the statements of a request with an idempotency key form a single transaction.
 * @throws {DatabaseError} INVALID_INPUT if they cannot.
 */
function requireRepeatable(statements: readonly Statement[], isTransaction: boolean): void {
  const last = statements.length - 1;
  for (const [statementIndex, node] of statements.entries()) {
    if (isTransaction && (statementIndex === 0 || statementIndex === last)) continue;
    if (rowsNode(node) !== undefined && node.type !== "explain") continue;
    if (node.type === "ack") continue;
    if (isTransaction && SAVEPOINTS.has(node.type)) continue;
    throw new DatabaseError(
      "INVALID_INPUT",
      `Cannot run ${node.type.toUpperCase()} with an idempotency_key: the request may contain ` +
        "only SELECT, INSERT, UPDATE, DELETE and ACK, optionally within BEGIN … COMMIT",
      { position: node._location.start, statementIndex },
    );
  }
}

/** Creates the error for a statement that is not allowed within EXECUTE AS. */
export function refuseInside({ statement }: ExecuteAsStatement): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot run ${statement.type.toUpperCase()} inside EXECUTE AS: only SELECT, INSERT, ` +
      "UPDATE, DELETE, COPY, EXPORT USER DATA and SHOW EXPORT are allowed",
    { position: statement._location.start },
  );
}
