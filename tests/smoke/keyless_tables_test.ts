/**
 * Tests tables without a primary key on the real process: `_key` identifies live rows and topic
 * messages, even after a crash, after a resume, and once a primary key has been added.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ServerMessage } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

/** Returns the type, key and value of the next change, together with its position. */
async function nextChange(socket: SocketClient): Promise<{ told: unknown[]; seq: unknown }> {
  let message: ServerMessage = await socket.next();
  while (message.type !== "change") message = await socket.next();
  const { change_type: type, old_values: old = [], rows } = message;
  const [row] = rows.length > 0 ? rows : old;
  const { _key: key, _seq: seq, a } = row ?? {};
  return { told: [type, key, a], seq };
}

test("a row keeps its _key in snapshots, changes, resumes and messages", async () => {
  await server.rows("CREATE TABLE app.plain (a INT, b TEXT); CREATE TOPIC app.told");
  for (const kind of ["INSERT", "UPDATE", "DELETE"]) {
    await server.rows(
      `ALTER TOPIC app.told ADD SOURCE app.plain ON ${kind} WITH (payload = 'key')`,
    );
  }
  await server.rows("INSERT INTO app.plain VALUES (1, 'x'), (1, 'x')");
  const keys = (await server.rows("SELECT _key FROM app.plain ORDER BY _key")).map(([key]) => key);
  expect(new Set(keys).size).toBe(2);
  const [first, second] = keys;

  const { token, url } = server;
  const socket = await SocketClient.connect(url, { token });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription: { id: "s", sql: "SELECT a FROM app.plain" } });
  const { schema } = await socket.expect("subscription_ack");
  expect(schema.map(({ flags = [], name }) => [name, flags.includes("pk")])).toEqual([
    ["a", false],
    ["_key", true],
    ["_seq", false],
  ]);
  const { rows } = await socket.expect("initial_data_batch");
  expect(new Set<unknown>(rows.map(({ _key: key }) => key))).toEqual(new Set(keys));

  await server.rows(`UPDATE app.plain SET a = 2 WHERE _key = ${String(first)}`);
  expect((await nextChange(socket)).told).toEqual(["update", first, 2]);
  await server.rows("DELETE FROM app.plain WHERE a = 1");
  const { seq, told } = await nextChange(socket);
  expect(told.slice(0, 2)).toEqual(["delete", second]);
  socket.close();

  await server.rows("ALTER TABLE app.plain ADD PRIMARY KEY (a)");
  await server.rows("UPDATE app.plain SET a = 3 WHERE a = 2");
  await server.restart("SIGKILL");
  const again = await SocketClient.connect(server.url, { token: server.token });
  await again.expect("auth_success");
  const subscription = { id: "r", sql: "SELECT a FROM app.plain", options: { from_seq_id: seq } };
  again.send({ type: "subscribe", subscription });
  await again.expect("subscription_ack");
  expect((await again.expect("initial_data_batch")).rows).toMatchObject([{ a: 3, _key: first }]);
  again.close();
  expect((await server.sql("INSERT INTO app.plain VALUES (3, 'y')")).body.error?.reason).toBe(
    "duplicate_key",
  );

  const messages = await server.rows("CONSUME FROM app.told FROM EARLIEST LIMIT 10");
  const told2 = messages.map((row) => row.map(String).find((cell) => cell.startsWith('{"_key"')));
  expect(told2).toEqual(
    [first, second, first, second, first].map((key) => `{"_key":${JSON.stringify(key)}}`),
  );
});
