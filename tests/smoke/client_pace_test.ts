/**
 * Tests the client library on the real process with more live queries than the message rate limit
 * allows per second. All queries start at the allowed rate (§9.11) over one connection, and again
 * after the connection has been lost.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient, type LiveEvent, type LiveQuery } from "../../src/client/mod.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { until } from "../support/until.ts";

const QUERIES = 80;

let server: ServerProcess;
let client: Client;
const states: string[] = [];

beforeAll(async () => {
  server = await startReadyServer({ config: { limits: { messages_per_sec: 50 } } });
  await server.rows("CREATE NAMESPACE pace");
  await server.rows("CREATE SHARED TABLE pace.t (id BIGINT PRIMARY KEY)");
  await server.rows("INSERT INTO pace.t VALUES (1), (2), (3), (4), (5)");
  client = createClient({ url: server.url, onConnection: (state) => states.push(state) });
  await client.session.login(ADMIN, PASSWORD);
});

afterAll(async () => {
  client.close();
  await server.stop();
});

test("more live queries than messages per second start over one connection, and restart after a loss", async () => {
  const ids: string[][] = [];
  const queries: LiveQuery[] = [];
  for (let index = 0; index < QUERIES; index += 1) {
    const got: string[] = [];
    ids.push(got);
    const onEvent = (event: LiveEvent): void => {
      if (event.type !== "rows" && event.type !== "change") return;
      const { rows } = event.type === "rows" ? event : event.change;
      got.push(...rows.map(({ id }) => `${Number(id)}`));
    };
    const batchSize = index % 20 === 0 ? 2 : 100;
    queries.push(client.live("SELECT id FROM pace.t", { onEvent, batchSize }));
  }
  const areReady = (): boolean => queries.every(({ status }) => status === "ready");
  await until(areReady);
  expect(states).toEqual(["connecting", "open"]);
  const expected = queries.map(() => ["1", "2", "3", "4", "5"]);
  expect(ids).toEqual(expected);
  client.interrupt(0);
  await server.rows("INSERT INTO pace.t VALUES (6)");
  await until(() => areReady() && ids.every((got) => got.length === 6));
  expect(ids).toEqual(queries.map(() => ["1", "2", "3", "4", "5", "6"]));
  expect(states).toEqual(["connecting", "open", "waiting", "connecting", "open"]);
});
