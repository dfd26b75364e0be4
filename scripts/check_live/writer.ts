/**
 * One writer: statements over HTTP, one after the other, each entered in the ledger with what its
 * RETURNING said it wrote. Writers of one partition write the same keys.
 */
import type { SeededRandom } from "../../tests/support/seeded_random.ts";
import type { ServerProcess } from "../../tests/support/server_process.ts";
import type { Ledger, Row, Written } from "./ledger.ts";
import { partitionName } from "./queries.ts";

/** Few enough that rows are replaced again and again. */
const KEYS = 400;

const ROOMS = ["lobby", "hall", "attic", "cellar", null];

const RETURNING = "RETURNING id, room, n, body, _seq";

export interface WriterOptions {
  readonly server: ServerProcess;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly token: string;
  readonly user: string;
  readonly table: "items" | "board";
  /** Makes its texts different from everybody's. */
  readonly mark: string;
}

/** Writes until the ledger holds `changes` versions. Returns how many statements it took. */
export async function write(options: WriterOptions, changes: number): Promise<number> {
  let count = 0;
  while (options.ledger.versionCount < changes) {
    count += 1;
    await writeOnce(options, `${options.mark}${count}`);
  }
  return count;
}

async function writeOnce(options: WriterOptions, text: string): Promise<void> {
  const { server, ledger, random, token, user, table } = options;
  const chosen = random.below(10);
  const size = random.chance(0.5) ? 1 : random.between(2, 40);
  const keys = random.shuffle(Array.from({ length: KEYS }, (_, id) => id)).slice(0, size);
  const isDelete = chosen >= 8;
  const statement = isDelete
    ? `DELETE FROM live.${table} WHERE id IN (${keys.join(", ")}) ${RETURNING}`
    : chosen >= 5
      ? updateOf(table, keys, { random, text })
      : upsertOf(table, keys, { random, text });
  const enter = ledger.begin(partitionName(table, user));
  const rows = await server.rows(statement, { token });
  enter(rows.map((cells) => writtenFrom(cells, isDelete)));
}

interface Making {
  readonly random: SeededRandom;
  /** Unlike any before, so that every update makes a version. */
  readonly text: string;
}

function upsertOf(table: string, keys: readonly number[], { random, text }: Making): string {
  const values = keys.map((id) => {
    const room = random.pick(ROOMS);
    const n = random.chance(0.1) ? "NULL" : random.below(80);
    return `(${id}, ${room === null ? "NULL" : `'${room}'`}, ${n}, '${text}')`;
  });
  return (
    `INSERT INTO live.${table} (id, room, n, body) VALUES ${values.join(", ")} ` +
    `ON CONFLICT (id) DO UPDATE SET room = excluded.room, n = excluded.n, body = excluded.body ` +
    RETURNING
  );
}

function updateOf(table: string, keys: readonly number[], { random, text }: Making): string {
  const room = random.pick(ROOMS);
  const set = random.pick([
    `room = ${room === null ? "NULL" : `'${room}'`}`,
    `n = n + ${random.between(1, 20)}`,
    `n = ${random.below(80)}`,
    "n = NULL",
  ]);
  return (
    `UPDATE live.${table} SET ${set}, body = '${text}' ` +
    `WHERE id IN (${keys.join(", ")}) ${RETURNING}`
  );
}

function writtenFrom(cells: readonly unknown[], isDeleted: boolean): Written {
  const [id, room, n, body, seq] = cells;
  if (typeof id !== "number" || typeof seq !== "number") {
    throw new Error(`RETURNING gave ${JSON.stringify(cells)}`);
  }
  const row = { id, room, n, body } as Row;
  return { seq, isDeleted, row };
}
