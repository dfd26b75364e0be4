/**
 * Tests advisory locks over HTTP: two transactions, competing migrations, and clients that
 * disconnect while they wait for a lock or hold one.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let db: Client;

beforeAll(async () => {
  server = await startReadyServer();
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
});
afterAll(async () => {
  db.close();
  await server.stop();
});

async function post(path: string, body: object, options: PostOptions = {}): Promise<Response> {
  const { id, signal, token = server.token } = options;
  return await fetch(`${server.url}/v1/api/${path}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      ...(id !== undefined && { "Tidemark-Transaction": id }),
    },
    body: JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
}

interface PostOptions {
  readonly id?: string;
  readonly token?: string;
  readonly signal?: AbortSignal;
}

async function opened(token: string = server.token): Promise<string> {
  const answer = (await (await post("transactions", {}, { token })).json()) as {
    transaction_id: string;
  };
  return answer.transaction_id;
}

/**
 * Returns the first cell of the last statement's result, or the error code if the request failed.
 */
async function cell(sql: string, options: PostOptions = {}): Promise<unknown> {
  const { error, results } = (await (await post("sql", { sql }, options)).json()) as {
    error?: { code: string };
    results: { rows?: unknown[][] }[];
  };
  return error?.code ?? results.at(-1)?.rows?.[0]?.[0];
}

const waitingCount = (): Promise<readonly (readonly unknown[])[]> =>
  server.rows("SELECT count(*) FROM system.advisory_locks WHERE NOT is_granted");

async function untilWaiting(count: number): Promise<void> {
  await until(async () => (await waitingCount())[0]?.[0] === count);
}

test("a transaction waits over HTTP for the lock of another, while other requests continue", async () => {
  const [one, two] = [await opened(), await opened()];
  expect(await cell("SELECT pg_advisory_lock(42)", { id: one })).toBe("");
  expect(await cell("SELECT pg_try_advisory_xact_lock(42)", { id: two })).toBe(false);
  const waiting = cell("SELECT pg_advisory_xact_lock(42)", { id: two });
  await untilWaiting(1);
  expect(await cell("SELECT pg_advisory_unlock(42)", { id: one })).toBe(true);
  expect(await waiting).toBe("");
  expect(await cell("SELECT pg_try_advisory_xact_lock(42)")).toBe(false);
  for (const id of [one, two]) await post(`transactions/${id}/commit`, {});
  expect(await cell("SELECT pg_try_advisory_xact_lock(42)")).toBe(true);
});

test("a client that leaves while it waits, or logs out, has no lock", async () => {
  const { access_token: token } = await server.login(ADMIN);
  const holder = await opened(token);
  await cell("SELECT pg_advisory_xact_lock(7)", { id: holder, token });
  const controller = new AbortController();
  const lost = cell("SELECT pg_advisory_xact_lock(7)", { signal: controller.signal }).catch(
    (error: unknown) => (error as Error).name,
  );
  await untilWaiting(1);
  controller.abort();
  expect(await lost).toBe("AbortError");
  await untilWaiting(0);
  await post("auth/logout", {}, { token });
  expect(await cell("SELECT pg_try_advisory_xact_lock(7)")).toBe(true);
  expect(await server.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
});

test("rival migrations with the statements of Kysely run once, one after another", async () => {
  await db.execute("CREATE NAMESPACE m");
  await db.execute(
    'create table "m"."kysely_migration" ("name" varchar(255) not null primary key, "timestamp" varchar(255) not null);' +
      'create table "m"."kysely_migration_lock" ("id" varchar(255) not null primary key, "is_locked" integer default 0 not null)',
  );
  const ran: string[] = [];
  let beginnings = 0;
  const migrate = (): Promise<void> =>
    db.transaction(
      async (tx) => {
        beginnings += 1;
        await tx.query("select pg_advisory_xact_lock(3853314791062309107)");
        const done = await tx.query<{ name: string }>(
          'select "name", "timestamp" from "kysely_migration" order by "timestamp", "name"',
        );
        for (const name of ["001", "002"]) {
          if (done.some((each) => each.name === name)) continue;
          ran.push(name);
          await tx.execute(
            `create table "step_${name}" ("id" serial primary key, "name" varchar not null unique)`,
          );
          await tx.execute(`insert into "step_${name}" ("name") values ('first')`);
          await tx.execute(
            `insert into "kysely_migration" ("name", "timestamp") values ('${name}', '2026-01-01T00:00:00.000Z')`,
          );
        }
      },
      { namespace: "m", maxRetries: 0 },
    );
  await Promise.all([migrate(), migrate(), migrate()]);
  expect([ran, beginnings]).toEqual([["001", "002"], 3]);
  expect(await db.query("SELECT name FROM m.step_002")).toEqual([{ name: "first" }]);
  expect(await db.query("SELECT count(*) AS n FROM system.transactions")).toEqual([{ n: 0 }]);
});

test("a live query and a view take no advisory lock", async () => {
  await db.execute("CREATE TABLE m.t (id INT PRIMARY KEY); INSERT INTO m.t VALUES (1)");
  const failure = new Promise<string>((resolve) => {
    db.live("SELECT id FROM m.t WHERE pg_try_advisory_xact_lock(id)", {
      onRows: (rows) => resolve(`rows: ${rows.length}`),
      onError: (error) => resolve(error.code),
    });
  });
  expect(await failure).toMatch(/^[A-Z_]+$/);
  await db.execute(
    "CREATE VIEW m.locking AS SELECT id, pg_try_advisory_xact_lock(id) AS ok FROM m.t",
  );
  const holder = await opened();
  await cell("SELECT pg_advisory_xact_lock(1)", { id: holder });
  expect(await cell("SELECT ok FROM m.locking")).toBe(false);
  await post(`transactions/${holder}/rollback`, {});
  expect(await server.rows("SELECT count(*) FROM system.advisory_locks")).toEqual([[0]]);
});
