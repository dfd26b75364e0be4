/**
 * Serves `/v1/api/transactions`, which opens transactions that span several requests, returns
 * their state, and ends them. The statements in such a transaction arrive at `/v1/api/sql` with
 * the header `Tidemark-Transaction`.
 */
import { timeText } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TransactionBody } from "../../protocol/mod.ts";
import type { SqlEngine, TransactionEnd, TransactionInfo } from "../../sql/mod.ts";
import type { Exchange } from "../http/exchange.ts";
import { type FieldNames, kindOf } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { type JsonCallParts, readJsonCall } from "../http/json_call.ts";
import { invalidInput } from "../http/request_body.ts";
import { json } from "../http/responses.ts";
import type { Route } from "../http/route.ts";
import type { PrefixRoute } from "../http/router.ts";
import { keyOf, namespaceOf, timeoutOf } from "../http/sql_request.ts";
import { TRANSACTION_OPERATIONS } from "../openapi/transaction_operations.ts";

export interface TransactionRouteOptions extends JsonCallParts {
  readonly sql: SqlEngine;
}

const TRANSACTIONS_PATH = "/v1/api/transactions";

const OPENING_FIELDS: FieldNames = {
  namespace_id: ["namespace", "ns", "schema", "database", "db"],
  isolation: ["isolation_level", "level"],
  read_only: ["readonly", "readOnly"],
  timeout_ms: ["timeout", "timeout_s", "timeout_seconds", "deadline"],
};

const COMMIT_FIELDS: FieldNames = { idempotency_key: ["idempotency", "idempotent_key"] };

export function transactionRoute(options: TransactionRouteOptions): Route {
  return {
    path: TRANSACTIONS_PATH,
    method: "POST",
    shape: "B",
    operation: TRANSACTION_OPERATIONS.open,
    handle: (exchange) => open(exchange, options),
  };
}

/**
 * The routes for a single transaction. Their order matters: the last route matches every path that
 * the earlier routes do not.
 */
export function transactionPaths(options: TransactionRouteOptions): readonly PrefixRoute[] {
  const common = { prefix: `${TRANSACTIONS_PATH}/`, shape: "B" } as const;
  return [
    {
      ...common,
      suffix: "/commit",
      template: "{transaction_id}/commit",
      method: "POST",
      operation: TRANSACTION_OPERATIONS.commit,
      handle: (exchange, id) => end(exchange, options, { id, statement: "COMMIT" }),
    },
    {
      ...common,
      suffix: "/rollback",
      template: "{transaction_id}/rollback",
      method: "POST",
      operation: TRANSACTION_OPERATIONS.rollback,
      handle: (exchange, id) => end(exchange, options, { id, statement: "ROLLBACK" }),
    },
    {
      ...common,
      template: "{transaction_id}",
      method: "GET",
      operation: TRANSACTION_OPERATIONS.state,
      handle: (exchange, id) => tell(exchange, options, id),
    },
  ];
}

async function open(exchange: Exchange, options: TransactionRouteOptions): Promise<Response> {
  const { body, principal } = await readJsonCall(exchange, options, {
    names: OPENING_FIELDS,
    mayBeEmpty: true,
  });
  const { isolation, namespace_id, read_only, timeout_ms } = body;
  requireSnapshot(isolation);
  const info = options.sql.openTransaction(principal, {
    namespace: namespaceOf(namespace_id),
    isReadOnly: flagOf("read_only", read_only),
    timeoutMs: timeoutOf(timeout_ms, options.config.limits.max_timeout_ms),
  });
  return json(exchange, 200, bodyOf(info));
}

async function end(
  exchange: Exchange,
  options: TransactionRouteOptions,
  { id, statement }: Pick<TransactionEnd, "id" | "statement">,
): Promise<Response> {
  const { body, principal } = await readJsonCall(exchange, options, {
    names: statement === "COMMIT" ? COMMIT_FIELDS : {},
    mayBeEmpty: true,
  });
  const key = statement === "COMMIT" ? keyOf(body["idempotency_key"]) : undefined;
  const info = await options.sql.endTransaction(principal, {
    id,
    statement,
    idempotency: key === undefined ? undefined : { key, digest: `commit ${id}` },
    origin: exchange,
  });
  return json(exchange, 200, bodyOf(info));
}

function tell(exchange: Exchange, { auth, sql }: TransactionRouteOptions, id: string): Response {
  if (id.includes("/")) {
    throw new HttpError(404, "not_found", `There is no ${exchange.path}`);
  }
  const { headers } = exchange.request;
  const principal = auth.authenticateHeader(headers.get("authorization"), exchange);
  return json(exchange, 200, bodyOf(sql.transaction(principal, id)));
}

function bodyOf({
  expiresAtMs,
  id,
  idleMs,
  lastSeq,
  state,
  why,
}: TransactionInfo): TransactionBody {
  return {
    transaction_id: id,
    state: state === "rolled back" ? "rolled_back" : state,
    ...(expiresAtMs === undefined ? {} : { expires_at: timeText(expiresAtMs) }),
    ...(idleMs === undefined ? {} : { idle_timeout_ms: idleMs }),
    ...(lastSeq === undefined ? {} : { last_seq: lastSeq }),
    ...(why === undefined ? {} : { reason: why }),
  };
}

/**
 * Refuses every isolation level but "snapshot".
 * @throws {DatabaseError}
 */
function requireSnapshot(isolation: unknown): void {
  if (isolation === undefined || isolation === null || isolation === "snapshot") return;
  if (isolation === "serializable") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      'Cannot open a transaction with isolation "serializable": transactions always have ' +
        "snapshot isolation",
      {
        hint:
          "with SELECT … FOR UPDATE, the commit fails if a concurrent transaction has changed " +
          "the rows",
      },
    );
  }
  throw invalidInput(
    'Cannot read "isolation": it is ' +
      `${typeof isolation === "string" ? JSON.stringify(isolation.slice(0, 40)) : kindOf(isolation)}, ` +
      'but must be "snapshot"',
  );
}

/**
 * Reads an optional boolean field.
 * @throws {DatabaseError} INVALID_INPUT
 */
function flagOf(name: string, value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  throw invalidInput(`Cannot read "${name}": it is ${kindOf(value)}, but must be true or false`);
}
