/**
 * Uses PostgreSQL as a front end would: a pool of connections, prepared statements, and
 * LISTEN/NOTIFY in the transaction of the insert to notify the sockets.
 */
import type { Peer, Publish } from "./front.ts";
import type { Item } from "./rows.ts";

/**
 * The maximum number of connections to PostgreSQL. On two cores, the same load was slower with
 * more of them.
 */
const CONNECTIONS_MAX = 16;

export async function openPostgres(url: string, publish: Publish): Promise<Peer> {
  const sql = new Bun.SQL(url, { max: CONNECTIONS_MAX, bigint: false });
  await sql.unsafe(
    "CREATE TABLE IF NOT EXISTS items (id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT);" +
      "CREATE TABLE IF NOT EXISTS feed (id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT);" +
      "CREATE INDEX IF NOT EXISTS feed_usr ON feed (usr)",
  );
  await sql.listen("changes", (payload: string) => {
    const end = payload.indexOf(" ");
    publish(payload.slice(0, end), payload.slice(end + 1));
  });
  return {
    async insert({ id, usr, body, ts }) {
      await sql`INSERT INTO items (id, usr, body, ts) VALUES (${id}, ${usr}, ${body}, ${ts})`;
    },
    async insertAndPublish(item, topic) {
      const { id, usr, body, ts } = item;
      const payload = `${topic === "own" ? `own:${usr}` : "same"} ${JSON.stringify(item)}`;
      await sql`WITH added AS (
          INSERT INTO feed (id, usr, body, ts) VALUES (${id}, ${usr}, ${body}, ${ts})
        ) SELECT pg_notify('changes', ${payload})`;
    },
    async byId(id) {
      const [row] = await sql`SELECT id, usr, body, ts FROM items WHERE id = ${id}`;
      return row as Item | undefined;
    },
    async bulk(text) {
      await sql.unsafe(text);
    },
    async query(text) {
      return (await sql.unsafe(text)) as unknown[];
    },
    async all() {
      const rows = await sql`SELECT id, usr, body, ts FROM items ORDER BY id`;
      return rows as Item[];
    },
    async empty() {
      await sql.unsafe("TRUNCATE items, feed");
    },
  };
}
