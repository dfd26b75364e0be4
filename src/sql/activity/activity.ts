/**
 * Tracks running requests, so that they can be listed and killed, and records how long statements
 * take.
 *
 * A request answered within a single tick of the event loop is never listed, because no other
 * request could see it. When a request is killed or its user is dropped, it ends with CANCELLED
 * the next time it checks its deadline. When the server shuts down, requests end with
 * SHUTTING_DOWN.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import { cancelRequest, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { Statement } from "../parse/ast/ast.ts";
import type { ParseLimits } from "../parse/parser.ts";
import { parseStatements } from "../parse/parser.ts";
import { statementToSql } from "../parse/print/print.ts";
import { isJobNode } from "../rights/statement_kinds.ts";
import { AdvisoryLocks } from "./advisory_locks.ts";
import { OpenTransactions, type TransactionLimits } from "./open_transactions.ts";
import { QueryStats } from "./query_stats.ts";
import { strangersText } from "./query_text.ts";
import { RowLocks } from "./row_locks.ts";

/** The maximum number of characters of a statement that lists and logs show. */
const SHOWN_SQL_LENGTH_MAX = 2000;

/** A request that the server is executing. */
export interface RunningRequest {
  readonly queryId: string;
  /** The user who sent the request. */
  readonly userId: string;
  /**
   * The user on whose behalf the current statement runs. It differs from `userId` inside EXECUTE
   * AS.
   */
  asUser: string;
  readonly sql: string;
  readonly startedAtMs: number;
  readonly ledger: RequestLedger;
  /**
   * The parsed statements, from which the displayed SQL is printed. Undefined until the SQL is
   * parsed.
   */
  statements?: readonly Statement[] | undefined;
}

export interface Activity {
  readonly running: RunningRequests;
  readonly stats: QueryStats;
  /** The transactions that span requests. */
  readonly transactions: OpenTransactions;
  /** The rows that open transactions have locked. */
  readonly locks: RowLocks;
  /** The advisory locks of open transactions and running requests. */
  readonly advisory: AdvisoryLocks;
}

/** Returns an `Activity` without any requests or transactions. */
export function newActivity(parts: {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: TransactionLimits;
}): Activity {
  return {
    running: new RunningRequests(parts.clock),
    stats: new QueryStats(),
    transactions: new OpenTransactions(parts),
    locks: new RowLocks(parts.clock, parts.limits.transactionTimeoutMs),
    advisory: new AdvisoryLocks(parts.clock),
  };
}

/** Returns the memory of all running statements and open transactions, in bytes. */
export function activeBytesOf({ running, transactions }: Activity): number {
  return running.heldBytes + transactions.heldBytes;
}

class RunningRequests {
  readonly #clock: Clock;
  readonly #byId = new Map<string, RunningRequest>();
  #lastNumber = 0;
  #isShutDown = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds a request to the list of running requests, where it stays until `end` is called. */
  begin(request: { userId: string; sql: string; ledger: RequestLedger }): RunningRequest {
    this.#lastNumber += 1;
    const tookMs = this.#clock.monotonicMs() - request.ledger.startMs;
    const running: RunningRequest = {
      ...request,
      queryId: `QU${this.#lastNumber}`,
      asUser: request.userId,
      startedAtMs: this.#clock.nowMs() - Math.round(tookMs),
    };
    if (this.#isShutDown) request.ledger.cancelledBy = "shutdown";
    this.#byId.set(running.queryId, running);
    return running;
  }

  end({ queryId }: RunningRequest): void {
    this.#byId.delete(queryId);
  }

  /** The memory that all running statements use, in bytes. */
  get heldBytes(): number {
    let bytes = 0;
    for (const { ledger } of this.#byId.values()) bytes += heldBytesOf(ledger);
    return bytes;
  }

  /** Returns the running requests, oldest first. */
  all(): readonly RunningRequest[] {
    return [...this.#byId.values()];
  }

  /** Kills a request. Returns false if no running request has this id. */
  kill(queryId: string): boolean {
    const running = this.#byId.get(queryId);
    if (running === undefined) return false;
    cancelRequest(running.ledger, "kill");
    return true;
  }

  /**
   * Ends all requests that a user sent or that run on behalf of this user. Otherwise, a slow
   * request could still return rows long after the user was dropped.
   */
  endUser(userId: string): void {
    for (const { asUser, ledger, userId: askedBy } of this.#byId.values()) {
      if (askedBy === userId || asUser === userId) cancelRequest(ledger, "drop");
    }
  }

  /**
   * Ends all running requests, and from then on any request that begins. Returns the number of
   * running requests.
   */
  shutDown(): number {
    this.#isShutDown = true;
    for (const { ledger } of this.#byId.values()) cancelRequest(ledger, "shutdown");
    return this.#byId.size;
  }
}

/** Returns the memory that the current statement uses across all threads, in bytes. */
export function heldBytesOf({ bytesElsewhere, memory }: RequestLedger): number {
  return (memory?.bytes ?? 0) + bytesElsewhere;
}

/**
 * Prints the statements of a request, with or without literals, up to a maximum length. They are
 * printed from their syntax trees, so that passwords never appear.
 */
export function shownSql(
  { sql, statements }: ReadText,
  limits: ParseLimits,
  { hasLiterals }: { hasLiterals: boolean },
): string {
  return textOf(statements ?? statementsIn(sql, limits), { hasLiterals });
}

/** The SQL of a request, with its statements if the SQL has been parsed. */
export type ReadText = Pick<RunningRequest, "sql" | "statements">;

/**
 * Prints the statements of a request without literals, for the log of slow requests. Returns
 * undefined for a request that merely waits for jobs, because jobs report their own duration.
 */
export function slowSql(text: ReadText, limits: ParseLimits): string | undefined {
  const statements = text.statements ?? statementsIn(text.sql, limits);
  if (statements?.every(isJobNode) === true) return undefined;
  return textOf(statements, { hasLiterals: false });
}

/**
 * Returns the SQL of a request for a log entry about a bug. If the parser itself fails, the SQL is
 * returned unchanged, unless it may contain a password.
 */
export function bugSql(sql: string, limits: ParseLimits): string {
  try {
    return textOf(parseStatements(sql, limits), { hasLiterals: true });
  } catch {
    // The parser's error can be ignored: the caller reports the original bug.
    if (/password|secret/i.test(sql)) return "(hidden, because it may contain a password)";
    return sql.slice(0, SHOWN_SQL_LENGTH_MAX);
  }
}

function textOf(
  statements: readonly Statement[] | undefined,
  { hasLiterals }: { hasLiterals: boolean },
): string {
  if (statements === undefined) return "(could not be parsed)";
  let shown = "";
  for (const node of statements) {
    if (shown.length >= SHOWN_SQL_LENGTH_MAX) break;
    const text = hasLiterals ? statementToSql(node) : strangersText(node);
    shown += shown === "" ? text : `; ${text}`;
  }
  return shown.slice(0, SHOWN_SQL_LENGTH_MAX);
}

function statementsIn(sql: string, limits: ParseLimits): readonly Statement[] | undefined {
  try {
    return parseStatements(sql, limits);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    return undefined;
  }
}
