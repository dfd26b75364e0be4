/**
 * Handles COPY within a request: checks whether the request may contain a COPY, and finds its
 * data.
 *
 *     POST /v1/api/copy     one COPY, whose data is the body of the request or of the response
 *     any other text        COPY FROM with its data after it, as in the output of pg_dump
 */
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { CopyInput } from "../execute/context/execution_context.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { CopySourceStatement, Statement } from "../parse/ast/ast.ts";
import { copySourceNode, copyToNode } from "../parse/ast/query_nodes.ts";
import type { CopyBody, SqlRequest, StatementResult } from "../ports/engine.ts";

/**
 * The time in milliseconds for which a client may send nothing before it is considered
 * disconnected.
 */
const SILENT_MS_MAX = 60_000;

/**
 * Requires that a COPY has its data in the request body, and that a body of COPY data belongs to a
 * COPY.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function requireCopyBodies(
  nodes: readonly Statement[],
  { check, copy }: Pick<SqlRequest, "check" | "copy">,
): void {
  if (copy !== undefined) {
    const [node] = nodes;
    const source = node && copySourceNode(node);
    const isOne = nodes.length === 1 && node !== undefined;
    if (isOne && (copyToNode(node) !== undefined || source !== undefined)) {
      if (source?.data === undefined) return;
      throw new DatabaseError(
        "INVALID_INPUT",
        "Cannot run COPY: there is data in both the statement and the request body, but only " +
          "one of them may contain data",
      );
    }
    throw new DatabaseError(
      "INVALID_INPUT",
      "Cannot run the SQL as a COPY request: it must be a single COPY … FROM STDIN or COPY … " +
        "TO STDOUT",
    );
  }
  for (const [statementIndex, node] of nodes.entries()) {
    const source = copySourceNode(node);
    const isAlone = source !== undefined && source.data === undefined && check !== true;
    if (copyToNode(node) === undefined && !isAlone) continue;
    throw new DatabaseError(
      "INVALID_INPUT",
      source === undefined
        ? "Cannot run COPY … TO STDOUT here: its rows must be sent in a separate response"
        : "Cannot run COPY … FROM STDIN here: its data must be the body of a separate request",
      {
        position: node._location.start,
        statementIndex,
        hint: "send the statement to POST /v1/api/copy",
      },
    );
  }
}

/** The data for a COPY FROM, with the number of rows skipped so far. */
export interface CopyFeed extends CopyInput {
  readonly skippedCount: number;
  /** Stops reading the data before its end. */
  cancel(): void;
}

/** Returns the data for a COPY FROM, or undefined for any other statement. */
export function copyFeedOf(
  node: Statement,
  { copy }: Pick<SqlRequest, "copy">,
  options: { readonly clock: Clock; readonly ledger: RequestLedger },
): CopyFeed | undefined {
  const source = copySourceNode(node);
  if (source === undefined) return undefined;
  return new BodyFeed(source.data === undefined ? bodyOf(copy) : bodyOfText(source), options);
}

function bodyOf(copy: SqlRequest["copy"]): CopyBody {
  assert(copy !== undefined, "COPY: statement without inline data has no body");
  return copy.body;
}

function bodyOfText({ data }: CopySourceStatement): CopyBody {
  let rest = data;
  return {
    next: () => {
      const piece = rest;
      rest = undefined;
      return Promise.resolve(piece);
    },
    cancel: () => undefined,
  };
}

/** Returns the result of a COPY FROM, with a notice if rows were skipped. */
export function copyResult(result: StatementResult, feed: CopyFeed): StatementResult {
  const { skippedCount } = feed;
  if (skippedCount === 0) return result;
  const notice = `Skipped ${skippedCount} row(s) that contain a value that cannot be stored in its column`;
  return { ...result, notices: [...(result.notices ?? []), notice] };
}

/**
 * Reads the chunks of a request body. Time spent waiting for the client does not count towards the
 * statement's time limit.
 */
class BodyFeed implements CopyFeed {
  readonly #body: CopyBody;
  readonly #clock: Clock;
  readonly #ledger: RequestLedger;
  skippedCount = 0;

  constructor(body: CopyBody, { clock, ledger }: { clock: Clock; ledger: RequestLedger }) {
    this.#body = body;
    this.#clock = clock;
    this.#ledger = ledger;
  }

  async next(): Promise<Uint8Array | undefined> {
    const ledger = this.#ledger;
    const startMs = checkDeadline(ledger, this.#clock);
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const cancelTimer = this.#clock.after(SILENT_MS_MAX, () => reject(silent()));
    ledger.wake = () => {
      try {
        checkDeadline(ledger, this.#clock);
      } catch (error) {
        reject(error);
      }
    };
    try {
      const piece = await Promise.race([this.#body.next(), ended]);
      ledger.bytesReceived += piece?.length ?? 0;
      return piece;
    } finally {
      cancelTimer();
      ledger.wake = undefined;
      ledger.deadlineMs += this.#clock.monotonicMs() - startMs;
    }
  }

  note(rowCount: number): void {
    this.#ledger.rowsRead += rowCount;
  }

  noteSkipped(rowCount: number): void {
    this.skippedCount += rowCount;
  }

  cancel(): void {
    this.#body.cancel();
  }
}

function silent(): DatabaseError {
  return new DatabaseError(
    "CANCELLED",
    "Cannot finish the statement: the client has stopped sending data",
  );
}
