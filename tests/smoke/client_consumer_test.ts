/**
 * Verifies that a consumer in the client library handles each message once and loses none, even if
 * handlers fail and the server is restarted or killed, and that it stops cleanly.
 */
import { expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const PASSWORD = "correct horse battery 9";

async function withTopic(): Promise<{ server: ServerProcess; db: Client }> {
  // The client reconnects to the same port.
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = probe;
  await probe.stop(true);
  const server = await startReadyServer({ config: { server: { port } } });
  const { body } = await server.sql(
    `CREATE NAMESPACE app;
     CREATE USER worker WITH PASSWORD '${PASSWORD}' ROLE service;
     CREATE TABLE app.jobs (id INT PRIMARY KEY, step INT);
     CREATE TOPIC app.work PARTITIONS 2;
     ALTER TOPIC app.work ADD SOURCE app.jobs ON INSERT;
     ALTER TOPIC app.work ADD SOURCE app.jobs ON UPDATE`,
  );
  expect(body.status).toBe("success");
  const db = createClient({ url: server.url, auth: { user: "worker", password: PASSWORD } });
  return { server, db };
}

const range = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => from + index);

async function insert(server: ServerProcess, ids: readonly number[]): Promise<void> {
  const { body } = await server.sql(
    `INSERT INTO app.jobs VALUES ${ids.map((id) => `(${id}, 0)`).join(", ")}`,
  );
  expect(body.status).toBe("success");
}

/** Returns the number of messages that the consumer group has not acknowledged. */
async function lag(server: ServerProcess): Promise<unknown> {
  const [row] = await server.rows("SELECT sum(lag_messages) FROM system.topic_consumers");
  return row?.[0];
}

test("consume handles each message once although the server is killed and stopped", async () => {
  const { db, server } = await withTopic();
  await using _ = server;
  const handled: number[] = [];
  let running = 0;
  let most = 0;
  const stop = new AbortController();
  const done = db
    .topic("app.work")
    .consume(
      { group: "g", from: "earliest", concurrency: 4, signal: stop.signal },
      async ({ payload }) => {
        running += 1;
        most = Math.max(most, running);
        await Bun.sleep(10);
        running -= 1;
        handled.push(Number(payload["id"]));
      },
    );
  let sent = 0;
  for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
    await insert(server, range(40, sent));
    sent += 40;
    await until(() => handled.length > sent - 30);
    await server.restart(signal);
  }
  await until(() => new Set(handled).size === sent);
  await until(async () => Number(await lag(server)) === 0);
  stop.abort();
  await done;
  expect(handled.toSorted((left, right) => left - right)).toEqual(range(sent));
  expect(most).toBe(4);
  db.close();
});

test("consume redelivers a message whose handler threw, and reports the error", async () => {
  const { db, server } = await withTopic();
  await using _ = server;
  const deliveries: number[] = [];
  const errors: string[] = [];
  const stop = new AbortController();
  const done = db.topic("app.work").consume(
    {
      group: "g",
      from: "earliest",
      signal: stop.signal,
      onError: (error, { offset }) => errors.push(`${offset}: ${(error as Error).message}`),
    },
    (message) => {
      deliveries.push(message.deliveries);
      if (message.deliveries === 1) throw new Error("not now");
    },
  );
  await insert(server, [1]);
  await until(() => deliveries.length === 2);
  await until(async () => Number(await lag(server)) === 0);
  stop.abort();
  await done;
  expect(deliveries).toEqual([1, 2]);
  expect(errors).toEqual(["0: not now"]);
  db.close();
});

test("consume stops in order: the running handler is acknowledged, and no other begins", async () => {
  const { db, server } = await withTopic();
  await using _ = server;
  await insert(server, range(10));
  const stop = new AbortController();
  const release = Promise.withResolvers<void>();
  let begun = 0;
  let hasSeenSignal = false;
  const done = db
    .topic("app.work")
    .consume({ group: "g", from: "earliest", signal: stop.signal }, async ({ signal }) => {
      begun += 1;
      await release.promise;
      hasSeenSignal = signal.aborted;
    });
  await until(() => begun === 1);
  stop.abort();
  release.resolve();
  await done;
  expect({ begun, hasSeenSignal }).toEqual({ begun: 1, hasSeenSignal: true });
  await until(async () => Number(await lag(server)) === 9);
  db.close();
});

test("consume rejects for an unknown topic, a missing right, KILL CONSUMER and wrong arguments", async () => {
  const { db, server } = await withTopic();
  await using _ = server;
  const none = db.topic("app.none").consume({ group: "g" }, () => undefined);
  expect(await none.catch(({ code }) => code)).toBe("NOT_FOUND");
  const killed = db
    .topic("app.work")
    .consume({ group: "g" }, () => undefined)
    .catch(({ code }) => code);
  const ids = "SELECT consumer_id FROM system.topic_consumers WHERE user_id = 'worker'";
  await until(async () => (await server.rows(ids)).length > 0);
  const [[id] = []] = await server.rows(ids);
  await server.sql(`KILL CONSUMER '${String(id)}'`);
  expect(await killed).toBe("KILLED");
  const token = await server.createUser("uma");
  const uma = createClient({ url: server.url, auth: { token } });
  const refused = uma.topic("app.work").consume({ group: "g" }, () => undefined);
  expect(await refused.catch(({ code }) => code)).toBe("FORBIDDEN");
  const topic = db.topic("app.work");
  expect(() => topic.consume({ group: "" }, () => undefined)).toThrow(TypeError);
  expect(() => topic.consume({ group: "g", consurrency: 1 } as never, () => undefined)).toThrow(
    "consurrency",
  );
  expect(() => topic.consume({ group: "g" }, "no" as never)).toThrow(TypeError);
  db.close();
});
