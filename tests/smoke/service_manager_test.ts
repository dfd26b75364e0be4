/**
 * Verifies that the real process tells its service manager when it starts listening and when it
 * stops.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { linuxMissing, testUnless } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";
import { listenAsManager, managerMissing } from "../support/service_manager.ts";
import { until } from "../support/until.ts";

testUnless(managerMissing)("the server says when it is ready and when it stops", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-notify-"));
  try {
    const path = join(folder, "notify");
    await using manager = await listenAsManager(path);
    await using server = await startReadyServer({ env: { NOTIFY_SOCKET: path } });
    expect(await manager.next()).toBe(`READY=1\nSTATUS=listening on ${server.url}`);
    expect(await server.rows("SELECT 1")).toEqual([[1]]);
    server.kill("SIGTERM");
    expect(await manager.next()).toBe("STOPPING=1");
    expect(await server.exited()).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

testUnless(linuxMissing)("a service manager that does not listen is a warning", async () => {
  await using server = await startReadyServer({ env: { NOTIFY_SOCKET: "/nowhere/notify" } });
  await until(() => server.output.includes("cannot notify the service manager"));
  expect(server.output).toMatch(/WARN .*reason="the socket .*\/nowhere\/notify/);
  expect(await server.rows("SELECT 1")).toEqual([[1]]);
});

test("the server sends no notification without a service manager", async () => {
  await using server = await startReadyServer({ env: { NOTIFY_SOCKET: undefined } });
  expect(server.output).not.toContain("service manager");
});
