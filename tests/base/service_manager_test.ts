/**
 * Tests the message that the server sends to a service manager. A Python program plays the
 * manager, because Python supports Unix datagram sockets.
 */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tellServiceManager } from "../../src/base/service_manager.ts";
import { testUnless } from "../support/requirements.ts";
import { listenAsManager, managerMissing } from "../support/service_manager.ts";

test("tellServiceManager does nothing without a socket", () => {
  expect(tellServiceManager(["READY=1"], undefined)).toBeUndefined();
  expect(tellServiceManager(["READY=1"], "")).toBeUndefined();
});

test("tellServiceManager explains why a message was not delivered", () => {
  expect(tellServiceManager(["READY=1"], "vsock:2:1234")).toContain("not a Unix socket");
  expect(tellServiceManager(["READY=1"], `/${"x".repeat(108)}`)).toContain("not a Unix socket");
  expect(tellServiceManager(["READY=1"], "/nowhere/notify")).toContain(
    "did not accept the message",
  );
});

testUnless(managerMissing)("tellServiceManager reaches a socket by its path or name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-notify-"));
  try {
    for (const name of [join(folder, "notify"), `@tidemark-notify-${process.pid}`]) {
      await using manager = await listenAsManager(name);
      expect(tellServiceManager(["READY=1", "STATUS=é"], name)).toBeUndefined();
      expect(await manager.next()).toBe("READY=1\nSTATUS=é");
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
