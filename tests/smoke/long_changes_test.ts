/**
 * Tests changes to many rows on the real process: the messages that subscribers receive, and how
 * such a change is stopped over HTTP.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const ROWS = 12_000;

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows(
    "CREATE NAMESPACE app; CREATE SHARED TABLE app.t (id BIGINT PRIMARY KEY, v INT);" +
      `INSERT INTO app.t SELECT g, 0 FROM generate_series(1, ${ROWS}) g`,
  );
});

afterAll(async () => {
  await server.stop();
});

test("a subscriber receives exactly the committed changes, once and in order", async () => {
  const client = await SocketClient.connect(server.url, { token: server.token });
  const sql = "SELECT id, v FROM app.t WHERE id > 0";
  const options = { last_rows: 0 };
  client.send({ type: "subscribe", subscription: { id: "s", sql, options } });
  await untilReady(client);
  const running = server.sql("UPDATE app.t SET v = v + 1 RETURNING id, _seq");
  // Another statement commits during the change. The next change fails, so it never commits.
  await server.rows("INSERT INTO app.t VALUES (0 - 1, 5)");
  const { body } = await running;
  await server.sql(`UPDATE app.t SET v = 1 / (${ROWS} - id)`);
  await server.rows("DELETE FROM app.t WHERE id = 1");

  const seen: unknown[][] = [];
  const commits = new Set<unknown>();
  for (;;) {
    const message = await client.next();
    if (message.type !== "change") continue;
    if (message.change_type === "delete") break;
    commits.add(message.commit_seq);
    for (const { _seq, id, v } of message.rows) seen.push([id, _seq, v]);
  }
  const returned = body.results[0]?.rows ?? [];
  expect(returned).toHaveLength(ROWS);
  expect(seen).toEqual(returned.map(([id, seq]) => [id, seq, 1]));
  expect(commits).toEqual(new Set([body.results[0]?.last_seq]));
  client.close();
});

test("KILL QUERY ends a change, of which nothing remains", async () => {
  const before = await server.rows("SELECT COUNT(*), SUM(v), MAX(_seq) FROM app.t");
  const running = server.sql(
    "UPDATE app.t SET v = t.v + 1 FROM app.t a, app.t b WHERE a.id + b.id = t.id",
  );
  const listed = "SELECT query_id FROM system.queries WHERE sql LIKE 'UPDATE%'";
  let found: readonly (readonly unknown[])[] = [];
  await until(async () => {
    found = await server.rows(listed);
    return found.length > 0;
  });
  await server.rows(`KILL QUERY '${String(found[0]?.[0])}'`);
  const { body } = await running;
  expect([body.error?.code, body.error?.reason]).toEqual(["SQL_EXECUTION_ERROR", "cancelled"]);
  expect(await server.rows("SELECT COUNT(*), SUM(v), MAX(_seq) FROM app.t")).toEqual(before);
});

async function untilReady(client: SocketClient): Promise<void> {
  for (;;) {
    const message = await client.next();
    if (message.type !== "initial_data_batch") continue;
    if (!message.batch_control.has_more) return;
    client.send({ type: "next_batch", subscription_id: message.subscription_id });
  }
}
