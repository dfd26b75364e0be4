/**
 * Builds the result entries of statements that read or change rows.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { pauser } from "../../base/pauser.ts";
import type { Value } from "../../types/mod.ts";
import { noticesOf } from "../bind/stored_numbers.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { PreparedDml, PreparedQuery } from "../prepare/prepared.ts";

export interface ResultOptions {
  readonly principal: Principal;
  /** The values of the parameters, followed by the values of lifted literals. */
  readonly parameters: readonly Value[];
}

const VERBS = {
  insert: "Inserted",
  update: "Updated",
  delete: "Deleted",
  merge: "Merged",
  select: "Selected",
} as const;

/** The messages for changes to a single row. They are so frequent that the strings are reused. */
const MESSAGES_OF_ONE = {
  insert: "Inserted 1 row(s)",
  update: "Updated 1 row(s)",
  delete: "Deleted 1 row(s)",
  merge: "Merged 1 row(s)",
  select: "Selected 1 row(s)",
} as const;

/** Builds the result entry of a durable change. */
export function changeResult(
  { cells, fields, kind, storedNumbers }: PreparedDml,
  { applied, returned, rowCount }: DmlOutcome,
  { parameters, principal: { userId: asUser } }: ResultOptions,
): StatementResult {
  const lastSeq = applied.commit?.lastSeq ?? null;
  const notices = storedNumbers.length === 0 ? undefined : noticesOf(storedNumbers, parameters);
  const noticed = notices === undefined || rowCount === 0 ? undefined : { notices };
  if (fields === undefined || returned === undefined) {
    const message = rowCount === 1 ? MESSAGES_OF_ONE[kind] : `${VERBS[kind]} ${rowCount} row(s)`;
    return { rowCount, message, asUser, lastSeq, ...noticed };
  }
  const rows: unknown[][] = [];
  for (const batch of returned) cells.append(batch, rows);
  return { schema: fields, rows, rowCount, asUser, lastSeq, ...noticed };
}

/**
 * Builds the result entry of a durable change to many rows, over several ticks. The change has
 * been committed, so building its result cannot be cancelled.
 */
export async function changeResultInTicks(
  prepared: PreparedDml,
  outcome: DmlOutcome,
  { clock, options }: { clock: Clock; options: ResultOptions },
): Promise<StatementResult> {
  const { returned } = outcome;
  const first = changeResult(prepared, { ...outcome, returned: returned && [] }, options);
  if (returned === undefined || first.rows === undefined) return first;
  const rows: unknown[][] = [];
  const pause = pauser(clock);
  for (const batch of returned) {
    prepared.cells.append(batch, rows);
    await pause();
  }
  return { ...first, rows };
}

/** Builds the result entry of a query. */
export function queryResult(
  { fields = [] }: PreparedQuery,
  rows: readonly (readonly unknown[])[],
  { principal }: ResultOptions,
): StatementResult {
  return { schema: fields, rows, rowCount: rows.length, asUser: principal.userId };
}
