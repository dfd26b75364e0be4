/** Tests the health probes, the admin page, and the headers that all responses share. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({
    config: { "security.cors": { allowed_origins: ["https://app.example"] } },
  });
});

afterAll(async () => {
  await server.stop();
});

describe("a health probe is answered", () => {
  test.each(["/v1/api/healthcheck", "/health"])(
    "%s shows version and date to local callers",
    async (path) => {
      expect(await (await server.get(path)).json()).toEqual({
        status: "healthy",
        api_version: "v1",
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        build_date: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      });
    },
  );

  test.each(["X-Forwarded-For", "Forwarded", "X-Real-IP"])(
    "%s makes a caller non-local",
    async (header) => {
      const answer = await server.get("/v1/api/healthcheck", { [header]: "127.0.0.1" });
      expect(answer.status).toBe(403);
      expect(await answer.json()).toMatchObject({ error: "forbidden" });
    },
  );

  test("a foreign host name is refused, to prevent DNS rebinding", async () => {
    const answer = await server.get("/v1/api/healthcheck", { Host: "evil.example" });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: "host_not_allowed" });
  });

  test("the probes live and ready are public", async () => {
    expect(await (await server.get("/health/live")).json()).toEqual({ status: "alive" });
    const ready = await server.get("/health/ready", { "X-Forwarded-For": "8.8.8.8" });
    expect(await ready.json()).toEqual({ status: "ready" });
  });

  test("metrics are only for administrators", async () => {
    expect([401, 403]).toContain((await server.get("/metrics")).status);
    const answer = await server.get("/metrics", { Authorization: `Bearer ${server.token}` });
    expect(answer.headers.get("Content-Type")).toContain("text/plain");
    expect(await answer.text()).toMatch(/^# (?:HELP|TYPE) /m);
  });

  test("system.stats contains every exported metric under its name", async () => {
    const answer = await server.get("/metrics", { Authorization: `Bearer ${server.token}` });
    const exported = (await answer.text()).split("\n").filter((line) => /^[a-z]/.test(line));
    const rows = await server.rows(
      "SELECT metric_name, metric_value, description FROM system.stats",
    );
    const stats = new Map(rows.map(([name, ...rest]) => [name, rest]));

    for (const line of exported) {
      const name = line.slice(0, line.lastIndexOf(" "));
      expect(stats.has(name), name).toBeTrue();
    }
    expect(stats.get("tidemark_subscriptions")).toEqual(["0", "Open subscriptions."]);
    expect(stats.get("tidemark_http_requests_running")?.[0]).toBe("1");
  });
});

describe("every path of the server handles HEAD and foreign origins", () => {
  test("every path responds to HEAD as to GET, but without a body", async () => {
    const answer = await fetch(`${server.url}/health/live`, { method: "HEAD" });
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
  });

  test("every path admits an allowed origin, and no other", async () => {
    const preflight = (origin: string): Promise<Response> =>
      fetch(`${server.url}/v1/api/sql`, {
        method: "OPTIONS",
        headers: {
          Origin: origin,
          "Access-Control-Request-Method": "POST",
          "Access-Control-Request-Headers": "authorization, content-type",
        },
      });
    const allowed = await preflight("https://app.example");
    expect(allowed.status).toBe(204);
    expect(allowed.headers.get("Access-Control-Allow-Origin")).toBe("https://app.example");
    expect(allowed.headers.get("Vary")).toContain("Origin");
    for (const origin of ["https://evil.example", "null", "https://app.example.evil.example"]) {
      const refused = await preflight(origin);
      expect(refused.headers.get("Access-Control-Allow-Origin")).toBeNull();
    }
  });

  test("a socket from another origin is refused", async () => {
    const answer = await fetch(`${server.url}/v1/ws`, {
      headers: {
        Origin: "https://evil.example",
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      },
    });
    expect(answer.status).toBe(403);
    expect(await answer.json()).toMatchObject({ error: "origin_not_allowed" });
    expect((await server.get("/v1/ws")).status).toBe(426);
  });
});
