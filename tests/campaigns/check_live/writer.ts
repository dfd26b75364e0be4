/**
 * Implements a writer: it sends statements over HTTP, one after another, and enters the rows
 * reported by each RETURNING clause into the ledger. Writers of the same partition write the same
 * keys, but never the same key at the same time. After a crash, the rows therefore show whether an
 * unanswered statement took effect.
 */
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { Ledger, Row, Written } from "./ledger.ts";
import { partitionName } from "./queries.ts";
import type { World } from "./world.ts";

/** The number of keys. It is small, so that rows are replaced again and again. */
const KEYS = 400;

const ROOMS = ["lobby", "hall", "attic", "cellar", null];

const RETURNING = "RETURNING id, room, n, body, _seq";

export interface WriterOptions {
  readonly world: World;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly token: string;
  readonly user: string;
  readonly table: "items" | "board";
  /** A string in this writer's texts that distinguishes them from other writers' texts. */
  readonly mark: string;
  /** The keys that statements on this partition are currently writing. */
  readonly busy: Set<number>;
}

/** Writes until the ledger contains `changes` versions. Returns the number of statements. */
export async function write(options: WriterOptions, changes: number): Promise<number> {
  let count = 0;
  while (options.ledger.versionCount < changes) {
    count += 1;
    const text = `${options.mark}${count}`;
    await options.world.atWork(() => writeOnce(options, text));
  }
  return count;
}

async function writeOnce(options: WriterOptions, text: string): Promise<void> {
  const { busy, ledger, random, table, user } = options;
  const chosen = random.below(10);
  const size = random.chance(0.5) ? 1 : random.between(2, 40);
  const free = Array.from({ length: KEYS }, (_, id) => id).filter((id) => !busy.has(id));
  const keys = random.shuffle(free).slice(0, size);
  const isDelete = chosen >= 8;
  const statement = isDelete
    ? `DELETE FROM live.${table} WHERE id IN (${keys.join(", ")}) ${RETURNING}`
    : chosen >= 5
      ? updateOf(table, keys, { random, text })
      : upsertOf(table, keys, { random, text });
  const enter = ledger.begin(partitionName(table, user));
  for (const key of keys) busy.add(key);
  enter(await written(options, { statement, keys, isDelete }));
  for (const key of keys) busy.delete(key);
}

/**
 * Returns the rows that a statement wrote. If the server ended during the statement, the rows are
 * read back.
 */
async function written(
  { ledger, table, token, user, world }: WriterOptions,
  { statement, keys, isDelete }: { statement: string; keys: readonly number[]; isDelete: boolean },
): Promise<Written[]> {
  const rows = await askedOnce(world, statement, token);
  if (rows !== undefined) return rows.map((cells) => writtenFrom(cells, isDelete));
  // No other statement writes these keys in the meantime, so any version newer than the known
  // versions belongs to this statement.
  const known = ledger.newestSeqs(partitionName(table, user));
  const query =
    `SELECT id, room, n, body, _seq, _deleted FROM live.${table} ` +
    `WHERE id IN (${keys.join(", ")}) AND (_deleted OR NOT _deleted)`;
  let found: Cells | undefined;
  while (found === undefined) {
    await world.whenUp();
    found = await askedOnce(world, query, token);
  }
  return found
    .filter(([id, , , , seq]) => Number(seq) > (known.get(Number(id)) ?? 0))
    .map((cells) => writtenFrom(cells, cells[5] === true));
}

type Cells = readonly (readonly unknown[])[];

/** Runs a statement. Returns undefined if the server ends before it responds. */
async function askedOnce(world: World, sql: string, token: string): Promise<Cells | undefined> {
  const { life } = world;
  try {
    return await world.server.rows(sql, { token });
  } catch (error) {
    // The pause allows time for an exit of the server to be noticed. If the same process is still
    // running afterwards, the error has a different cause.
    await Bun.sleep(1);
    if (life !== undefined && world.life === life) throw error;
    return undefined;
  }
}

interface Making {
  readonly random: SeededRandom;
  /** Returns text that differs from all earlier text, so that every update creates a version. */
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
