/**
 * Defines the systems in which users follow room lists: Tidemark, PostgreSQL with a query repeated
 * after each NOTIFY, and PGlite with its live queries.
 */
import { startPostgres } from "../../../tests/support/postgres.ts";
import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { importPeer } from "./npm_peer.ts";
import { ROOMS_QUERY, ROOMS_SCHEMA, type RoomRow, type RoomsSystem, roomsData } from "./rooms.ts";
import { followTidemark } from "./tidemark_followers.ts";

const INSERT = "INSERT INTO messages (id, room, text) VALUES ($1, $2, $3)";

const SOCKETS = 100;

/**
 * The maximum number of connections to PostgreSQL. On two cores, the same load was slower with
 * more of them.
 */
const CONNECTIONS_MAX = 16;

/**
 * Prepares a Tidemark server as a system to be measured, with its tables in the namespace "bench".
 */
export async function tidemarkRooms(server: ServerProcess): Promise<RoomsSystem> {
  const shared = " WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')";
  for (const sql of ROOMS_SCHEMA) {
    const text = sql.startsWith("CREATE TABLE") ? `${sql}${shared}` : sql;
    await server.rows(text, { namespace: "bench" });
  }
  return {
    async follow(userCount, onRooms) {
      for (const sql of roomsData(userCount)) await server.rows(sql, { namespace: "bench" });
      await followTidemark(server, {
        count: userCount,
        socketCount: SOCKETS,
        queryOf: (user) => ({ sql: ROOMS_QUERY, params: [user] }),
        onRows: (user, rows) => onRooms(user, rows as unknown as readonly RoomRow[]),
      });
    },
    async write({ id, room }) {
      const params = [id, room, `message ${id}`];
      await server.rows(INSERT, { namespace: "bench", params });
    },
    stop: () => Promise.resolve(),
  };
}

/**
 * Starts PostgreSQL as a system to be measured. Each follower repeats its query after a NOTIFY,
 * unless it is still waiting for a response.
 */
export async function postgresRooms(): Promise<RoomsSystem> {
  const postgres = await startPostgres();
  const sql = new Bun.SQL(postgres.url, { max: CONNECTIONS_MAX, bigint: false });
  for (const text of ROOMS_SCHEMA) await sql.unsafe(text);
  let ask: (() => void) | undefined;
  await sql.listen("changes", () => ask?.());
  return {
    async follow(userCount, onRooms) {
      for (const text of roomsData(userCount)) await sql.unsafe(text);
      await sql.unsafe("ANALYZE");
      const askers = Array.from({ length: userCount }, (_, user) => {
        return new Asker(async () => {
          const rows = (await sql.unsafe(ROOMS_QUERY, [user])) as RoomRow[];
          onRooms(user, rows);
        });
      });
      ask = () => {
        for (const asker of askers) asker.ask();
      };
    },
    async write({ id, room }) {
      await sql.unsafe(`WITH added AS (${INSERT}) SELECT pg_notify('changes', '')`, [
        id,
        room,
        `message ${id}`,
      ]);
    },
    async stop() {
      ask = undefined;
      await sql.close();
      await postgres.stop();
    },
  };
}

/**
 * Repeats a query after each change, but never runs it twice at the same time. Changes that arrive
 * in the meantime share one repetition.
 */
class Asker {
  readonly #query: () => Promise<void>;
  #isAsking = false;
  #isDue = false;

  constructor(query: () => Promise<void>) {
    this.#query = query;
  }

  ask(): void {
    if (this.#isAsking) this.#isDue = true;
    else void this.#run();
  }

  async #run(): Promise<void> {
    this.#isAsking = true;
    do {
      this.#isDue = false;
      await this.#query();
    } while (this.#isDue);
    this.#isAsking = false;
  }
}

/** The part of PGlite's interface that this benchmark uses. */
interface PgliteModule {
  readonly PGlite: {
    create(options: { extensions: { live: unknown } }): Promise<{
      exec(sql: string): Promise<unknown>;
      query(sql: string, params: readonly unknown[]): Promise<unknown>;
      readonly live: {
        query(
          sql: string,
          params: readonly unknown[],
          callback: (results: { rows: RoomRow[] }) => void,
        ): Promise<unknown>;
      };
      close(): Promise<void>;
    }>;
  };
}

export async function pgliteRooms(): Promise<RoomsSystem> {
  const { PGlite } = (await importPeer("@electric-sql/pglite")) as PgliteModule;
  const { live } = (await importPeer("@electric-sql/pglite", "live")) as { live: unknown };
  const db = await PGlite.create({ extensions: { live } });
  for (const sql of ROOMS_SCHEMA) await db.exec(sql);
  return {
    async follow(userCount, onRooms) {
      for (const sql of roomsData(userCount)) await db.exec(sql);
      for (let user = 0; user < userCount; user += 1) {
        await db.live.query(ROOMS_QUERY, [user], ({ rows }) => onRooms(user, rows));
      }
    },
    async write({ id, room }) {
      await db.query(INSERT, [id, room, `message ${id}`]);
    },
    stop: () => db.close(),
  };
}
