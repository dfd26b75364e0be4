/**
 * Verifies that the real process delivers signed topic messages to a receiver over HTTP. It
 * repeats each message until the receiver accepts it, despite failures, slow responses, restarts
 * and SIGKILL, and sends none to a host that the configuration does not list.
 */
import { afterEach, expect, test } from "bun:test";
import { createHmac, timingSafeEqual } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { certificateFor, hasOpenssl } from "../support/certificates.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

const SECRET = "a secret of the receiver";

interface Received {
  readonly id: number;
  readonly path: string;
  readonly headers: Headers;
  readonly text: string;
  readonly atMs: number;
}

/** A receiver that records all requests. */
class Receiver implements Disposable {
  readonly requests: Received[] = [];
  /** Returns the response to a request. */
  answer: (request: Received) => Response | Promise<Response> = () => new Response();
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const text = await request.text();
      const { payload } = JSON.parse(text) as { payload: { id: number } };
      const received = {
        id: payload.id,
        path: new URL(request.url).pathname,
        headers: request.headers,
        text,
        atMs: performance.now(),
      };
      this.requests.push(received);
      return this.answer(received);
    },
  });

  url(path = "/hook", host = "localhost"): string {
    return `http://${host}:${this.#server.port}${path}`;
  }

  get ids(): number[] {
    return this.requests.map(({ id }) => id);
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

async function start({
  hosts = ["localhost", "127.0.0.1"],
  env = {},
}: {
  hosts?: readonly string[];
  env?: Record<string, string>;
} = {}): Promise<{
  server: ServerProcess;
  receiver: Receiver;
}> {
  const receiver = stack.use(new Receiver());
  const config = { security: { webhook_hosts: hosts } };
  const server = stack.use(await startReadyServer({ config, env }));
  await run(
    server,
    `CREATE NAMESPACE app;
     CREATE TABLE app.orders (id INT PRIMARY KEY, note TEXT);
     CREATE TOPIC app.placed PARTITIONS 2;
     ALTER TOPIC app.placed ADD SOURCE app.orders ON INSERT`,
  );
  return { server, receiver };
}

async function run(server: ServerProcess, sql: string): Promise<void> {
  expect((await server.sql(sql)).body).toMatchObject({ status: "success" });
}

const insert = (server: ServerProcess, ...ids: number[]): Promise<void> =>
  run(server, `INSERT INTO app.orders VALUES ${ids.map((id) => `(${id}, 'n${id}')`).join(", ")}`);

async function stateOf(server: ServerProcess): Promise<Record<string, unknown>> {
  const columns = "status, delivered, failed, last_error, lag_messages";
  const [row = []] = await server.rows(`SELECT ${columns} FROM system.webhooks`);
  return Object.fromEntries(columns.split(", ").map((name, index) => [name, row[index]]));
}

const ascending = (ids: readonly number[]): number[] =>
  [...new Set(ids)].toSorted((left, right) => left - right);

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Verifies a signature as the documentation describes. */
function isSigned({ headers, text }: Received): boolean {
  const parts = (headers.get("tidemark-signature") ?? "").split(/[=,]/);
  const [, seconds = "", , given = ""] = parts;
  const expected = createHmac("sha256", SECRET).update(`${seconds}.${text}`).digest("hex");
  return (
    Math.abs(Date.now() / 1000 - Number(seconds)) < 300 &&
    given.length === expected.length &&
    timingSafeEqual(Buffer.from(given), Buffer.from(expected))
  );
}

test("CREATE WEBHOOK delivers each new row once, signed, and system.webhooks shows it without the secret", async () => {
  const { receiver, server } = await start();
  await insert(server, 100);
  await run(
    server,
    `CREATE WEBHOOK mailer FROM TOPIC app.placed URL '${receiver.url()}' SECRET '${SECRET}'`,
  );
  await insert(server, ...range(20));
  await until(() => receiver.requests.length >= 20);
  expect(ascending(receiver.ids)).toEqual(range(20));
  const [first] = receiver.requests;
  if (first === undefined) throw new Error("no request");
  expect(receiver.requests.every(isSigned)).toBe(true);
  expect(isSigned({ ...first, text: first.text.replace("orders", "border") })).toBe(false);
  expect(JSON.parse(first.text)).toMatchObject({
    topic_id: "app.placed",
    op: "Insert",
    key: String(first.id),
    deliveries: 1,
    payload: { id: first.id, note: `n${first.id}`, _table: "app.orders" },
  });
  const deliveries = receiver.requests.map(({ headers }) => headers.get("tidemark-delivery"));
  expect(new Set(deliveries).size).toBe(20);
  // A message counts as delivered once its acknowledgement has returned.
  await until(async () => (await stateOf(server))["delivered"] === 20);
  expect(await stateOf(server)).toMatchObject({
    status: "delivering",
    failed: 0,
    lag_messages: 0,
  });
  const everything = JSON.stringify([
    await server.rows("SELECT * FROM system.webhooks"),
    (await server.sql("SHOW WEBHOOKS")).body,
    await server.rows("SELECT * FROM system.topics"),
    await server.rows("SELECT * FROM system.query_stats"),
    await server.rows("SELECT * FROM system.audit_log"),
  ]);
  expect(everything).toContain("mailer");
  expect(everything).not.toContain(SECRET);
  expect(server.output).not.toContain(SECRET);
  await run(server, "DROP WEBHOOK mailer");
  await insert(server, 200);
  expect((await server.sql("SHOW WEBHOOKS")).body).toMatchObject({ results: [{ row_count: 0 }] });
  expect(receiver.ids).not.toContain(200);
});

test("ALTER WEBHOOK continues at the new URL from the same position, and /metrics counts its requests", async () => {
  const { receiver, server } = await start();
  await run(
    server,
    `CREATE WEBHOOK mailer FROM TOPIC app.placed URL '${receiver.url("/old")}' SECRET '${SECRET}'
       WITH (START = 'earliest')`,
  );
  await insert(server, ...range(10));
  await until(async () => (await stateOf(server))["lag_messages"] === 0);
  await run(server, `ALTER WEBHOOK mailer SET URL '${receiver.url("/new")}'`);
  await run(server, "ALTER WEBHOOK mailer DROP SECRET; ALTER WEBHOOK mailer SET (CONCURRENCY = 1)");
  await insert(server, 11, 12);
  await until(async () => (await stateOf(server))["delivered"] === 12);
  expect(receiver.ids.toSorted((left, right) => left - right)).toEqual(range(12));
  const later = receiver.requests.filter(({ id }) => id > 10);
  expect(later.map(({ path }) => path)).toEqual(["/new", "/new"]);
  expect(later.some(({ headers }) => headers.has("tidemark-signature"))).toBe(false);
  await run(server, "DROP WEBHOOK mailer");
  const headers = { Authorization: `Bearer ${server.token}` };
  const metricsNow = async (): Promise<string> => (await server.get("/metrics", headers)).text();
  await until(async () => {
    const metrics = await metricsNow();
    return metrics.includes('tidemark_webhooks{status="delivering"} 0\n');
  });
  const metrics = await metricsNow();
  expect(metrics).toContain('tidemark_webhook_requests_total{outcome="delivered"} 12\n');
  expect(metrics).toContain('tidemark_webhook_requests_total{outcome="failed"} 0\n');
});

/**
 * The maximum time to wait for the delivery of a message that has failed several times, in
 * milliseconds. Such a delivery takes longer than anything else in these tests.
 */
const RETRY_MS_MAX = 90_000;

test("a webhook redelivers a message after an error, a redirect or a slow response, and shows the reason", async () => {
  const { receiver, server } = await start();
  /**
   * For each row, the response that makes its delivery fail until the test has seen the failure.
   */
  const failures = new Map<number, () => Response | Promise<Response>>([
    [1, () => new Response("", { status: 500 })],
    [2, () => Response.redirect(receiver.url("/elsewhere"), 307)],
    [3, () => Bun.sleep(10_000).then(() => new Response())],
  ]);
  receiver.answer = ({ id }) => failures.get(id)?.() ?? new Response();
  await run(
    server,
    `CREATE WEBHOOK slow FROM TOPIC app.placed URL '${receiver.url()}' WITH (TIMEOUT_SECS = 1, CONCURRENCY = 8)`,
  );
  for (const [id, reason] of [
    [1, "the receiver responded with status 500"],
    [2, "the receiver responded with status 307, but redirects are not followed"],
    [3, "the receiver did not respond within 1 s"],
  ] as const) {
    await insert(server, id);
    await until(async () => (await stateOf(server))["last_error"] === reason);
    expect(await stateOf(server)).toMatchObject({ status: "retrying", lag_messages: 1 });
    failures.delete(id);
    // A message whose acknowledgement failed is delivered and counted again.
    await until(async () => Number((await stateOf(server))["delivered"]) >= id, RETRY_MS_MAX);
    const attempts = receiver.requests.filter((request) => request.id === id);
    const numbers = attempts.map(({ headers }) => Number(headers.get("tidemark-attempt")));
    expect(numbers).toEqual(range(attempts.length));
    expect(attempts.length).toBeGreaterThan(1);
    const [first, second] = attempts;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(700);
    const names = attempts.map(({ headers }) => headers.get("tidemark-delivery"));
    expect(new Set(names).size).toBe(1);
  }
  expect(receiver.requests.filter(({ path }) => path === "/elsewhere")).toEqual([]);
  expect(await stateOf(server)).toMatchObject({ status: "delivering", last_error: null });
}, 300_000);

testThoroughly(
  "an ordered webhook sends no change to a row before the earlier changes are accepted",
  async () => {
    const { receiver, server } = await start();
    await run(
      server,
      `ALTER TOPIC app.placed ADD SOURCE app.orders ON UPDATE;
     CREATE WEBHOOK orderly FROM TOPIC app.placed URL '${receiver.url()}' WITH (ORDERED = true)`,
    );
    let refusals = 2;
    receiver.answer = ({ id }) => {
      if (id !== 1 || refusals === 0) return new Response();
      refusals -= 1;
      return new Response("", { status: 503 });
    };
    await insert(server, 1);
    await run(server, "UPDATE app.orders SET note = 'second' WHERE id = 1");
    await insert(server, 2, 3, 4);
    await run(server, "UPDATE app.orders SET note = 'third' WHERE id = 1");
    await until(async () => (await stateOf(server))["delivered"] === 6);
    const notes = receiver.requests
      .filter(({ id }) => id === 1)
      .map(({ text }) => (JSON.parse(text) as { payload: { note: string } }).payload.note);
    expect(notes).toEqual(["n1", "n1", "n1", "second", "third"]);
  },
);

testThoroughly(
  "a webhook continues after SIGTERM and SIGKILL, loses nothing, and repeats only messages in flight",
  async () => {
    const { receiver, server } = await start();
    await run(
      server,
      `CREATE WEBHOOK steady FROM TOPIC app.placed URL '${receiver.url()}' WITH (CONCURRENCY = 4)`,
    );
    receiver.answer = () => Bun.sleep(20).then(() => new Response());
    let sent = 0;
    for (const signal of ["SIGKILL", "SIGTERM", "SIGKILL"] as const) {
      await insert(server, ...range(40).map((id) => sent + id));
      sent += 40;
      const before = receiver.requests.length;
      await until(() => receiver.requests.length >= before + 10);
      await server.restart(signal);
    }
    await until(() => ascending(receiver.ids).length === sent);
    await until(async () => (await stateOf(server))["lag_messages"] === 0);
    expect(ascending(receiver.ids)).toEqual(range(sent));
    // Each kill may cause requests to be repeated: those in flight, and those whose
    // acknowledgements were not durable yet.
    expect(receiver.requests.length - sent).toBeLessThanOrEqual(2 * 8);
  },
);

test.skipIf(!hasOpenssl)(
  "a webhook over https checks the certificate against the name in its URL",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-webhook-"));
    stack.defer(() => rmSync(directory, { recursive: true }));
    const certificates = ["localhost", "hooks.example.com"].map(certificateFor);
    const trusted = join(directory, "trusted");
    writeFileSync(trusted, certificates.map(({ cert }) => cert).join(""));
    const { server } = await start({ env: { NODE_EXTRA_CA_CERTS: trusted } });
    const paths: string[] = [];
    for (const [index, tls] of certificates.entries()) {
      const fetch = ({ url }: Request): Response => {
        paths.push(new URL(url).pathname);
        return new Response();
      };
      const secure = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch });
      stack.defer(() => secure.stop(true));
      const url = `https://localhost:${secure.port}/${index}`;
      await run(server, `CREATE WEBHOOK w${index} FROM TOPIC app.placed URL '${url}'`);
    }
    await insert(server, 1);
    const states = "SELECT name, delivered, last_error FROM system.webhooks ORDER BY name";
    await until(async () => {
      const [[, delivered] = [], [, , error] = []] = await server.rows(states);
      return delivered === 1 && error !== null;
    });
    expect(await server.rows(states)).toEqual([
      ["w0", 1, null],
      ["w1", 0, "the receiver cannot be reached: ERR_TLS_CERT_ALTNAME_INVALID"],
    ]);
    expect(paths).toEqual(["/0"]);
  },
);

test("CREATE WEBHOOK is refused for a host that is not listed, and for an invalid URL", async () => {
  const { server } = await start({ hosts: ["localhost", "hooks.example.com"] });
  const listed = "security.webhook_hosts";
  for (const [url, expected] of [
    ["https://hooks.example.org/", listed],
    ["http://127.0.0.1:1/", listed],
    ["http://0x7f000001:1/", '"127.0.0.1"'],
    ["http://[::ffff:127.0.0.1]/", listed],
    ["ftp://localhost/", "https://"],
    ["http://ada:pw@localhost/", "SECRET"],
    ["localhost/hook", "https://"],
  ] as const) {
    const { body } = await server.sql(`CREATE WEBHOOK w FROM TOPIC app.placed URL '${url}'`);
    expect(body.error?.message, url).toContain(expected);
  }
  expect(await server.rows("SELECT * FROM system.webhooks")).toEqual([]);
});

testThoroughly(
  "a webhook whose host is no longer listed delivers nothing and reports this until the host is listed again",
  async () => {
    const { receiver, server } = await start();
    await run(server, `CREATE WEBHOOK w FROM TOPIC app.placed URL '${receiver.url()}'`);
    await insert(server, 1);
    await until(async () => (await stateOf(server))["delivered"] === 1);
    const listed = readFileSync(server.configPath, "utf8");
    writeFileSync(server.configPath, listed.replace(/webhook_hosts = .*/, "webhook_hosts = []"));
    await server.restart();
    const created = await server.sql(
      `CREATE WEBHOOK v FROM TOPIC app.placed URL '${receiver.url()}'`,
    );
    expect(created.body.error?.message).toContain("security.webhook_hosts");
    await insert(server, 2);
    expect(await stateOf(server)).toMatchObject({
      status: "refused",
      last_error: expect.stringContaining("security.webhook_hosts"),
    });
    expect(receiver.ids).toEqual([1]);
    writeFileSync(server.configPath, listed);
    await server.restart();
    await until(() => receiver.ids.length === 2);
    expect(receiver.ids).toEqual([1, 2]);
  },
);
