/**
 * The statements of a request's text: which of them may stand in one text, asked before anything is
 * bound and without a look at the catalog.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { SqlRequest } from "../common/engine.ts";
import type { SqlLimits } from "../common/environment.ts";
import { isBegin, rowsNode } from "../common/node_kinds.ts";
import { parseLimitsOf } from "../common/parameters.ts";
import type { ExecuteAsStatement, Statement } from "../parse/ast/ast.ts";
import { parseRequest } from "../parse/parser.ts";

export interface TextOptions {
  readonly limits: SqlLimits;
  /** Of a request with a key. */
  readonly isRepeatable: boolean;
  readonly parameterCount: number;
}

/** @throws {DatabaseError} for what does not parse, or cannot stand in one text. */
export function statementsOf(
  { files, sql, sqlUtf8 }: SqlRequest,
  { isRepeatable, limits, parameterCount }: TextOptions,
): readonly Statement[] {
  const { parameterCount: highest, statements } = parseRequest(sql, parseLimitsOf(limits), sqlUtf8);
  const isTransaction =
    isBegin(statements[0]) &&
    statements.at(-1)?.type === "commit" &&
    statements.slice(1).every((node) => !isBegin(node));
  if (parameterCount > 0 && statements.length > 1 && !isTransaction) {
    throw new DatabaseError(
      "PARAMS_WITH_BATCH",
      "Cannot bind parameters to several statements: put them between BEGIN and COMMIT",
    );
  }
  if (isRepeatable) requireRepeatable(statements, isTransaction);
  if (files !== undefined && statements.length > 1) {
    throw new DatabaseError("INVALID_INPUT", "Cannot upload files with several statements");
  }
  const view = highest > 0 ? statements.findIndex(({ type }) => type === "create view") : -1;
  if (view !== -1) {
    throw new DatabaseError("INVALID_DEFINITION", "Cannot use a parameter in a view", {
      position: statements[view]?._location.start,
      statementIndex: view,
    });
  }
  if (highest !== parameterCount) {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot bind ${parameterCount} parameter(s): ${highest === 0 ? "the text names none" : `the highest in the text is $${highest}`}`,
    );
  }
  return statements;
}

/** @throws {DatabaseError} INVALID_INPUT for what cannot be one transaction. */
function requireRepeatable(statements: readonly Statement[], isTransaction: boolean): void {
  const last = statements.length - 1;
  for (const [statementIndex, node] of statements.entries()) {
    if (isTransaction && (statementIndex === 0 || statementIndex === last)) continue;
    if (rowsNode(node) !== undefined && node.type !== "explain") continue;
    throw new DatabaseError(
      "INVALID_INPUT",
      `Cannot run ${node.type.toUpperCase()} with an idempotency_key: the request may hold SELECT, INSERT, UPDATE and DELETE, and one BEGIN … COMMIT around them`,
      { position: node._location.start, statementIndex },
    );
  }
}

/** Why EXECUTE AS may not hold a statement. */
export function refuseInside({ statement }: ExecuteAsStatement): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot run ${statement.type.toUpperCase()} inside EXECUTE AS: only SELECT, INSERT, UPDATE and DELETE`,
    { position: statement._location.start },
  );
}
