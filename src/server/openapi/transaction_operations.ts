/** Describes the operations of `/v1/api/transactions`. */
import type { Operation } from "../http/operation.ts";
import { inPath } from "./operations.ts";
import { jsonOf } from "./schemas.ts";

const ID = inPath(
  "transaction_id",
  "The transaction_id from the response that opened the transaction",
);

const NOT_FOUND = { 404: ["TRANSACTION_NOT_FOUND"] } as const;

export const TRANSACTION_OPERATIONS: Readonly<
  Record<"commit" | "open" | "rollback" | "state", Operation>
> = {
  open: {
    id: "openTransaction",
    tag: "data",
    summary: "Open a transaction that spans requests",
    description:
      "Statements sent to POST /v1/api/sql run in this transaction if the request has the " +
      "header Tidemark-Transaction. The transaction belongs to the login session that opened " +
      "it. It is rolled back at expires_at, after limits.transaction_idle_secs without a " +
      "request, or when the session ends.",
    access: "bearer",
    body: {
      required: false,
      example: { namespace_id: "app", timeout_ms: 30_000 },
      content: jsonOf("TransactionRequest"),
    },
    answers: { 200: { description: "The new transaction", content: jsonOf("Transaction") } },
    errors: { 400: ["INVALID_INPUT", "SQL_EXECUTION_ERROR"], 503: ["SHUTTING_DOWN"] },
  },
  state: {
    id: "transactionState",
    tag: "data",
    summary: "Get the state of one of the session's transactions",
    description:
      "The outcome of a finished transaction stays available for a while, at most until the " +
      "server restarts.",
    access: "bearer",
    parameters: [ID],
    answers: {
      200: { description: "The state of the transaction", content: jsonOf("Transaction") },
    },
    errors: NOT_FOUND,
  },
  commit: {
    id: "commitTransaction",
    tag: "data",
    summary: "Commit a transaction",
    description:
      "If the response is lost, send the request again: it returns the outcome without " +
      "changing anything. With an idempotency_key, the outcome is stored together with the " +
      "commit and survives a restart.",
    access: "bearer",
    parameters: [ID],
    body: {
      required: false,
      example: { idempotency_key: "order-17" },
      content: jsonOf("TransactionCommitRequest"),
    },
    answers: {
      200: { description: "The transaction has been committed", content: jsonOf("Transaction") },
    },
    errors: {
      ...NOT_FOUND,
      400: ["INVALID_INPUT", "SQL_EXECUTION_ERROR", "QUERY_TIMEOUT"],
      409: ["IDEMPOTENCY_CONFLICT"],
      500: ["INTERNAL_ERROR", "COMMIT_UNKNOWN"],
      507: ["STORAGE_FULL"],
    },
  },
  rollback: {
    id: "rollbackTransaction",
    tag: "data",
    summary: "Roll back a transaction",
    access: "bearer",
    parameters: [ID],
    answers: {
      200: { description: "The transaction has been rolled back", content: jsonOf("Transaction") },
    },
    errors: NOT_FOUND,
  },
};
