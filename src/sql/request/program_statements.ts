/**
 * Runs the statements that call programs. Such a statement always runs in a transaction, so that
 * either everything that its programs change takes effect or nothing does.
 */
import { DatabaseError } from "../../base/errors.ts";
import { isOutput } from "../bind/query/routine_resolution.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { PreparedQuery } from "../prepare/prepared.ts";
import type { ProgramRunner } from "./program_runner.ts";
import type { RequestTransaction } from "./request_transaction.ts";

/**
 * How many times a statement that calls programs is attempted while other transactions change its
 * rows.
 */
const ATTEMPTS_MAX = 3;

export interface ProgramStatementParts {
  /** Creates the runner of the programs of one attempt. */
  readonly newRunner: () => ProgramRunner;
  /** The transaction of the request, which may be open. */
  readonly transaction: Pick<RequestTransaction, "current" | "open" | "requireUsable" | "rollback">;
  /** Returns the number of completed statements of the request. */
  readonly entryCount: () => number;
  /** Commits the transaction. Returns the last seq; null if there was nothing to write. */
  readonly commit: () => Promise<number | null>;
}

/**
 * Runs a statement that calls programs, either in the open transaction or in one of its own. In
 * its own transaction, it runs again if another transaction has changed the same rows.
 *
 * @param run Runs the programs and the statement.
 */
export async function runWithPrograms(
  run: (programs: ProgramRunner) => Promise<StatementResult>,
  { commit, entryCount, newRunner, transaction }: ProgramStatementParts,
): Promise<StatementResult> {
  const isWrapped = transaction.current === undefined;
  for (let attempt = 1; ; attempt += 1) {
    if (isWrapped) transaction.open({ isReadOnly: false, entryIndex: entryCount() });
    transaction.requireUsable();
    transaction.current?.fixSnapshot();
    const programs = newRunner();
    try {
      const result = await run(programs);
      const { notices } = programs;
      const noted = notices === undefined ? result : { ...result, notices };
      if (!isWrapped) return noted;
      const lastSeq = await commit();
      return lastSeq === null ? noted : { ...noted, lastSeq };
    } catch (error) {
      const isConflict = error instanceof DatabaseError && error.code === "SERIALIZATION_FAILURE";
      if (!isWrapped || !isConflict || attempt === ATTEMPTS_MAX) throw error;
      transaction.rollback();
    }
  }
}

/** Whether a procedure has output parameters. Their values form the row that CALL returns. */
export function hasOutputs({ calls }: PreparedQuery): boolean {
  const parameters = calls.at(-1)?.program.entry.routine.parameters ?? [];
  return parameters.some(isOutput);
}
