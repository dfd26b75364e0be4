/**
 * Verifies, by watching system calls, that the real process writes every commit to the log and
 * makes it durable before it sends the response. The test is skipped if strace is not installed or
 * not permitted.
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { straceMissing, testUnless } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";
import { orderFaults, parseTrace } from "../support/syscall_trace.ts";

const CALLS = "openat,write,writev,pwrite64,pwritev,sendto,sendmsg,fdatasync,fsync";

const ROUNDS = 8;
const CLIENTS = 8;

testUnless(straceMissing())("a commit is written, made durable, then answered", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-trace-"));
  const file = join(directory, "trace");
  // With -D, the traced process keeps its own process id.
  const wrapper = ["strace", "-D", "-f", "-y", "-s", "65536", "-e", `trace=${CALLS}`, "-o", file];
  const markers: string[] = [];
  {
    await using server = await startReadyServer({ wrapper });
    await server.rows("CREATE TABLE default.t (id BIGINT PRIMARY KEY, v TEXT)");
    for (let round = 0; round < ROUNDS; round += 1) {
      const batch = Array.from({ length: CLIENTS }, (_, client) => `marker-${round}-${client}-end`);
      markers.push(...batch);
      // Several commits run at once, so they share a sync.
      await Promise.all(
        batch.map((marker, client) =>
          server.rows("INSERT INTO default.t VALUES ($1, $2) RETURNING v", {
            params: [round * CLIENTS + client, marker],
          }),
        ),
      );
    }
    server.kill("SIGTERM");
    await server.exited();
  }
  const calls = parseTrace(await Bun.file(file).text());
  rmSync(directory, { recursive: true, force: true });
  expect(orderFaults(calls, markers, (path) => path.endsWith(".wal"))).toEqual([]);
});
