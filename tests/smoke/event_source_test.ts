/**
 * Verifies that `GET /v1/api/live` always responds to a browser's EventSource with a stream, even
 * when it refuses the request or the server is stopping. Also verifies that nginx forwards the
 * stream without delay if it has its default settings.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EventClient } from "../support/event_client.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const NGINX = "/usr/sbin/nginx";

/** The Accept header that an EventSource sends. */
const ACCEPT = { Accept: "text/event-stream" };

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({
    config: {
      limits: { subscriptions_per_user: 1 },
      server: { shutdown_timeout_secs: 2 },
    },
  });
  await server.rows("CREATE NAMESPACE app");
  await server.rows("CREATE SHARED TABLE app.t (id BIGINT PRIMARY KEY, text TEXT)");
});

afterAll(async () => {
  await server.stop();
});

function open(
  query: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
  url: string = server.url,
): Promise<EventClient> {
  const all = {
    ...ACCEPT,
    Authorization: `Bearer ${server.token}`,
    ...headers,
  };
  return EventClient.open(url, query, all);
}

describe("a refusal is the only event of a stream", () => {
  test.each<[Record<string, string>, Record<string, string>, number, string]>([
    [{}, {}, 400, "INVALID_SQL"],
    [{ sql: "SELEC" }, {}, 400, "INVALID_SQL"],
    [{ sql: "SELECT * FROM app.nope" }, {}, 404, "NOT_FOUND"],
    [{ sql: "SELECT * FROM app.t", batch_size: "0" }, {}, 400, "INVALID_OPTIONS"],
    [
      { sql: "SELECT * FROM app.t" },
      { Authorization: "Bearer nonsense" },
      401,
      "INVALID_CREDENTIALS",
    ],
    [{ sql: "SELECT * FROM app.t" }, { Authorization: "" }, 401, "MISSING_AUTHORIZATION"],
    [{ sql: "SELECT * FROM app.t" }, { Host: "a b" }, 400, "INVALID_REQUEST"],
    [
      { sql: "SELECT * FROM app.t" },
      { "Last-Event-ID": "9007199254740991" },
      400,
      "INVALID_RESUME",
    ],
  ])("%j %j would be %d %s", async (query, headers, status, code) => {
    const client = await open(query, headers);
    expect(client.response.status).toBe(200);
    expect(client.response.headers.get("content-type")).toBe("text/event-stream");
    expect(client.response.headers.get("x-accel-buffering")).toBe("no");
    client.lastId = "7";
    const message = await client.expect("subscription_error");
    expect(message).toMatchObject({
      type: "error",
      subscription_id: "sse",
      code,
      ended: true,
      status,
      message: expect.stringMatching(/./),
    });
    // The client must forget the refused position. Otherwise, it would send the position again
    // with every later attempt.
    const isPosition = code === "INVALID_RESUME";
    expect(client.lastId).toBe(isPosition ? "" : "7");
    expect(client.others).toEqual([`retry: ${isPosition ? 2000 : 30_000}`]);
    expect(await client.next()).toBeUndefined();
  });

  test("an EventSource over a limit reconnects after the delay that the server requests", async () => {
    const first = await open({ sql: "SELECT * FROM app.t" });
    await first.expect("subscription_ack");
    const second = await open({ sql: "SELECT * FROM app.t" });
    expect(second.response.status).toBe(200);
    expect(await second.expect("subscription_error")).toMatchObject({
      code: "SUBSCRIPTION_LIMIT_EXCEEDED",
      status: 429,
      retry_after_seconds: 5,
    });
    expect(second.others).toEqual(["retry: 5000"]);
    first.close();
    await until(async () => (await server.rows("SELECT 1 FROM system.live")).length === 0);
  });

  test.each(["*/*", "application/json", "text/event-stream-ish"])(
    "a client that accepts %s gets an error status instead",
    async (accept) => {
      const { response } = await open({ sql: "SELEC" }, { Accept: accept });
      expect(response.status).toBe(400);
    },
  );
});

test("a stream that is left open does not continue from the position of another user", async () => {
  const other = await server.createUser("other", "dba");
  const asBrowser = async (token: string, lastId = ""): Promise<EventClient> =>
    await EventClient.open(
      server.url,
      { sql: "SELECT * FROM app.t" },
      {
        ...ACCEPT,
        Cookie: `tidemark_auth=${token}`,
        ...(lastId !== "" && { "Last-Event-ID": lastId }),
      },
    );
  const first = await asBrowser(server.token);
  await first.expect("subscription_ack");
  await first.expect("initial_data_batch");
  first.close();
  await until(async () => (await server.rows("SELECT 1 FROM system.live")).length === 0);
  const second = await asBrowser(other, first.lastId);
  second.lastId = first.lastId;
  expect(await second.expect("subscription_error")).toMatchObject({ code: "RESUME_EXPIRED" });
  // The EventSource starts again, without a position.
  expect(second.lastId).toBe("");
  const again = await asBrowser(server.token, first.lastId);
  expect(await again.expect("subscription_ack")).toMatchObject({ total_rows: 0 });
  again.close();
});

testThoroughly("streams end last while the server stops, and none gets status 503", async () => {
  const client = await open({ sql: "SELECT * FROM app.t" });
  await client.expect("subscription_ack");
  await client.expect("initial_data_batch");
  const slow = server.sql("SELECT count(*) FROM generate_series(1, 600000000) g WHERE g % 7 = 3", {
    fields: { timeout_ms: 20_000 },
  });
  await until(async () => {
    const all = await server.rows("SELECT * FROM system.queries");
    return all.length > 0 && JSON.stringify(all).includes("generate_series");
  });
  server.kill("SIGTERM");
  await server.outputHas(/stopping/);
  const late = await open({ sql: "SELECT * FROM app.t" });
  expect(late.response.status).toBe(200);
  expect(await late.expect("subscription_error")).toMatchObject({
    code: "SHUTTING_DOWN",
    status: 503,
  });
  const plain = await open({ sql: "SELECT * FROM app.t" }, { Accept: "*/*" });
  expect(plain.response.status).toBe(503);
  expect(await client.expect("subscription_error")).toMatchObject({ code: "SHUTTING_DOWN" });
  // The response was sent before the stream ended, so it arrives even if the server is paused. It
  // may reach this process later, because the two connections are read independently.
  server.kill("SIGSTOP");
  expect(await slow).toHaveProperty("body.error.code", "SHUTTING_DOWN");
  server.kill("SIGCONT");
  expect(await client.next()).toBeUndefined();
  expect(await server.exited()).toBe(0);
  await server.start();
  server.token = (await server.login("ada")).access_token;
});

describe.skipIf(!existsSync(NGINX))("behind nginx with nothing but proxy_pass", () => {
  let directory: string;
  let nginx: Bun.Subprocess;
  let url: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "tidemark-nginx-"));
    const port = freePort();
    url = `http://127.0.0.1:${port}`;
    mkdirSync(join(directory, "temp"));
    const temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${join(directory, "temp", name)};`)
      .join("\n");
    const user = process.getuid?.() === 0 ? "user root;" : "";
    writeFileSync(
      join(directory, "nginx.conf"),
      `${user} daemon off; pid ${join(directory, "pid")}; error_log ${join(directory, "error.log")};
events {}
http { access_log off; ${temp}
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${server.url}; } }
}`,
    );
    nginx = Bun.spawn([NGINX, "-p", directory, "-c", join(directory, "nginx.conf")], {
      stdout: "ignore",
      stderr: "ignore",
    });
    await until(() => canConnect(port));
  });

  afterAll(async () => {
    nginx.kill("SIGTERM");
    await nginx.exited;
    rmSync(directory, { recursive: true, force: true });
  });

  test("a stream through a proxy begins at once, and a change arrives without delay", async () => {
    const client = await open({ sql: "SELECT id FROM app.t" }, {}, url);
    expect(client.response.status).toBe(200);
    await client.expect("subscription_ack");
    await client.expect("initial_data_batch");
    await server.rows("INSERT INTO app.t VALUES (1, 'a')");
    expect(await client.expect("change")).toMatchObject({
      rows: [{ id: 1 }],
    });
    client.close();
  });

  test("a refusal through a proxy arrives as an event", async () => {
    const client = await open({ sql: "SELEC" }, {}, url);
    expect(client.response.status).toBe(200);
    expect(await client.expect("subscription_error")).toMatchObject({
      code: "INVALID_SQL",
    });
  });

  test("a refused WebSocket names the headers that the proxy must pass on", async () => {
    const answer = await fetch(`${url}/v1/ws`, {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
      },
    });
    expect(answer.status).toBe(426);
    const body = (await answer.json()) as { error: string; message: string };
    expect(body.error).toBe("upgrade_required");
    expect(body.message).toContain("lacks the headers Upgrade: websocket");
    expect(body.message).toContain("proxy_set_header Upgrade $http_upgrade");
  });
});

/** Returns a port that was free a moment ago. */
function freePort(): number {
  const taken = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data() {} },
  });
  const { port } = taken;
  taken.stop(true);
  return port;
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
