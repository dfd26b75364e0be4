/**
 * Verifies on the real process that no increment is lost when concurrent clients increment a
 * counter in transactions.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Client, createClient } from "../../src/client/mod.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";

let server: ServerProcess;
let db: Client;

beforeAll(async () => {
  server = await startReadyServer();
  db = createClient({ url: server.url, auth: { user: ADMIN, password: PASSWORD } });
  await db.execute("CREATE NAMESPACE c; CREATE TABLE c.n (id INT PRIMARY KEY, v INT)");
  await db.execute("INSERT INTO c.n VALUES (1, 0)");
});

afterAll(async () => {
  db.close();
  await server.stop();
});

test("transaction repeats its work until its step is counted", async () => {
  const RIVALS = 6;
  const STEPS = 4;
  let attempts = 0;
  const count = async (): Promise<void> => {
    for (let step = 0; step < STEPS; step += 1) {
      await db.transaction(
        async (tx) => {
          attempts += 1;
          const [row] = await tx.query<{ v: number }>("SELECT v FROM n WHERE id = 1");
          await tx.execute("UPDATE n SET v = $1 WHERE id = 1", { params: [(row?.v ?? 0) + 1] });
        },
        { namespace: "c", maxRetries: 100 },
      );
    }
  };
  await Promise.all(Array.from({ length: RIVALS }, count));
  expect(await db.query("SELECT v FROM c.n")).toEqual([{ v: RIVALS * STEPS }]);
  expect(attempts).toBeGreaterThanOrEqual(RIVALS * STEPS);
});

test("transaction leaves no changes if its work throws", async () => {
  const work = db.transaction(async (tx) => {
    await tx.execute("DELETE FROM c.n");
    throw new Error("no");
  });
  expect(work).rejects.toThrow("no");
  expect(await db.query("SELECT count(*) AS n FROM c.n")).toEqual([{ n: 1 }]);
  expect(await db.query("SELECT count(*) AS n FROM system.transactions")).toEqual([{ n: 0 }]);
});
