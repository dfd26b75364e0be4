/**
 * Tests STREAM tables over the wire. A subscriber receives inserts and deletes, but no message
 * when a row expires.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
});
afterAll(() => server.stop());

test("a subscription follows inserts and deletes, and is not told about expiry", async () => {
  await server.rows("CREATE STREAM TABLE typing (who TEXT) WITH (TTL_SECONDS = 1)");
  await server.rows("INSERT INTO typing VALUES ('ann')");
  const socket = await SocketClient.connect(server.url, {
    token: server.token,
    query: "?compress=false",
  });
  await socket.expect("auth_success");
  const sql = "SELECT * FROM typing";
  socket.send({ type: "subscribe", subscription: { id: "s", sql } });
  const ack = await socket.expect("subscription_ack");
  expect(ack.schema.map(({ name }) => name)).toEqual(["who", "_seq"]);
  const snapshot = await socket.expect("initial_data_batch");
  expect(snapshot.rows).toMatchObject([{ who: "ann" }]);

  await server.rows("INSERT INTO typing VALUES ('bob'), ('bob')");
  const inserted = await socket.expect("change");
  expect(inserted).toMatchObject({ change_type: "insert", rows: [{ who: "bob" }, { who: "bob" }] });
  const [, second] = inserted.rows;
  await server.rows(`DELETE FROM typing WHERE _seq = ${String(second?.["_seq"])}`);
  const deleted = await socket.expect("change");
  expect(deleted).toMatchObject({
    change_type: "delete",
    old_values: [{ who: "bob", _row_seq: second?.["_seq"] }],
  });

  // Once this row has expired, so have all earlier rows and the deletion.
  await server.rows("INSERT INTO typing VALUES ('cat')");
  expect(await socket.expect("change")).toMatchObject({ rows: [{ who: "cat" }] });
  await until(async () => (await server.rows("SELECT * FROM typing")).length === 0);
  await server.rows("INSERT INTO typing VALUES ('late')");
  expect(await socket.expect("change")).toMatchObject({ rows: [{ who: "late" }] });
  // A resume replays the rows that have not expired.
  const from = snapshot.rows[0]?.["_seq"];
  socket.send({
    type: "subscribe",
    subscription: { id: "r", sql, options: { from_seq_id: from } },
  });
  await socket.expect("subscription_ack");
  expect(await socket.expect("initial_data_batch")).toMatchObject({ rows: [{ who: "late" }] });
  socket.close();
});
