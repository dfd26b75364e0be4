/**
 * Tests the limit `limits.storage_bytes_per_user` on a real server, as its users and
 * administrators see it.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { startReadyServer } from "../support/server_process.ts";

test("a refusal is reported on the wire, and rows can still be deleted after the limit was lowered", async () => {
  const limits = { storage_bytes_per_user: 10_000 };
  await using server = await startReadyServer({ config: { limits } });
  const token = await server.createUser("ann");
  await server.rows("CREATE USER TABLE t (id INT PRIMARY KEY, v TEXT)");
  await server.rows("INSERT INTO t VALUES (1, repeat('x', 6000))", { token });
  const { body, status } = await server.sql("INSERT INTO t VALUES (2, repeat('x', 6000))", {
    token,
  });
  expect(status).toBe(400);
  expect(body.error).toMatchObject({
    code: "SQL_EXECUTION_ERROR",
    message:
      "Statement 1: Cannot write: the user's rows and files take 6026 bytes, the statement would add 6026 bytes, and the limit is 10000 bytes",
    hint: expect.stringContaining("raise limits.storage_bytes_per_user"),
  });
  const seen = "SELECT storage_bytes, storage_bytes_max FROM system.users WHERE user_id = 'ann'";
  expect(await server.rows(seen)).toEqual([[6026, 10_000]]);
  const config = readFileSync(server.configPath, "utf8");
  writeFileSync(server.configPath, config.replace("10000", "1000"));
  await server.restart("SIGKILL");
  expect(await server.rows(seen)).toEqual([[6026, 1000]]);
  const refused = await server.sql("INSERT INTO t VALUES (2, '')", { token });
  expect(refused.body.error?.hint).toContain("limits.storage_bytes_per_user");
  expect(await server.rows("SELECT id FROM t", { token })).toEqual([[1]]);
  await server.rows("UPDATE t SET v = 'x' WHERE id = 1", { token });
  await server.rows("INSERT INTO t VALUES (2, '')", { token });
  await server.rows("DELETE FROM t", { token });
  expect(await server.rows(seen)).toEqual([[0, 1000]]);
});
