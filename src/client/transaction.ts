/**
 * Runs a function in a transaction that spans several requests, and runs it again if another
 * transaction changed the same rows first.
 *
 *     open ──► work ──► commit ──► done
 *       ▲        └─throws─► rollback ──conflict──► pause ──┐
 *       └──────────────────────────────────────────────────┘
 */
import {
  type Call,
  COUNT,
  FILLED_TEXT,
  type FieldRules,
  FLAG,
  HANDLER,
  requireOptions,
  requireRule,
  SIGNAL,
  TEXT,
} from "./checks.ts";
import { ConnectionError, ServerError } from "./errors.ts";
import {
  conflictPauseMs,
  type Duration,
  msFromDuration,
  pause,
  type RepeatRules,
} from "./repeats.ts";
import type { Session } from "./session.ts";
import { type Statements, statementsBy } from "./statements.ts";
import type { Values } from "./values.ts";

/** An open transaction, as passed to the function given to `transaction`. */
export interface TransactionClient extends Statements {
  /** The id of the transaction, as shown in `system.transactions`. */
  readonly id: string;
}

export interface TransactionSettings {
  /** The namespace in which unqualified names are looked up. */
  readonly namespace?: string;
  /** Whether the transaction may only read. */
  readonly readOnly?: boolean;
  /** How long the transaction may stay open; defaults to the server's limit. */
  readonly timeout?: Duration;
  /**
   * The maximum number of times that the transaction is repeated after conflicts; defaults to the
   * client's `maxRetries`, which is 3 unless set.
   */
  readonly maxRetries?: number;
  /**
   * An idempotency key stored with the commit, so that the outcome is known even after the server
   * restarts.
   */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** The parts of the client that a transaction uses. */
export interface RunningParts {
  readonly session: Session;
  readonly values: Values;
  readonly retries: Pick<RepeatRules, "environment" | "maxRetries">;
}

const CALL: Call = {
  doing: "run a transaction",
  example: "transaction(async (tx) => { await tx.execute(sql); }, { readOnly: true })",
};

const RULES: FieldRules = {
  namespace: TEXT,
  readOnly: FLAG,
  timeout: TEXT,
  maxRetries: COUNT,
  idempotencyKey: FILLED_TEXT,
  signal: SIGNAL,
};

const PATH = "/v1/api/transactions";

/**
 * Runs a function within a transaction, and commits the transaction when the function finishes.
 * @throws {ServerError | ConnectionError} Also rethrows any error thrown by `work`.
 */
export async function runTransaction<Result>(
  work: (tx: TransactionClient) => Promise<Result>,
  options: TransactionSettings,
  parts: RunningParts,
): Promise<Result> {
  requireRule("the work of the transaction", work, HANDLER);
  requireOptions(CALL, options, RULES);
  const { environment } = parts.retries;
  const maxRetries = options.maxRetries ?? parts.retries.maxRetries;
  for (let conflictCount = 0; ; conflictCount += 1) {
    try {
      return await runOnce(work, options, parts);
    } catch (error) {
      if (conflictCount >= maxRetries || !isConflict(error)) throw error;
      const rules = { environment, maxRetries, signal: options.signal };
      await pause(conflictPauseMs(environment, conflictCount), rules);
    }
  }
}

async function runOnce<Result>(
  work: (tx: TransactionClient) => Promise<Result>,
  options: TransactionSettings,
  { session, values }: RunningParts,
): Promise<Result> {
  const { idempotencyKey, namespace, readOnly, signal, timeout } = options;
  const opening = {
    ...(namespace === undefined ? {} : { namespace_id: namespace }),
    ...(readOnly === undefined ? {} : { read_only: readOnly }),
    ...(timeout === undefined ? {} : { timeout_ms: msFromDuration(timeout) }),
  };
  // The request may be repeated: if its response is lost, the server eventually ends the unused
  // transaction.
  const opened = await session.call(PATH, opening, { signal, isRepeatable: true });
  const id = opened.fields["transaction_id"];
  if (typeof id !== "string") throw session.foreign(opened);
  let isOpen = true;
  const headers = (): Record<string, string> => {
    if (isOpen) return { "Tidemark-Transaction": id };
    throw new TypeError(
      "Cannot use the transaction: it has already ended; await each of its calls",
    );
  };
  let result: Result;
  try {
    result = await work({ id, ...statementsBy({ session, values, headers }) });
  } catch (error) {
    isOpen = false;
    await undo(session, id);
    throw error;
  }
  isOpen = false;
  const body = idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey };
  await commit(session, `${PATH}/${id}/commit`, body);
  return result;
}

/**
 * Commits the transaction. The caller's signal cannot abort a commit, because the outcome would
 * then be unknown.
 */
async function commit(session: Session, path: string, body: object): Promise<void> {
  let failureCount = 0;
  const onFailure = (): void => {
    failureCount += 1;
  };
  try {
    await session.call(path, body, { isRepeatable: true, onFailure });
  } catch (error) {
    const isGone = error instanceof ServerError && error.code === "TRANSACTION_NOT_FOUND";
    // An earlier attempt that got no response may have committed the transaction.
    if (!isGone || failureCount < 2) throw error;
    throw new ServerError(
      "COMMIT_UNKNOWN",
      "The connection was lost during the commit, and the server no longer knows the outcome",
      {
        hint:
          "run a query to check whether the changes were made; with an idempotencyKey, the " +
          "server stores the outcome",
      },
    );
  }
}

/**
 * Rolls back a failed transaction. If the rollback fails as well, the server ends the idle
 * transaction.
 */
async function undo(session: Session, id: string): Promise<void> {
  try {
    await session.call(`${PATH}/${id}/rollback`, {}, {});
  } catch (error) {
    if (!(error instanceof ServerError) && !(error instanceof ConnectionError)) throw error;
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof ServerError && error.reason === "conflict";
}
