/**
 * Verifies that sockets and event streams of a real server end when their token expires, and that
 * other sessions continue. The tests set the server's clock a day ahead while the connections are
 * open.
 */
import { expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { EventClient } from "../support/event_client.ts";
import { bundleCommand, startReadyServer } from "../support/server_process.ts";

/**
 * The time in milliseconds after which a connection ends: the lifetime of its access token, a
 * leeway of a minute, and a grace period of another minute.
 */
const OVERDUE_MS = 24 * 3_600_000 + 120_000;

test("a socket and a stream end with TOKEN_EXPIRED, and those of a permanent service token continue", async () => {
  const preload = ["--preload", "./tests/support/shifted_clock.ts"];
  await using server = await startReadyServer({
    command: bundleCommand(preload),
    env: { SHIFT_CLOCK_BY_SIGNAL_MS: String(OVERDUE_MS) },
  });
  await server.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  const [row = []] = await server.rows("CREATE TOKEN worker FOR USER ada");
  const secret = String(row[1]);
  const sql = "SELECT id FROM app.t";
  const sockets = await Promise.all(
    [server.token, secret].map(async (token) => {
      const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
      await socket.expect("auth_success");
      socket.send({ type: "subscribe", subscription: { id: "a", sql } });
      await socket.expect("subscription_ack");
      await socket.expect("initial_data_batch");
      return socket;
    }),
  );
  const stream = await EventClient.open(
    server.url,
    { sql },
    { Authorization: `Bearer ${server.token}` },
  );
  await stream.expect("subscription_ack");
  await stream.expect("initial_data_batch");
  server.kill("SIGWINCH");
  const [login, service] = sockets;
  expect(await login?.expect("error")).toMatchObject({
    code: "TOKEN_EXPIRED",
    subscription_id: "a",
    ended: true,
  });
  expect(await login?.closed()).toMatchObject({ code: 1008 });
  expect(await stream.expect("subscription_error")).toMatchObject({
    code: "TOKEN_EXPIRED",
    ended: true,
  });
  const refused = await server.sql("SELECT 1");
  expect([refused.status, refused.body.error?.code]).toEqual([401, "TOKEN_EXPIRED"]);
  await server.rows("INSERT INTO app.t VALUES (1)", { token: secret });
  expect(await service?.expect("change")).toMatchObject({ rows: [{ id: 1 }] });
  service?.close();
});
