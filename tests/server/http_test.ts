/**
 * Tests the HTTP interface of an in-process server: paths, methods, headers, envelopes and limits.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import { startTestServer, type TestServer } from "../support/http.ts";

const ID_FIELD = { name: "id", data_type: "BigInt", index: 0 } as const;

describe("a server with the default configuration responds as docs/http.md describes", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startTestServer({
      script: ({ sql, check, format }) => {
        if (sql === "big") {
          const rows = Array.from({ length: 9000 }, (_, id) => [id, "some text"]);
          return { results: [{ schema: [ID_FIELD], rows, rowCount: 9000, asUser: "ada" }] };
        }
        if (sql === "wide" || sql === "euros" || sql === "letters") {
          const rows = [
            [{ wide: "x".repeat(2000), euros: "€".repeat(400), letters: "x".repeat(400) }[sql]],
          ];
          return { results: [{ schema: [ID_FIELD], rows, rowCount: 1, asUser: "ada" }] };
        }
        if (sql === "fail") {
          const error = new DatabaseError("TABLE_NOT_FOUND", "Cannot find table chat.mesages", {
            position: 14,
            hint: "did you mean chat.messages?",
            statementIndex: 1,
          });
          return { results: [{ rowCount: 0, asUser: "ada" }], error };
        }
        if (sql === "bug") throw new Error("a bug of the engine");
        const one = { schema: [ID_FIELD], rows: check === true ? [] : [[7]], rowCount: 1 };
        const count = sql === "two" ? 2 : 1;
        if (format !== undefined && format !== "json" && count > 1)
          return { results: [], rowResultCount: count };
        return { results: Array.from({ length: count }, () => ({ ...one, asUser: "ada" })) };
      },
    });
  });

  afterAll(async () => {
    expect(server.bugs).toEqual([]);
    await server.close();
  });

  test("GET / redirects to the UI", async () => {
    const response = await server.fetch("/");
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toBe("/ui");
  });

  test.each<[string, string, number, string]>([
    ["GET", "/nope", 404, "not_found"],
    ["GET", "/v1/api/sql/", 404, "not_found"],
    ["GET", "/health/", 404, "not_found"],
    ["GET", "/uix", 404, "not_found"],
    ["POST", "/v1/api/live", 405, "method_not_allowed"],
    ["GET", "/v1/api/sql", 405, "method_not_allowed"],
    ["POST", "/v1/api/auth/me", 405, "method_not_allowed"],
    ["PUT", "/v1/api/auth/login", 405, "method_not_allowed"],
    ["DELETE", "/v1/files/a/b/f0001/1", 405, "method_not_allowed"],
    ["POST", "/v1/ws", 405, "method_not_allowed"],
    ["GET", "/v1/ws", 426, "upgrade_required"],
  ])("%s %s is %d %s in shape A", async (method, path, status, code) => {
    const response = await server.fetch(path, { method });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: code, message: expect.any(String) });
    if (status === 405) expect(response.headers.get("allow")).toMatch(/OPTIONS$/);
  });

  test("every API response has the security headers and may not be stored", async () => {
    for (const path of ["/v1/api/auth/status", "/nope", "/health", "/v1/api/sql"]) {
      const { headers } = await server.fetch(path);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("access-control-allow-origin")).toBeNull();
      expect(headers.get("vary") ?? "").not.toContain("Origin");
    }
  });

  test("X-Request-ID is echoed if it is well formed, and otherwise generated without repetition", async () => {
    const id = async (given?: string): Promise<string | null> => {
      const headers = given === undefined ? {} : { "X-Request-ID": given };
      return (await server.fetch("/nope", { headers })).headers.get("x-request-id");
    };
    expect(await id("a.b_c:d-9")).toBe("a.b_c:d-9");
    expect(await id("x".repeat(128))).toBe("x".repeat(128));
    const made = [await id(), await id(), await id("x".repeat(129)), await id("a b")];
    for (const one of made) expect(one).toMatch(/^[A-Za-z0-9._:-]{1,128}$/);
    expect(new Set(made).size).toBe(4);
  });

  test("HEAD returns the headers of GET without a body", async () => {
    const get = await server.fetch("/health/live");
    const head = await server.fetch("/health/live", { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
  });

  test("OPTIONS without CORS lists the methods and nothing else", async () => {
    const headers = { Origin: "http://evil.example", "Access-Control-Request-Method": "POST" };
    const response = await server.fetch("/v1/api/sql", { method: "OPTIONS", headers });
    expect(response.status).toBe(204);
    expect(response.headers.get("allow")).toBe("POST, OPTIONS");
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-"))).toEqual([]);
  });

  test("health probes get responses", async () => {
    const healthy = {
      status: "healthy",
      api_version: "v1",
      version: "1.2.3",
      build_date: "2026-11-21",
    };
    expect(await (await server.fetch("/health")).json()).toEqual(healthy);
    expect(await (await server.fetch("/v1/api/healthcheck")).json()).toEqual(healthy);
    expect(await (await server.fetch("/health/live")).json()).toEqual({ status: "alive" });
    expect(await (await server.fetch("/health/ready")).json()).toEqual({ status: "ready" });
    expect(await (await server.fetch("/v1/api/cluster/health")).json()).toMatchObject({
      status: "healthy",
      is_cluster_mode: false,
      is_leader: true,
      nodes: [{ is_self: true, role: "leader", status: "active", uptime_seconds: 0 }],
    });
  });

  test.each(["/health", "/v1/api/healthcheck", "/v1/api/cluster/health"])(
    "%s refuses callers that are not local, and a Host that does not name this server",
    async (path) => {
      const forwarded = await server.fetch(path, { headers: { "X-Forwarded-For": "127.0.0.1" } });
      expect([forwarded.status, await forwarded.json()]).toMatchObject([
        403,
        { error: "forbidden" },
      ]);
      const rebound = await server.fetch(path, { headers: { Host: "evil.example" } });
      expect([rebound.status, await rebound.json()]).toMatchObject([
        403,
        { error: "host_not_allowed" },
      ]);
    },
  );

  test("/metrics requires an administrator: 401, 403, or the metrics", async () => {
    expect((await server.fetch("/metrics")).status).toBe(401);
    const user = { Authorization: `Bearer ${await server.token("bob")}` };
    const refused = await server.fetch("/metrics", { headers: user });
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      { status: "error", error: { code: "INSUFFICIENT_PERMISSIONS" } },
    ]);
    const admin = { Authorization: `Bearer ${await server.token()}` };
    const response = await server.fetch("/metrics", { headers: admin });
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    expect(text).toMatch(/^tidemark_http_requests_total\{status="200"\} \d+$/m);
    expect(text).toContain('tidemark_build_info{version="1.2.3"} 1');
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? [\d.]+)$/);
    }
  });

  test("/ui has its content security policy, a fresh nonce, and the page for every path without an extension", async () => {
    const policies: string[] = [];
    for (const path of ["/ui", "/ui/", "/ui/tables/chat"]) {
      const response = await server.fetch(path);
      expect(response.status).toBe(200);
      expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
      policies.push(response.headers.get("content-security-policy") ?? "");
      expect(await response.text()).toContain("without its admin page");
    }
    const nonce = /'nonce-([A-Za-z0-9+/=]{24})'/;
    expect(new Set(policies.map((policy) => nonce.exec(policy)?.[1])).size).toBe(3);
    expect(policies[0]?.replace(nonce, "'nonce-…'")).toBe(
      "default-src 'self'; script-src 'self'; style-src 'self' 'nonce-…'; img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect((await server.fetch("/ui/assets/missing.js")).status).toBe(404);
  });

  test("POST /v1/api/sql returns results with status and time", async () => {
    const response = await server.sql({ sql: "SELECT 7", params: [1.5, "x"] });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const body: unknown = await response.json();
    expect(body).toEqual({
      results: [{ schema: [ID_FIELD], rows: [[7]], row_count: 1, as_user: "ada" }],
      status: "success",
      took: expect.any(Number),
    });
    expect(String((body as { took: number }).took)).toMatch(/^\d+(\.\d{1,3})?$/);
    expect(server.requests.at(-1)).toMatchObject({
      sql: "SELECT 7",
      params: [{ number: "1.5" }, "x"],
    });
  });

  test("a failed statement keeps the results of completed ones, and the error contains position and reason", async () => {
    const response = await server.sql({ sql: "fail" });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      results: [{ row_count: 0, as_user: "ada" }],
      status: "error",
      took: expect.any(Number),
      error: {
        code: "TABLE_NOT_FOUND",
        message: "Statement 2: Cannot find table chat.mesages",
        position: 14,
        hint: "did you mean chat.messages?",
        statement: 1,
      },
    });
  });

  test.each<[string, Record<string, string>, string, string]>([
    ["no token", { Authorization: "" }, "{}", "401 MISSING_AUTHORIZATION"],
    ["another scheme", { Authorization: "Basic eDp5" }, "{}", "401 INVALID_CREDENTIALS"],
    ["a wrong token", { Authorization: "Bearer x.y.z" }, "{}", "401 INVALID_CREDENTIALS"],
    ["a form type", { "Content-Type": "text/plain" }, "{}", "415 UNSUPPORTED_MEDIA_TYPE"],
    ["no JSON", {}, "{", "400 INVALID_INPUT"],
    ["no boundary", { "Content-Type": "multipart/form-data" }, "x", "400 INVALID_INPUT"],
  ])("POST /v1/api/sql with %s is shape B", async (_what, headers, body, wanted) => {
    const response = await server.sql(body, headers);
    const [status = "", code = ""] = wanted.split(" ");
    expect(response.status).toBe(Number(status));
    expect(await response.json()).toEqual({
      results: [],
      status: "error",
      took: expect.any(Number),
      error: { code, message: expect.any(String) },
    });
    expect(response.headers.get("www-authenticate")).toBe(status === "401" ? "Bearer" : null);
  });

  test.each(["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"])(
    "POST /v1/api/sql reads %s",
    async (type) => {
      const response = await server.sql({ sql: "SELECT 7" }, { "Content-Type": type });
      expect(response.status).toBe(200);
    },
  );

  test("POST /v1/api/sql reads a form with files", async () => {
    const form = new FormData();
    form.append("sql", "INSERT INTO t VALUES (FILE('a'))");
    form.append("file:a", new File(["hello"], "a.txt", { type: "text/plain" }));
    const headers = { Authorization: `Bearer ${await server.token()}` };
    const response = await server.fetch("/v1/api/sql", { method: "POST", headers, body: form });
    expect(response.status).toBe(200);
    const upload = server.requests.at(-1)?.files?.get("a");
    expect(upload).toMatchObject({ name: "a.txt", mime: "text/plain" });
    expect(new TextDecoder().decode(upload?.bytes)).toBe("hello");
  });

  test("Accept selects NDJSON or CSV for one row-returning statement, which runs once", async () => {
    const before = server.requests.length;
    const ndjson = await server.sql({ sql: "SELECT 7" }, { Accept: "application/x-ndjson" });
    expect(ndjson.headers.get("content-type")).toStartWith("application/x-ndjson");
    expect((await ndjson.text()).split("\n").slice(0, 2)).toEqual([
      JSON.stringify({ schema: [ID_FIELD], as_user: "ada" }),
      "[7]",
    ]);
    const csv = await server.sql({ sql: "SELECT 7" }, { Accept: "text/csv" });
    expect(csv.headers.get("content-type")).toStartWith("text/csv");
    expect(await csv.text()).toBe("id\r\n7\r\n");
    const failed = await server.sql({ sql: "fail" }, { Accept: "text/csv" });
    expect([failed.status, await failed.json()]).toMatchObject([400, { status: "error" }]);
    expect(server.requests.slice(before).map(({ check, sql }) => [sql, check])).toEqual([
      ["SELECT 7", undefined],
      ["SELECT 7", undefined],
      ["fail", undefined],
    ]);
  });

  test("several row-returning statements get 406 in those formats, and none of them runs", async () => {
    const before = server.requests.length;
    const response = await server.sql({ sql: "two" }, { Accept: "text/csv" });
    expect([response.status, await response.json()]).toMatchObject([
      406,
      { status: "error", error: { code: "NOT_ACCEPTABLE" } },
    ]);
    expect(server.requests.slice(before)).toMatchObject([{ format: "csv" }]);
  });

  test("responses of 1 KiB and more are gzipped on request, with a Vary header", async () => {
    const plain = await server.sql({ sql: "wide" }, { "Accept-Encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(plain.headers.get("vary")).toBe("Accept-Encoding");
    const packed = await server.sql({ sql: "wide" }, { "Accept-Encoding": "br;q=0.1, gzip" });
    expect(packed.headers.get("content-encoding")).toBe("gzip");
    expect(Number(packed.headers.get("content-length"))).toBeLessThan(400);
    const rows = (body: unknown): unknown => (body as { results: { rows: unknown }[] }).results[0];
    expect(rows(await packed.json())).toEqual(rows(await plain.json()));
    const refused = await server.sql({ sql: "wide" }, { "Accept-Encoding": "gzip;q=0" });
    expect(refused.headers.get("content-encoding")).toBeNull();
    const small = await server.sql({ sql: "SELECT 7" }, { "Accept-Encoding": "gzip" });
    expect(small.headers.get("content-encoding")).toBeNull();
  });

  test("the gzip threshold counts the bytes of a response, not its characters", async () => {
    const euros = await server.sql({ sql: "euros" }, { "Accept-Encoding": "gzip" });
    expect(euros.headers.get("content-encoding")).toBe("gzip");
    expect(await euros.text()).toContain("€".repeat(400));
    const letters = await server.sql({ sql: "letters" }, { "Accept-Encoding": "gzip" });
    expect(letters.headers.get("content-encoding")).toBeNull();
    expect(await letters.text()).toContain("x".repeat(400));
  });

  test("a large result is streamed completely in each format, compressed or not", async () => {
    for (const encoding of ["identity", "gzip"]) {
      const response = await server.sql({ sql: "big" }, { "Accept-Encoding": encoding });
      expect(response.headers.get("content-length")).toBeNull();
      const { results, status } = (await response.json()) as {
        results: { rows: unknown[] }[];
        status: string;
      };
      expect([results[0]?.rows.length, status]).toEqual([9000, "success"]);
    }
    const csv = await server.sql({ sql: "big" }, { Accept: "text/csv" });
    expect((await csv.text()).split("\r\n").length).toBe(9002);
  });
});
