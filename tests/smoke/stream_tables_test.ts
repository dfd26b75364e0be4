/**
 * STREAM tables over the wire: a subscriber sees inserts and deletes, and nothing of expiry.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
});
afterAll(() => server.stop());
