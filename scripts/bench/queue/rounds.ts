/**
 * Defines the writes to a queue as arithmetic: each round adds rows at the front, deletes as many
 * at the end in two halves, and updates a tenth of all rows. The values of any row at any time
 * follow from its id and the number of the round, so that a check needs no record of ten million
 * versions.
 *
 *     round      0: insert 1 … live
 *     round      r: insert live + (r - 1) × step + 1 … live + r × step
 *                   delete (r - 1) × step + 1 … and the other half, up to r × step
 *                   update each row whose id ends like r
 */
import type { Target } from "./measured_queue.ts";

/** The size of the queue in a table, or of each owner's queue if the table has owners. */
export interface QueueShape {
  readonly live: number;
  /** The number of rows added and deleted per round, which must be even. */
  readonly step: number;
}

export type StatementKind = "insert" | "delete" | "update";

export interface QueueStatement {
  readonly kind: StatementKind;
  readonly round: number;
  /**
   * The first id of the range, inclusive. An update changes only the ids in its range that end in
   * the same digit as the number of its round.
   */
  readonly firstId: number;
  readonly lastId: number;
}

export const STATEMENTS_PER_ROUND = 4;

const KINDS = 16;
const TENTH = 10;

/** Returns the number of row versions that a round writes. */
export function versionsPerRound({ live, step }: QueueShape): number {
  return 2 * step + live / TENTH;
}

/** Returns the statements of a round, in order. */
export function statementsOf({ live, step }: QueueShape, round: number): QueueStatement[] {
  const behind = (round - 1) * step;
  const front = behind + live;
  return [
    { kind: "insert", round, firstId: front + 1, lastId: front + step },
    { kind: "delete", round, firstId: behind + 1, lastId: behind + step / 2 },
    { kind: "delete", round, firstId: behind + step / 2 + 1, lastId: behind + step },
    { kind: "update", round, firstId: behind + step + 1, lastId: front + step },
  ];
}

/** Returns the ids of the first and the last row that are live after a round. */
export function aliveAfter({ live, step }: QueueShape, round: number): [number, number] {
  return [round * step + 1, round * step + live];
}

/** Returns the SQL of a statement. Tidemark and PostgreSQL interpret it in the same way. */
export function sqlOf(statement: QueueStatement, target: Target): string {
  const { kind, lastId, round } = statement;
  const { owner, table, touched = "" } = target;
  const own = owner === undefined ? "" : ` AND owner = ${owner}`;
  switch (kind) {
    case "insert":
      return insertSql(statement, target);
    case "delete":
      return `DELETE FROM ${table} WHERE id <= ${lastId}${own}`;
    case "update":
      return `UPDATE ${table} SET qty = ${round}${touched} WHERE id % ${TENTH} = ${round % TENTH}${own}`;
  }
}

/** Returns an INSERT statement for the rows with the given range of ids. */
export function insertSql(
  { firstId, lastId }: { readonly firstId: number; readonly lastId: number },
  { owner, table }: Target,
): string {
  const columns = owner === undefined ? "" : "owner, ";
  const values = owner === undefined ? "" : `${owner}, `;
  return (
    `INSERT INTO ${table} (${columns}id, kind, qty, body) ` +
    `SELECT ${values}i, 'kind' || (i % ${KINDS}), 0, 'the body of job ' || i ` +
    `FROM generate_series(${firstId}, ${lastId}) AS g(i)`
  );
}

/** Returns whether a statement writes a version of the row with the given id. */
export function concerns({ firstId, kind, lastId, round }: QueueStatement, id: number): boolean {
  if (id < firstId || id > lastId) return false;
  return kind !== "update" || id % TENTH === round % TENTH;
}

/** Returns the number of row versions that a statement writes. */
export function versionsOf(statement: QueueStatement): number {
  let count = 0;
  for (let id = statement.firstId; id <= statement.lastId; id += 1) {
    if (concerns(statement, id)) count += 1;
  }
  return count;
}

export interface QueueRow {
  readonly id: number;
  readonly kind: string;
  readonly qty: number;
  readonly body: string;
}

/**
 * Returns the row with the given id as of the end of a round. The row must not have been deleted
 * by then.
 */
export function rowAfter({ live, step }: QueueShape, id: number, round: number): QueueRow {
  const insertedIn = Math.max(0, Math.ceil((id - live) / step));
  const updatedIn = round - ((((round - id) % TENTH) + TENTH) % TENTH);
  const isUpdated = updatedIn >= Math.max(insertedIn, 1);
  const qty = isUpdated ? updatedIn : 0;
  return { id, kind: `kind${id % KINDS}`, qty, body: `the body of job ${id}` };
}
