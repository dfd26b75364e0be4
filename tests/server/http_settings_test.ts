/**
 * Tests the effects of configuration on HTTP (CORS, sizes, rates, probes and the UI), and how a
 * server behaves when it fails or stops.
 */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { CorruptionError, DatabaseError, DiskError } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import type { MemoryGivenBack, ServerOptions } from "../../src/server/mod.ts";
import { type SqlScript, startTestServer, withServer } from "../support/http.ts";

test("a bug returns 500, reveals nothing, and is reported", async () => {
  const server = await startTestServer({
    script: () => {
      throw new TypeError("secret detail");
    },
  });
  const response = await server.sql({ sql: "x" });
  expect(response.status).toBe(500);
  const text = await response.text();
  expect(JSON.parse(text)).toMatchObject({ status: "error", error: { code: "INTERNAL_ERROR" } });
  expect(text).not.toContain("secret");
  expect(server.bugs).toMatchObject([{ message: "secret detail" }]);
  await server.close();
});

test("the cluster state shows cluster.node_id as the name of this node", async () => {
  await withServer({ config: { cluster: { node_id: 3 } } }, async (server) => {
    const answer = await server.fetch("/v1/api/cluster/health");
    expect(await answer.json()).toMatchObject({ node_id: 3, nodes: [{ node_id: 3 }] });
  });
});

test("CORS: an origin may be listed with any spelling of its host and port", async () => {
  const allowed_origins = ["https://App.Example:443", "HTTP://127.0.0.1:80"];
  const cors = { allowed_origins, allow_credentials: false, max_age: 0 };
  const server = { public_origin: "https://Db.Example:443" };
  await withServer({ config: { security: { cors }, server } }, async (running) => {
    for (const origin of ["https://app.example", "http://127.0.0.1"]) {
      const { headers } = await running.fetch("/health/live", { headers: { Origin: origin } });
      expect(headers.get("access-control-allow-origin")).toBe(origin);
    }
    const opened = await openSocket(running.url, "https://db.example");
    expect(opened).toBe(true);
  });
});

/** Returns a script with a statement that runs until the test releases it. */
function heldScript(): { script: SqlScript; started: Promise<void>; release: () => void } {
  const started = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  return {
    script: async () => {
      started.resolve();
      await released.promise;
      return { results: [] };
    },
    started: started.promise,
    release: () => released.resolve(),
  };
}

/** Returns whether a web page from the given origin can open a WebSocket. */
async function openSocket(url: string, origin: string): Promise<boolean> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/ws`, {
    headers: { Origin: origin },
  });
  return await new Promise((resolve) => {
    socket.addEventListener("open", () => {
      socket.close();
      resolve(true);
    });
    socket.addEventListener("error", () => resolve(false));
  });
}

test("CORS: a listed origin is echoed, another gets no header, and preflight returns 204", async () => {
  const origin = "https://app.example";
  const cors = { allowed_origins: [origin], allow_credentials: true, max_age: 77 };
  await withServer({ config: { security: { cors } } }, async (server) => {
    const listed = await server.fetch("/v1/api/auth/status", { headers: { Origin: origin } });
    expect(listed.headers.get("access-control-allow-origin")).toBe(origin);
    expect(listed.headers.get("access-control-allow-credentials")).toBe("true");
    expect(listed.headers.get("access-control-expose-headers")).toContain("X-Request-ID");
    expect(listed.headers.get("vary")).toContain("Origin");
    for (const other of ["https://app.example.evil", "null", "http://app.example"]) {
      const response = await server.fetch("/v1/api/auth/status", { headers: { Origin: other } });
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
      expect(response.headers.get("vary")).toContain("Origin");
    }
    const preflight = await server.fetch("/v1/api/sql", {
      method: "OPTIONS",
      headers: { Origin: origin, "Access-Control-Request-Method": "POST" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-methods")).toBe("GET, HEAD, POST, OPTIONS");
    expect(preflight.headers.get("access-control-allow-headers")).toBe(
      "Authorization, Content-Type, Accept, Range, X-Request-ID, Last-Event-ID, Tidemark-Transaction",
    );
    expect(preflight.headers.get("access-control-max-age")).toBe("77");
    const failed = await server.fetch("/nope", { headers: { Origin: origin } });
    expect(failed.headers.get("access-control-allow-origin")).toBe(origin);
  });
});

test("CORS: the wildcard admits any origin, without credentials", async () => {
  const cors = { allowed_origins: ["*"], allow_credentials: true, max_age: 1 };
  await withServer({ config: { security: { cors } } }, async (server) => {
    const { headers } = await server.fetch("/nope", { headers: { Origin: "http://any.example" } });
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  });
});

test("a body above limits.max_body_bytes gets 413, declared or counted, in the format of its path", async () => {
  await withServer({ config: { limits: { max_body_bytes: 2000 } } }, async (server) => {
    const atLimit = JSON.stringify({ sql: "x".repeat(2000 - 10) });
    expect(atLimit.length).toBe(2000);
    expect((await server.sql(atLimit)).status).toBe(200);
    const declared = await server.sql(`${atLimit} `);
    expect([declared.status, await declared.json()]).toMatchObject([
      413,
      { status: "error", error: { code: "BODY_TOO_LARGE", max_bytes: 2000, size_bytes: 2001 } },
    ]);
    const chunks = (async function* () {
      for (let count = 0; count < 30; count += 1) yield new Uint8Array(100).fill(32);
    })();
    const headers = { Authorization: `Bearer ${await server.token()}` };
    const counted = await server.fetch("/v1/api/sql", { method: "POST", headers, body: chunks });
    const body = (await counted.json()) as { error: Record<string, unknown> };
    expect([counted.status, body.error["code"]]).toEqual([413, "BODY_TOO_LARGE"]);
    expect(body.error["size_bytes"]).toBeUndefined();
    const login = await server.fetch("/v1/api/auth/login", {
      method: "POST",
      body: " ".repeat(2001),
      headers: { "Content-Type": "application/json" },
    });
    expect([login.status, await login.json()]).toMatchObject([
      413,
      { error: "BODY_TOO_LARGE", max_bytes: 2000, size_bytes: 2001 },
    ]);
  });
});

test("a chunked body within the limit is read", async () => {
  await withServer({}, async (server) => {
    const chunks = (async function* () {
      yield new TextEncoder().encode('{"sql":"SEL');
      yield new TextEncoder().encode('ECT 1"}');
    })();
    const headers = { Authorization: `Bearer ${await server.token()}` };
    const init = { method: "POST", headers, body: chunks };
    expect((await server.fetch("/v1/api/sql", init)).status).toBe(200);
    expect(server.requests.at(-1)?.sql).toBe("SELECT 1");
  });
});

test("limits.requests_per_sec_per_ip counts only remote callers", async () => {
  const config = {
    limits: { requests_per_sec_per_ip: 2 },
    security: {
      trusted_proxies: ["127.0.0.1"],
      allowed_hosts: [],
      metrics_allow: ["192.0.2.0/24"],
      cors: { allowed_origins: [], allow_credentials: false, max_age: 0 },
    },
  };
  await withServer({ config }, async (server) => {
    const from = async (address: string): Promise<Response> =>
      await server.fetch("/v1/api/auth/status", { headers: { "X-Forwarded-For": address } });
    for (let count = 0; count < 5; count += 1) {
      expect((await server.fetch("/v1/api/auth/status")).status).toBe(200);
    }
    expect((await from("192.0.2.1")).status).toBe(200);
    expect((await from("192.0.2.1")).status).toBe(200);
    const third = await from("192.0.2.1");
    expect([third.status, await third.json()]).toMatchObject([
      429,
      {
        error: "RATE_LIMIT_EXCEEDED",
        message: "Too many requests from this address: it may send at most 2 per second",
        retry_after_seconds: 1,
      },
    ]);
    expect(third.headers.get("retry-after")).toBe("1");
    expect((await from("192.0.2.2")).status).toBe(200);
    const metrics = await server.fetch("/metrics", { headers: { "X-Forwarded-For": "192.0.2.3" } });
    expect(metrics.status).toBe(200);
    expect((await server.fetch("/metrics")).status).toBe(401);
  });
});

test("limits.queries_per_sec_per_user applies to each user, with 429 in shape B", async () => {
  await withServer({ config: { limits: { queries_per_sec_per_user: 1 } } }, async (server) => {
    expect((await server.sql({ sql: "x" })).status).toBe(200);
    const second = await server.sql({ sql: "x" });
    expect([second.status, await second.json()]).toMatchObject([
      429,
      {
        error: {
          code: "RATE_LIMIT_EXCEEDED",
          message: "Too many requests: a user may send at most 1 per second",
          retry_after_seconds: 1,
        },
      },
    ]);
    const bob = { Authorization: `Bearer ${await server.token("bob")}` };
    expect((await server.sql({ sql: "x" }, bob)).status).toBe(200);
  });
});

test("a stopping server waits for running requests, responds to probes and refuses other requests", async () => {
  const { script, started, release } = heldScript();
  await withServer({ script }, async (server) => {
    const running = server.sql({ sql: "slow" });
    await started;
    const stopped = server.server.stop();
    const probe = await server.fetch("/health/ready");
    expect([probe.status, await probe.json()]).toEqual([503, { status: "draining" }]);
    expect((await server.fetch("/health/live")).status).toBe(200);
    const status = await server.fetch("/v1/api/auth/status");
    expect([status.status, await status.json()]).toMatchObject([503, { error: "SHUTTING_DOWN" }]);
    expect(status.headers.get("retry-after")).toBe("5");
    const upgrade = await server.fetch("/v1/ws");
    expect([upgrade.status, await upgrade.json()]).toMatchObject([503, { error: "SHUTTING_DOWN" }]);
    const sql = await server.fetch("/v1/api/sql", { method: "POST" });
    expect([sql.status, await sql.json()]).toMatchObject([
      503,
      { status: "error", error: { code: "SHUTTING_DOWN", retry_after_seconds: 5 } },
    ]);
    release();
    expect((await running).status).toBe(200);
    await stopped;
  });
});

test("a server without disk space is ready, and reports the lack of space", async () => {
  let isReadOnly = false;
  const failedJobs = new Map([
    ["backup", 2],
    ["purge", 0],
  ]);
  const storageState = (): ReturnType<ServerOptions["storageState"]> => ({
    freeBytes: 4096,
    isReadOnly,
    logBytes: 123,
    quarantinedSegments: 1,
    failedJobs,
  });
  const memoryGivenBack = (): MemoryGivenBack => ({ collections: 7, caches: 5, flushes: 3 });
  const parts = { isReadOnly: () => isReadOnly, memoryGivenBack, storageState };
  await withServer({ parts }, async (server) => {
    const ready = async (): Promise<unknown> => (await server.fetch("/health/ready")).json();
    expect(await ready()).toEqual({ status: "ready" });
    isReadOnly = true;
    expect(await ready()).toEqual({ status: "ready", read_only: true });
    const admin = { Authorization: `Bearer ${await server.token("ada")}` };
    const text = await (await server.fetch("/metrics", { headers: admin })).text();
    const values = text.split("\n").filter((line) => !line.startsWith("#"));
    expect(values).toEqual(
      expect.arrayContaining([
        "tidemark_disk_free_bytes 4096",
        'tidemark_memory_given_back_total{means="collection"} 7',
        'tidemark_memory_given_back_total{means="cache"} 5',
        'tidemark_memory_given_back_total{means="early_flush"} 3',
        "tidemark_read_only 1",
        "tidemark_log_bytes 123",
        "tidemark_quarantined_segments 1",
        'tidemark_jobs_failed_total{job_type="backup"} 2',
        'tidemark_jobs_failed_total{job_type="purge"} 0',
      ]),
    );
  });
});

test("the log reports failures, but not refusals or failures that were logged where they occurred", async () => {
  const log = new RecentLog(silentLog, systemClock);
  const known = new CorruptionError("segments/1/1.seg", 8, "known");
  known.isLogged = true;
  const failures: readonly Error[] = [
    new CorruptionError("segments/1/2.seg", 8, "new"),
    known,
    new DatabaseError("DISK_FULL", "Cannot write: the disk is full"),
    new DatabaseError("DATA_DAMAGED", "Cannot read file 7"),
    new DiskError("EIO", "tmp/x", "write"),
  ];
  const left = [...failures];
  const held = heldScript();
  const script: SqlScript = (...request) => {
    const failure = left.shift();
    if (failure !== undefined) throw failure;
    return held.script(...request);
  };
  await withServer({ script, parts: { log } }, async (server) => {
    for (const { message } of failures) {
      expect((await server.sql({ sql: "x" })).status, message).toBeGreaterThanOrEqual(500);
    }
    const running = server.sql({ sql: "slow" });
    await held.started;
    const stopped = server.server.stop();
    expect((await server.sql({ sql: "x" })).status).toBe(503);
    held.release();
    await Promise.all([running, stopped]);
  });
  const told = log.lines.filter(({ message }) => message === "request failed");
  expect(told.map(({ fields, level }) => [level, fields["error"]])).toEqual([
    ["error", String(failures[0])],
    ["error", String(failures[3])],
    ["error", String(failures[4])],
  ]);
});

test("the log reports only occasionally that no more files can be opened, not for each request", async () => {
  const log = new RecentLog(silentLog, systemClock);
  const script: SqlScript = () => {
    throw new DiskError("EMFILE", "tmp/x", "open");
  };
  await withServer({ script, parts: { log } }, async (server) => {
    for (let count = 0; count < 5; count += 1) {
      expect((await server.sql({ sql: "x" })).status).toBe(500);
    }
  });
  expect(log.lines.filter(({ message }) => message === "request failed").length).toBe(1);
});

test("UI assets: type, caching, and the nonce in the page", async () => {
  const uiAssets = {
    get: (path: string) =>
      path === "assets/app-1a2b.js"
        ? { bytes: new TextEncoder().encode("let x;"), type: "text/javascript", immutable: true }
        : undefined,
    page: (nonce: string) => `<html><style nonce="${nonce}"></style></html>`,
  };
  await withServer({ parts: { uiAssets } }, async (server) => {
    const asset = await server.fetch("/ui/assets/app-1a2b.js");
    expect(await asset.text()).toBe("let x;");
    expect(asset.headers.get("content-type")).toBe("text/javascript");
    expect(asset.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    const page = await server.fetch("/ui");
    const nonce = /nonce="([^"]+)"/.exec(await page.text())?.[1] ?? "none";
    expect(page.headers.get("content-security-policy")).toContain(`'nonce-${nonce}'`);
  });
});

test("performance.http_compression applies to /metrics as to every other response", async () => {
  const encodingOf = async (isOn: boolean): Promise<string | null> => {
    let encoding: string | null = null;
    await withServer({ config: { performance: { http_compression: isOn } } }, async (server) => {
      const Authorization = `Bearer ${await server.token("ada")}`;
      const headers = { Authorization, "Accept-Encoding": "gzip" };
      const answer = await server.fetch("/metrics", { headers });
      expect(await answer.text()).toContain("tidemark_uptime_seconds");
      encoding = answer.headers.get("content-encoding");
    });
    return encoding;
  };
  expect(await encodingOf(true)).toBe("gzip");
  expect(await encodingOf(false)).toBeNull();
});

test("/ui returns 404 on every path when it is off, and / does not redirect", async () => {
  await withServer({ config: { server: { ui_enabled: false } } }, async (server) => {
    expect((await server.fetch("/")).status).toBe(404);
    expect((await server.fetch("/ui")).status).toBe(404);
    expect((await server.fetch("/ui/a")).status).toBe(404);
  });
});

test("startServer refuses an unreadable address list", async () => {
  const security = {
    trusted_proxies: ["10.0.0.0/33"],
    allowed_hosts: [],
    metrics_allow: [],
    cors: { allowed_origins: [], allow_credentials: false, max_age: 0 },
  };
  let failure: unknown;
  try {
    await startTestServer({ config: { security } });
  } catch (error) {
    failure = error;
  }
  expect(failure).toMatchObject({ code: "INVALID_OPTION" });
});
