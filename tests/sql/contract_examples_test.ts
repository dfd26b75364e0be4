/**
 * Runs the SQL acceptance examples, `contract/examples.slt`, on the real process.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { startServer } from "../support/server_process.ts";
import { runSlt } from "../support/slt.ts";
import { senderTo } from "../support/slt_server.ts";

test("every acceptance example returns its result", async () => {
  await using server = await startServer();
  await server.setup();
  const text = await Bun.file(join(import.meta.dir, "contract/examples.slt")).text();
  const options = { execute: senderTo(server), engine: "tidemark", hasKeys: true };
  const { failures, passedCount, waiting } = await runSlt(text, options);
  expect(failures.slice(0, 10)).toEqual([]);
  expect(waiting).toEqual([]);
  expect(passedCount).toBe(272);
});
