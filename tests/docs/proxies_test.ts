/**
 * Verifies that requests, WebSockets and server-sent events arrive complete and without delay
 * behind nginx and Caddy, configured as in docs/operations.md. The test runs the real programs
 * with the exact snippets. It replaces only the ports, and the host name if a snippet contains
 * one.
 */
import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../../src/client/mod.ts";
import { SocketClient } from "../support/client.ts";
import { programMissing, testUnless } from "../support/requirements.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { until } from "../support/until.ts";
import { blocksOf } from "./snippets.ts";

let server: ServerProcess;
/**
 * A server that is reached under a sub-path, configured as in operations.md, and that also trusts
 * the proxy's headers.
 */
let below: ServerProcess;
let folder: string;

beforeAll(async () => {
  [server, below] = await Promise.all([
    startReadyServer(),
    startReadyServer({
      config: {
        server: { ui_enabled: true },
        security: { trusted_proxies: ["127.0.0.1"] },
        auth: { setup_code: false },
      },
      env: { TIDEMARK_SERVER_BASE_PATH: "/db" },
    }),
  ]);
  folder = mkdtempSync(join(tmpdir(), "tidemark-proxy-"));
  for (const each of [server, below]) {
    await each.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY)");
  }
});

afterAll(async () => {
  await Promise.all([server.stop(), below.stop()]);
  rmSync(folder, { recursive: true });
});

/**
 * Returns the configuration snippet of operations.md that contains a given port, with its
 * addresses replaced by those of this test run.
 */
function snippet(
  language: string,
  { port, to, writtenPort }: { writtenPort: string; port: number; to: ServerProcess },
): string {
  const [block, ...more] = blocksOf("docs/operations.md").filter(
    (it) => it.language === language && it.text.includes(writtenPort),
  );
  expect([block?.language, more]).toEqual([language, []]);
  const address = to.url.replace(/^http:\/\//, "");
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

/** Checks that every feature that clients use works through a proxy. */
async function expectPasses(
  to: ServerProcess,
  url: string,
  command: readonly string[],
): Promise<void> {
  const proxy = Bun.spawn([...command], { stdout: "ignore", stderr: "pipe" });
  try {
    await until(async () => {
      const answer = await fetch(`${url}/health/live`).catch(() => undefined);
      return answer?.ok === true;
    });
    const headers = { Authorization: `Bearer ${to.token}` };
    await to.rows("DELETE FROM app.t");

    const client = await SocketClient.connect(url, { token: to.token });
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
    if (to === below) await expectBelow(url);
  } finally {
    proxy.kill();
    await proxy.exited;
  }
}

/**
 * Checks that every address in a response lies below the path of a URL, and can be reached there.
 */
async function expectBelow(url: string): Promise<void> {
  const { origin, pathname: path } = new URL(url);
  const root = await fetch(`${url}/`, { redirect: "manual" });
  expect([root.status, root.headers.get("location")]).toEqual([302, `${path}/ui`]);
  const page = await (await fetch(`${url}/ui`)).text();
  const parts = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, part]) => part ?? "");
  expect(parts.length).toBe(2);
  for (const part of parts) expect((await fetch(origin + part)).status).toBe(200);
  const login = await fetch(`${url}/v1/api/auth/login`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Origin: origin },
    body: JSON.stringify({ user: ADMIN, password: PASSWORD }),
  });
  const cookies = login.headers.getSetCookie().join("\n");
  expect(cookies).toContain(`Path=${path}/;`);
  expect(cookies).toContain(`Path=${path}/v1/api/auth;`);
  const db = createClient({ url, auth: { token: below.token } });
  expect(await (await fetch(await db.account.exportData())).bytes()).not.toHaveLength(0);
  const [row] = await db.query<{ ws_url: string }>("SUBSCRIBE TO app.t");
  expect(row?.ws_url).toBe(`${url.replace("http", "ws")}/v1/ws`);
  db.close();
}

/** Writes an nginx configuration around a snippet. Returns the command that runs nginx with it. */
function nginxWith(name: string, text: string): string[] {
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${join(folder, `${name}.${each}`)};`,
  );
  const file = join(folder, `${name}.conf`);
  writeFileSync(
    file,
    `daemon off; pid ${join(folder, `${name}.pid`)}; error_log stderr; events {}
http { access_log off; ${paths.join(" ")}
${text}}`,
  );
  return ["nginx", "-c", file, "-p", folder];
}

function caddyWith(name: string, text: string): string[] {
  const file = join(folder, name);
  writeFileSync(file, `{\n  admin off\n}\n${text}`);
  return ["caddy", "run", "--config", file, "--adapter", "caddyfile"];
}

testUnless(programMissing("nginx", "nginx"))(
  "nginx passes requests, sockets and events on",
  async () => {
    const port = await freePort();
    const text = snippet("nginx", { writtenPort: "8080", port, to: server });
    await expectPasses(server, `http://127.0.0.1:${port}`, nginxWith("root", text));
  },
);

testUnless(programMissing("nginx", "nginx"))(
  "nginx offers a server below a sub-path that the configuration names",
  async () => {
    const port = await freePort();
    const text = snippet("nginx", { writtenPort: "8082", port, to: below }).replace(
      "proxy_set_header Host $host;",
      "proxy_set_header Host $http_host;",
    );
    await expectPasses(below, `http://127.0.0.1:${port}/db`, nginxWith("below", text));
  },
);

testUnless(programMissing("caddy", "caddy"))(
  "Caddy passes requests, sockets and events on",
  async () => {
    const port = await freePort();
    const text = snippet("caddyfile", { writtenPort: "8081", port, to: server });
    await expectPasses(server, `http://127.0.0.1:${port}`, caddyWith("root.caddy", text));
  },
);

testUnless(programMissing("caddy", "caddy"))(
  "Caddy offers a server below a sub-path that it names",
  async () => {
    const port = await freePort();
    const text = snippet("caddyfile", { writtenPort: "8083", port, to: below });
    // The proxy's header takes precedence over the configured base path.
    const elsewhere = text.replaceAll("/db", "/other");
    await expectPasses(
      below,
      `http://127.0.0.1:${port}/other`,
      caddyWith("below.caddy", elsewhere),
    );
  },
);
