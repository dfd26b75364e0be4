/**
 * Goal: behind nginx and Caddy as docs/operations.md configures them, requests, WebSockets and
 * server-sent events arrive whole and without delay. Method: the real programs, with the snippet
 * exactly as written there; only ports are replaced.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SocketClient } from "../support/client.ts";
import { programMissing, testUnless } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";
import { blocksOf } from "./snippets.ts";

let server: ServerProcess;
let folder: string;

beforeAll(async () => {
  server = await startReadyServer();
  folder = mkdtempSync(join(tmpdir(), "tidemark-proxy-"));
  await server.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Returns the only block of operations.md in a language, with the addresses of this run. */
function snippet(language: string, writtenPort: string, port: number): string {
  const [block, ...more] = blocksOf("docs/operations.md").filter((it) => it.language === language);
  expect(more).toEqual([]);
  const address = server.url.replace(/^http:\/\//, "");
  expect(block?.text).toContain(writtenPort);
  return (block?.text ?? "")
    .replaceAll("127.0.0.1:2900", address)
    .replace(writtenPort, String(port));
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("No port is free");
  return address.port;
}

/** Checks once that everything that clients use passes a proxy. */
async function expectPasses(url: string, command: readonly string[]): Promise<void> {
  const proxy = Bun.spawn([...command], { stdout: "ignore", stderr: "pipe" });
  try {
    await until(async () => {
      const answer = await fetch(`${url}/health/live`).catch(() => undefined);
      return answer?.ok === true;
    });
    const headers = { Authorization: `Bearer ${server.token}` };
    await server.rows("DELETE FROM app.t");

    const client = await SocketClient.connect(url, { token: server.token });
    await client.expect("auth_success");
    client.send({ type: "subscribe", subscription: { id: "a", sql: "SELECT id FROM app.t" } });
    await client.expect("subscription_ack");
    await client.expect("initial_data_batch");

    const query = new URLSearchParams({ sql: "SELECT id FROM app.t" });
    const stream = await fetch(`${url}/v1/api/live?${query.toString()}`, { headers });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let events = "";
    const hasCome = async (text: string): Promise<void> => {
      while (!events.includes(text)) events += (await reader?.read())?.value ?? "";
    };
    await hasCome("initial_data_batch");

    const answer = await fetch(`${url}/v1/api/sql`, {
      method: "POST",
      headers: { ...headers, "Content-Type": "application/json" },
      body: JSON.stringify({ sql: "INSERT INTO app.t VALUES (7)" }),
    });
    expect(await answer.json()).toMatchObject({ status: "success" });
    expect(await client.expect("change")).toMatchObject({ rows: [{ id: 7 }] });
    await hasCome("event: change");
    client.close();
    await reader?.cancel();
  } finally {
    proxy.kill();
    await proxy.exited;
  }
}

testUnless(programMissing("nginx", "nginx"))(
  "nginx passes requests, sockets and events on",
  async () => {
    const port = await freePort();
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    );
    const file = join(folder, "nginx.conf");
    writeFileSync(
      file,
      `daemon off; pid ${join(folder, "nginx.pid")}; error_log stderr; events {}
http { access_log off; ${paths.join(" ")}
${snippet("nginx", "8080", port)}}`,
    );
    await expectPasses(`http://127.0.0.1:${port}`, ["nginx", "-c", file, "-p", folder]);
  },
);

testUnless(programMissing("caddy", "caddy"))(
  "Caddy passes requests, sockets and events on",
  async () => {
    const port = await freePort();
    const file = join(folder, "Caddyfile");
    writeFileSync(file, `{\n  admin off\n}\n${snippet("caddyfile", "8081", port)}`);
    await expectPasses(`http://127.0.0.1:${port}`, [
      "caddy",
      "run",
      "--config",
      file,
      "--adapter",
      "caddyfile",
    ]);
  },
);
