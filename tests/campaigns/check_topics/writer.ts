/**
 * Implements a writer. It runs transactions over rows that no other writer changes, so that after
 * a crash the rows show whether an unanswered transaction was committed.
 */
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { World } from "../check_live/world.ts";
import type { Change, Ledger, TableName } from "./ledger.ts";

/**
 * The number of rows per table and writer. It is small, so that rows are replaced again and again.
 */
const ROWS = 60;

const ROOMS = ["hall", "attic", "cellar"];

/** The maximum number of rows changed by a transaction. */
const CHANGES_MAX = 12;

interface RowState {
  readonly n: number;
  readonly room: string;
}

export interface WriterOptions {
  readonly world: World;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly index: number;
  readonly writerCount: number;
  /** The user who owns the notes that the writer writes. */
  readonly user: string;
  readonly userToken: string;
  readonly adminToken: string;
}

export class Writer {
  readonly #options: WriterOptions;
  readonly #rows = new Map<string, RowState>();
  #written = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** Writes until the ledger contains `changes` changes. */
  async run(changes: number): Promise<void> {
    const { ledger, world } = this.#options;
    while (ledger.changeCount < changes) await world.atWork(() => this.#commitOne());
  }

  async #commitOne(): Promise<void> {
    const { adminToken, ledger, random, userToken } = this.#options;
    const isNotes = random.chance(0.3);
    const changes = this.#changes(isNotes ? ["notes"] : ["items", "board"]);
    const sql = `BEGIN; ${changes.map(statementOf).join("; ")}; COMMIT`;
    const token = isNotes ? userToken : adminToken;
    if (!(await this.#isCommitted(sql, { changes, token }))) return;
    ledger.enter(changes);
    for (const { key, n, operation, room, table } of changes) {
      if (operation === "Delete") this.#rows.delete(`${table}/${key}`);
      else this.#rows.set(`${table}/${key}`, { n, room });
    }
  }

  #changes(tables: readonly TableName[]): Change[] {
    const { index, random, writerCount } = this.#options;
    const numbers = random.shuffle(Array.from({ length: ROWS }, (_, number) => number));
    const count = random.chance(0.5) ? 1 : random.between(2, CHANGES_MAX);
    return numbers
      .slice(0, count)
      .map((number) => this.#change(random.pick(tables), number * writerCount + index));
  }

  #change(table: TableName, key: number): Change {
    const { index, random, user, writerCount } = this.#options;
    const row = this.#rows.get(`${table}/${key}`);
    const place = { table, user: table === "notes" ? user : undefined, key, old: row?.n };
    if (row !== undefined && random.chance(0.3)) return { ...place, operation: "Delete", ...row };
    this.#written += 1;
    const n = this.#written * writerCount + index;
    const operation = row === undefined ? "Insert" : "Update";
    return { ...place, operation, n, room: random.pick(ROOMS) };
  }

  /** Runs a transaction. If the server ended during it, the rows show whether it was committed. */
  async #isCommitted(
    sql: string,
    { changes, token }: { changes: readonly Change[]; token: string },
  ): Promise<boolean> {
    const { world } = this.#options;
    if ((await askedOnce(world, sql, token)) !== undefined) return true;
    const [first] = changes;
    if (first === undefined) return false;
    const query = `SELECT n FROM app.${first.table} WHERE id = ${first.key}`;
    for (;;) {
      await world.whenUp();
      const found = await askedOnce(world, query, token);
      if (found === undefined) continue;
      const n = found[0]?.[0];
      return first.operation === "Delete" ? n === undefined : n === first.n;
    }
  }
}

function statementOf({ key, n, operation, room, table }: Change): string {
  switch (operation) {
    case "Insert":
      return `INSERT INTO app.${table} (id, room, n) VALUES (${key}, '${room}', ${n})`;
    case "Update":
      return `UPDATE app.${table} SET room = '${room}', n = ${n} WHERE id = ${key}`;
    case "Delete":
      return `DELETE FROM app.${table} WHERE id = ${key}`;
  }
}

/** Runs statements. Returns undefined if the server ended during them. */
async function askedOnce(
  world: World,
  sql: string,
  token: string,
): Promise<readonly (readonly unknown[])[] | undefined> {
  const { life } = world;
  try {
    return await world.server.rows(sql, { token });
  } catch (error) {
    // The pause allows time for an exit of the server to be noticed. If the server is still in the
    // same life afterwards, the error has a different cause.
    await Bun.sleep(1);
    if (life !== undefined && world.life === life) throw error;
    return undefined;
  }
}
