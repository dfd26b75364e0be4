/**
 * Implements the thin front end of a peer: HTTP and WebSocket in front of PostgreSQL, SQLite or
 * Redis, in a separate process. It does only the work of a hand-written back end: it checks the
 * same bearer token as Tidemark, runs one prepared statement, and routes each written row by
 * topic. It accepts SQL only for bulk loads, and it has no versions and no filters.
 *
 *     bun scripts/bench/systems/front.ts <postgres|sqlite|redis> <url or path> <token secret>
 *
 * It prints its port, and ends when its stdin is closed, so that it cannot outlive the script that
 * started it.
 */
import type { ServerWebSocket } from "bun";
import { TokenCheck } from "./bearer.ts";
import { openPostgres } from "./postgres_peer.ts";
import { openRedis } from "./redis_peer.ts";
import type { Item } from "./rows.ts";
import { openSqlite } from "./sqlite_peer.ts";

/** Selects the sockets that receive an inserted row. */
export type Topic = "none" | "same" | "own";

/** Stores and delivers rows for the front end. */
export interface Relay {
  /** Inserts a row, and publishes it once it is durable. */
  insertAndPublish(item: Item, topic: Topic): Promise<void>;
}

/** A database behind a front end. */
export interface Peer extends Relay {
  insert(item: Item): Promise<void>;
  byId(id: number): Promise<Item | undefined>;
  /** Runs a statement that returns no rows, such as an INSERT of many rows. */
  bulk(sql: string): Promise<void>;
  query(sql: string): Promise<readonly unknown[]>;
  /** Returns all rows of the snapshot table, in order. */
  all(): Promise<readonly Item[]>;
  empty(): Promise<void>;
}

/** Sends a row that has become durable to the sockets that follow its topic. */
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
  // A relay stores no rows, so it offers none of the following endpoints.
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
    case "/change": {
      const { table, sql } = (await request.json()) as { table: string; sql: string };
      await peer.bulk(sql);
      publish(`table:${table}`, sql);
      return Response.json({ row_count: 1 });
    }
    case "/query": {
      const { sql } = (await request.json()) as { sql: string };
      return Response.json({ rows: await peer.query(sql) });
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
    const table = /^table:(\w+)$/.exec(message)?.[1];
    if (table !== undefined) socket.subscribe(message);
    const rows =
      (await (table === undefined ? peer?.all() : peer?.query(`SELECT * FROM ${table}`))) ?? [];
    for (let start = 0; start < rows.length; start += SNAPSHOT_BATCH_ROWS) {
      const batch = rows.slice(start, start + SNAPSHOT_BATCH_ROWS);
      socket.send(JSON.stringify({ type: "initial_data_batch", rows: batch }));
    }
    socket.send(JSON.stringify({ type: "ready" }));
    return;
  }
  socket.send(JSON.stringify({ type: "ready" }));
}
