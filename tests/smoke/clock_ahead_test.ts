/**
 * Tests a server whose clock was an hour ahead, and that is killed and restarted with a correct
 * clock. Rows live as long as their table specifies, and changes are dated by the correct clock.
 */
import { expect, test } from "bun:test";
import { EventClient } from "../support/event_client.ts";
import { bundleCommand, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;

test("rows, changes and ids follow the current clock after the clock was ahead", async () => {
  const env: Record<string, string> = { SHIFT_CLOCK_MS: String(HOUR_MS) };
  const preload = ["--preload", "./tests/support/shifted_clock.ts"];
  const command = bundleCommand(preload);
  await using server = await startReadyServer({ command, env });
  await server.rows(`
    CREATE NAMESPACE app;
    CREATE STREAM TABLE app.events (id INT) WITH (TTL_SECONDS = 2);
    CREATE SHARED TABLE app.t (id INT PRIMARY KEY);
    INSERT INTO app.events VALUES (1);
    INSERT INTO app.t VALUES (1)`);

  env["SHIFT_CLOCK_MS"] = "0";
  await server.restart("SIGKILL");
  server.token = (await server.login("ada")).access_token;
  const headers = { Authorization: `Bearer ${server.token}` };
  const client = await EventClient.open(server.url, { sql: "SELECT id FROM app.t" }, headers);
  await client.expect("subscription_ack");
  await client.expect("initial_data_batch");
  const beforeMs = Date.now();
  await server.rows("INSERT INTO app.t VALUES (2)");
  const change = await client.expect("change");
  const ts = change.type === "change" ? (change.ts ?? 0) : 0;
  expect(ts).toBeGreaterThanOrEqual(beforeMs);
  expect(ts).toBeLessThanOrEqual(Date.now());
  client.close();

  await server.rows("INSERT INTO app.events VALUES (2)");
  const times = "SELECT SEQ_TIME(_seq) <= NOW() AND SEQ_TIME(_seq) > NOW() - INTERVAL '1 minute'";
  expect(await server.rows(`${times} FROM app.t WHERE id = 2`)).toEqual([[true]]);
  const id = `SELECT SEQ_TIME(SNOWFLAKE_ID()) BETWEEN NOW() - INTERVAL '1 minute' AND NOW() + INTERVAL '1 minute'`;
  expect(await server.rows(id)).toEqual([[true]]);
  const [ids] = await server.rows("SELECT min(_seq) < max(_seq), count(*) FROM app.t");
  expect(ids).toEqual([true, 2]);
  await until(async () => (await server.rows("SELECT id FROM app.events")).length === 0);
  expect(Date.now() - beforeMs).toBeLessThan(HOUR_MS);
  expect(server.output).toMatch(
    /WARN .*the system clock was set back; timestamps and expiry follow/,
  );
  expect(server.output).not.toContain("set the clock");

  // After the restart, the server knows the times of the seqs from its first run.
  await server.restart("SIGKILL");
  server.token = (await server.login("ada")).access_token;
  expect(await server.rows(`${times} FROM app.t WHERE id = 2`)).toEqual([[true]]);
});
