/**
 * Uses SQLite as a careful front end would: write-ahead log, synchronous=FULL, and group commit,
 * which puts all inserts within a tick of the event loop into one transaction.
 */
import { Database } from "bun:sqlite";
import type { Peer, Publish } from "./front.ts";
import type { Item } from "./rows.ts";

interface Waiting {
  readonly item: Item;
  readonly table: "items" | "feed";
  readonly done: (error?: Error) => void;
}

export function openSqlite(path: string, publish: Publish): Peer {
  const db = new Database(path);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  const columns = "(id INTEGER PRIMARY KEY, usr TEXT, body TEXT, ts INTEGER)";
  db.run(`CREATE TABLE IF NOT EXISTS items ${columns}`);
  db.run(`CREATE TABLE IF NOT EXISTS feed ${columns}`);
  const insert = {
    items: db.query("INSERT INTO items (id, usr, body, ts) VALUES (?, ?, ?, ?)"),
    feed: db.query("INSERT INTO feed (id, usr, body, ts) VALUES (?, ?, ?, ?)"),
  };
  const byId = db.query<Item, [number]>("SELECT id, usr, body, ts FROM items WHERE id = ?");
  const all = db.query<Item, []>("SELECT id, usr, body, ts FROM items ORDER BY id");

  let waiting: Waiting[] = [];
  const commitAll = db.transaction((batch: readonly Waiting[]) => {
    for (const { item, table } of batch) {
      insert[table].run(item.id, item.usr, item.body, item.ts);
    }
  });
  function commit(): void {
    const batch = waiting;
    waiting = [];
    try {
      commitAll(batch);
      for (const { done } of batch) done();
    } catch (error) {
      for (const { done } of batch) done(error as Error);
    }
  }
  function add(item: Item, table: "items" | "feed"): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(commit);
      waiting.push({
        item,
        table,
        done: (error) => (error === undefined ? resolve() : reject(error)),
      });
    });
  }
  return {
    insert: (item) => add(item, "items"),
    async insertAndPublish(item, topic) {
      await add(item, "feed");
      publish(topic === "own" ? `own:${item.usr}` : "same", JSON.stringify(item));
    },
    byId: (id) => Promise.resolve(byId.get(id) ?? undefined),
    bulk: (text) => Promise.resolve(void db.run(text)),
    query: (text) => Promise.resolve(db.query(text).all()),
    all: () => Promise.resolve(all.all()),
    empty: () => Promise.resolve(void db.run("DELETE FROM items; DELETE FROM feed")),
  };
}
