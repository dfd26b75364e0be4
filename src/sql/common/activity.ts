/**
 * Which requests are running, so that they can be listed and killed, and how long statements took.
 *
 * A request that is answered within its turn of the event loop is never listed: nobody could have
 * seen it. A request that is killed ends at its next look at the clock, with CANCELLED, and so does
 * one whose user is dropped; when the server stops, with SHUTTING_DOWN.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { cancelRequest, type RequestLedger } from "../execute/run/request_ledger.ts";
import type { Statement } from "../parse/ast/ast.ts";
import type { ParseLimits } from "../parse/parser.ts";
import { parseStatements } from "../parse/parser.ts";
import { statementToSql } from "../parse/print/print.ts";
import { QueryStats } from "./query_stats.ts";
import { strangersText } from "./query_text.ts";
import { isJobNode } from "./statement_kinds.ts";

/** Characters of a statement that are shown. */
const SHOWN_SQL_LENGTH_MAX = 2000;

/** One request under way. */
export interface RunningRequest {
  readonly queryId: string;
  /** Who asked. */
  readonly userId: string;
  /** As whom the statement at hand runs. */
  asUser: string;
  readonly sql: string;
  readonly startedAtMs: number;
  readonly ledger: RequestLedger;
  /** Set once the text is parsed; the shown text is printed from these statements. */
  statements?: readonly Statement[] | undefined;
}

export interface Activity {
  readonly running: RunningRequests;
  readonly stats: QueryStats;
}

/** Nothing has run yet: what a new engine is given. */
export function newActivity(clock: Clock): Activity {
  return { running: new RunningRequests(clock), stats: new QueryStats() };
}

class RunningRequests {
  readonly #clock: Clock;
  readonly #byId = new Map<string, RunningRequest>();
  #lastNumber = 0;
  #isShutDown = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Lists a request until `end`. */
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

  /** Bytes that all statements hold in memory. */
  get heldBytes(): number {
    let bytes = 0;
    for (const { ledger } of this.#byId.values()) bytes += heldBytesOf(ledger);
    return bytes;
  }

  /** Oldest first. */
  all(): readonly RunningRequest[] {
    return [...this.#byId.values()];
  }

  /** Returns false when there is none of this id. */
  kill(queryId: string): boolean {
    const running = this.#byId.get(queryId);
    if (running === undefined) return false;
    cancelRequest(running.ledger, "kill");
    return true;
  }

  /**
   * Ends what a user has asked for, and what runs as that user: a reader that takes its time would
   * be sent rows of a user who was dropped long ago.
   */
  endUser(userId: string): void {
    for (const { asUser, ledger, userId: askedBy } of this.#byId.values()) {
      if (askedBy === userId || asUser === userId) cancelRequest(ledger, "drop");
    }
  }

  /** Ends all that run, and what begins from now on. Returns how many ran. */
  shutDown(): number {
    this.#isShutDown = true;
    for (const { ledger } of this.#byId.values()) cancelRequest(ledger, "shutdown");
    return this.#byId.size;
  }
}

/** Bytes that the statement at hand holds in memory, in whichever thread. */
export function heldBytesOf({ bytesElsewhere, memory }: RequestLedger): number {
  return (memory?.bytes ?? 0) + bytesElsewhere;
}

/**
 * The statements of a request printed anew, so that no password is shown, with their literals or
 * without; cut at some length.
 */
export function shownSql(
  { sql, statements }: ReadText,
  limits: ParseLimits,
  { hasLiterals }: { hasLiterals: boolean },
): string {
  return textOf(statements ?? statementsIn(sql, limits), { hasLiterals });
}

/** The text of a request, and its statements if it was parsed. */
export type ReadText = Pick<RunningRequest, "sql" | "statements">;

/**
 * The same without literals for the log of slow requests; undefined for one that only waits for
 * jobs, which say themselves how long they take.
 */
export function slowSql(text: ReadText, limits: ParseLimits): string | undefined {
  const statements = text.statements ?? statementsIn(text.sql, limits);
  if (statements?.every(isJobNode) === true) return undefined;
  return textOf(statements, { hasLiterals: false });
}

/**
 * The text that the log shows with a bug. The bug may be in the parser; the text is then shown
 * verbatim, unless it may contain a password.
 */
export function bugSql(sql: string, limits: ParseLimits): string {
  try {
    return textOf(parseStatements(sql, limits), { hasLiterals: true });
  } catch {
    // Safe to ignore: the first bug is the one that is reported.
    if (/password|secret/i.test(sql)) return "(not shown, as it may hold a password)";
    return sql.slice(0, SHOWN_SQL_LENGTH_MAX);
  }
}

function textOf(
  statements: readonly Statement[] | undefined,
  { hasLiterals }: { hasLiterals: boolean },
): string {
  if (statements === undefined) return "(not parsable)";
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
