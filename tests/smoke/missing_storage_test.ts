/**
 * Tests a missing storage directory as clients see it: statements on its tables fail with an error
 * code, and only administrators learn where the directory should be.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SocketClient } from "../support/client.ts";
import { PASSWORD, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const root = mkdtempSync(join(tmpdir(), "tidemark-storages-"));
let server: ServerProcess;
let token: string;

beforeAll(async () => {
  server = await startReadyServer({ config: { storage: { allowed_roots: [root] } } });
  await server.rows(`CREATE STORAGE away TYPE filesystem PATH '${root}/away'`);
  const options = "WITH (STORAGE_ID = 'away', ACCESS_LEVEL = 'public')";
  await server.rows(`CREATE TABLE t (id BIGINT PRIMARY KEY) ${options}`);
  await server.rows("INSERT INTO t VALUES (1)");
  await server.rows("STORAGE FLUSH TABLE t");
  await server.rows(`CREATE USER bob WITH PASSWORD '${PASSWORD}'`);
  server.kill("SIGTERM");
  await server.exited();
  renameSync(`${root}/away`, `${root}/elsewhere`);
  await server.start();
  token = (await server.login("bob")).access_token;
});

afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true });
});

test("a table of a missing storage tells only administrators where it should be", async () => {
  for (const statement of ["SELECT * FROM t", "SELECT 1; SELECT COUNT(*) FROM t WHERE id > 0"]) {
    const own = await server.sql(statement, { token });
    expect(own.body.error, statement).toMatchObject({
      code: "SQL_EXECUTION_ERROR",
      reason: "other",
    });
    expect(own.body.error?.message, statement).toContain("storage away");
    expect(JSON.stringify(own.body), statement).not.toContain(root);
    const known = await server.sql(statement);
    expect(JSON.stringify(known.body), statement).toContain(`${root}/away`);
  }
});

test("a live query of such a table ends without revealing where its files are", async () => {
  const socket = await SocketClient.connect(server.url, { token });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription: { id: "m1", sql: "SELECT * FROM default.t" } });
  let message = await socket.next();
  while (message.type !== "error") message = await socket.next();
  expect(message).toMatchObject({ code: "SUBSCRIPTION_FAILED", ended: true });
  expect(JSON.stringify(message)).not.toContain(root);
  socket.close();
});
