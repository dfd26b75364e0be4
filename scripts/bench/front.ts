/**
 * The thin front of a peer: HTTP and WebSocket before PostgreSQL, SQLite or Redis, in a process of
 * its own. It does what a hand-written backend does, and no more: it checks the same bearer token
 * as Tidemark, runs one prepared statement, and routes what was written by topic. There is no SQL
 * text but in bulk, no versions, no filter.
 *
 *     bun scripts/bench/front.ts <postgres|sqlite|redis> <url or path> <token secret>
 *
 * Prints its port. Ends when its stdin does, so that it cannot outlive the script that started it.
 */
import type { ServerWebSocket } from "bun";
import { TokenCheck } from "./bearer.ts";
import { openPostgres } from "./postgres_peer.ts";
import { openRedis } from "./redis_peer.ts";
import type { Item } from "./rows.ts";
import { openSqlite } from "./sqlite_peer.ts";

/** Who hears of an inserted row. */
export type Topic = "none" | "same" | "own";

/** What whoever can tell sockets of rows does for its front. */
export interface Relay {
  /** Inserts, and calls the publisher with the row once it is durable. */
  insertAndPublish(item: Item, topic: Topic): Promise<void>;
}

/** What a database does for its front. */
export interface Peer extends Relay {
  insert(item: Item): Promise<void>;
  byId(id: number): Promise<Item | undefined>;
  /** Runs an INSERT of many rows. */
  bulk(sql: string): Promise<void>;
  /** All rows of the snapshot table, in order. */
  all(): Promise<readonly Item[]>;
  empty(): Promise<void>;
}

/** Takes a row that became durable to the sockets that follow it. */
export type Publish = (topic: string, text: string) => void;

const SNAPSHOT_BATCH_ROWS = 1000;

const [kind = "", address = "", secret = ""] = process.argv.slice(2);
const tokens = new TokenCheck(secret);
const publish: Publish = (topic, text) => {
  server.publish(topic, text);
};
const peer = await openPeer();
const relay: Relay = peer ?? (await openRedis(address, publish));

const server = Bun.serve<{ user: string }>({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request, self) {
    const user = tokens.userOf(request.headers.get("Authorization"));
    if (user === undefined) return new Response(null, { status: 401 });
    const { pathname } = new URL(request.url);
    if (pathname === "/ws") {
      const isUpgraded = self.upgrade(request, { data: { user } });
      return isUpgraded ? undefined : new Response(null, { status: 426 });
    }
    return answer(pathname, user, request);
  },
  websocket: {
    idleTimeout: 120,
    perMessageDeflate: false,
    async message(socket, message) {
      await follow(socket, String(message));
    },
  },
});

process.stdout.write(`${server.port}\n`);
for await (const _ of Bun.stdin.stream()) continue;
process.exit(0);

async function openPeer(): Promise<Peer | undefined> {
  if (kind === "postgres") return openPostgres(address, publish);
  return kind === "sqlite" ? openSqlite(address, publish) : undefined;
}

async function answer(path: string, user: string, request: Request): Promise<Response> {
  if (path === "/same" || path === "/own") {
    const item = (await request.json()) as Item;
    await relay.insertAndPublish({ ...item, usr: user }, path === "/own" ? "own" : "same");
    return Response.json({ row_count: 1 });
  }
  // A relay alone has no rows to ask for.
  if (peer === undefined) return new Response(null, { status: 404 });
  switch (path) {
    case "/insert": {
      await peer.insert((await request.json()) as Item);
      return Response.json({ row_count: 1 });
    }
    case "/point": {
      const { id } = (await request.json()) as { id: number };
      return Response.json({ rows: [await peer.byId(id)] });
    }
    case "/bulk": {
      await peer.bulk(((await request.json()) as { sql: string }).sql);
      return Response.json({ row_count: 1 });
    }
    case "/empty": {
      await peer.empty();
      return Response.json({ row_count: 0 });
    }
    default:
      return new Response(null, { status: 404 });
  }
}

async function follow(socket: ServerWebSocket<{ user: string }>, message: string): Promise<void> {
  if (message === "same") socket.subscribe("same");
  else if (message === "own") socket.subscribe(`own:${socket.data.user}`);
  else {
    const rows = (await peer?.all()) ?? [];
    for (let start = 0; start < rows.length; start += SNAPSHOT_BATCH_ROWS) {
      const batch = rows.slice(start, start + SNAPSHOT_BATCH_ROWS);
      socket.send(JSON.stringify({ type: "initial_data_batch", rows: batch }));
    }
    socket.send(JSON.stringify({ type: "ready" }));
    return;
  }
  socket.send(JSON.stringify({ type: "ready" }));
}
