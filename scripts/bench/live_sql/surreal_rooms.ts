/**
 * Measures SurrealDB's embedded engine, in memory, as a system in which users follow room lists.
 * Its live queries read a single table and neither join nor count. Each user therefore follows the
 * new messages in their rooms, and would have to maintain the list and the unread counts
 * themselves.
 */
import { importPeer } from "./npm_peer.ts";
import { type RoomsSystem, roomsOf } from "./rooms.ts";

/** The part of SurrealDB's client that this benchmark uses. */
interface SurrealClient {
  connect(url: string): Promise<unknown>;
  use(system: { namespace: string; database: string }): Promise<unknown>;
  query(sql: string, values?: Readonly<Record<string, unknown>>): Promise<readonly unknown[]>;
  liveOf(id: unknown): Promise<{
    subscribe(receive: (message: { readonly value: LiveMessage }) => void): unknown;
  }>;
  close(): Promise<unknown>;
}

interface LiveMessage {
  readonly number: number;
  readonly room: number;
}

interface ClientModule {
  readonly Surreal: new (options: { readonly engines: unknown }) => SurrealClient;
}

interface EngineModule {
  readonly createNodeEngines: () => unknown;
}

export async function surrealRooms(): Promise<RoomsSystem> {
  const { Surreal } = (await importPeer("surrealdb")) as ClientModule;
  const { createNodeEngines } = (await importPeer("@surrealdb/node")) as EngineModule;
  const db = new Surreal({ engines: createNodeEngines() });
  await db.connect("mem://");
  await db.use({ namespace: "bench", database: "bench" });
  await db.query("DEFINE TABLE messages SCHEMALESS");
  return {
    async follow(userCount, onRooms) {
      for (let user = 0; user < userCount; user += 1) {
        const [id] = await db.query("LIVE SELECT number, room FROM messages WHERE room IN $rooms", {
          rooms: roomsOf(user),
        });
        const live = await db.liveOf(id);
        live.subscribe(({ value: { number, room } }) => onRooms(user, [{ room, last: number }]));
      }
    },
    async write({ id, room }) {
      const values = { number: id, room, text: `message ${id}` };
      await db.query("CREATE messages CONTENT $values", { values });
    },
    async stop() {
      await db.close();
    },
  };
}
