/**
 * Tests a server under a sub-path of a proxy, configured by `server.base_path` or by
 * `X-Forwarded-Prefix`: the paths that it accepts, and the paths that appear in its responses.
 * `tests/docs/proxies_test.ts` runs real proxies.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { createClient } from "../../src/client/mod.ts";
import { SocketClient } from "../support/client.ts";
import { chromiumMissing, describeUnless } from "../support/requirements.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { onlyThorough, shareOf } from "../support/thoroughness.ts";
import { readZip } from "../support/zip_reader.ts";
import { launchBrowser, openWorkbench, runSql, TEST_MS_MAX } from "../ui/browser.ts";

let server: ServerProcess;
/** A server without a base path that trusts the headers of its proxy. */
let trusting: ServerProcess;
let base: string;

beforeAll(async () => {
  [server, trusting] = await Promise.all([
    startReadyServer({ config: { server: { base_path: "/my/db", ui_enabled: true } } }),
    startReadyServer({
      config: {
        server: { ui_enabled: true },
        security: { trusted_proxies: ["127.0.0.1"] },
        auth: { setup_code: false },
      },
    }),
  ]);
  base = `${server.url}/my/db`;
  for (const each of [server, trusting]) {
    await each.rows(
      "CREATE NAMESPACE app; CREATE USER TABLE app.docs (id INT PRIMARY KEY, file FILE)",
    );
    const form = new FormData();
    form.set("sql", "INSERT INTO app.docs VALUES (1, FILE('d'))");
    form.set("file:d", new File(["bytes of a file"], "a b.txt", { type: "text/plain" }));
    const headers = { Authorization: `Bearer ${each.token}` };
    const answer = await fetch(`${each.url}/v1/api/sql`, { method: "POST", headers, body: form });
    expect(await answer.json()).toMatchObject({ status: "success" });
  }
});

afterAll(async () => {
  await Promise.all([server.stop(), trusting.stop()]);
});

/**
 * Sends requests to the trusting server as a proxy that adds a prefix would, and returns the
 * responses.
 */
function through(
  prefix: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return trusting.get(path, { "X-Forwarded-Prefix": prefix, ...headers });
}

function cookiePaths(answer: Response): string[] {
  const paths = answer.headers.getSetCookie().map((cookie) => /Path=([^;]*)/.exec(cookie)?.[1]);
  return paths.map((path) => path ?? "");
}

describe("the server serves requests below server.base_path", () => {
  test.each([
    ["/my/db/health/live", 200],
    ["/health/live", 200],
    ["/my/db/v1/openapi.json?x=/my/db", 200],
    ["/my/dbx/health/live", 404],
    ["/my/health/live", 404],
    ["/my/db/my/db/health/live", 404],
    ["/MY/DB/health/live", 404],
    ["/my/db/../db/health/live", 200],
  ])("GET %s returns %d", async (path, status) => {
    const answer = await fetch(server.url + path, { redirect: "manual" });
    expect(answer.status).toBe(status);
  });

  test("the root redirects to the admin page, and the page finds its assets", async () => {
    for (const path of ["/my/db", "/my/db/", "/"]) {
      const answer = await server.get(path);
      expect([answer.status, answer.headers.get("location")]).toEqual([302, "/my/db/ui"]);
    }
    const page = await (await server.get("/my/db/ui")).text();
    const parts = [...page.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? "");
    expect(parts.length).toBe(2);
    for (const path of parts) {
      expect(path).toStartWith("/my/db/ui/");
      expect((await server.get(path)).status).toBe(200);
    }
  });

  test("cookies have the base path, including those that end a session", async () => {
    const credentials = { user: ADMIN, password: PASSWORD };
    const origin = { Origin: server.url };
    const login = await server.post("/my/db/v1/api/auth/login", credentials, origin);
    expect(cookiePaths(login)).toEqual(["/my/db/", "/my/db/v1/api/auth"]);
    const cookie = login.headers
      .getSetCookie()
      .map((each) => each.split(";")[0])
      .join("; ");
    const logout = await server.post(
      "/my/db/v1/api/auth/logout",
      {},
      { ...origin, Cookie: cookie },
    );
    expect(logout.status).toBe(200);
    expect(cookiePaths(logout)).toEqual(["/my/db/", "/my/db/v1/api/auth"]);
  });

  test("URLs of files and exports contain the base path, in SQL and in the client", async () => {
    const [[path] = []] = await server.rows("SELECT FILE_URL(file) FROM app.docs");
    expect(path).toStartWith("/my/db/v1/files/");
    expect(await (await server.get(String(path))).text()).toBe("bytes of a file");
    const db = createClient({ url: `${base}/`, auth: { token: server.token } });
    const [row] = await db.query<{ file: object }>("SELECT file FROM app.docs");
    const url = await db.files.url(row?.file ?? {}, { download: true });
    expect(url).toStartWith(`${base}/v1/files/`);
    expect(await (await fetch(url)).text()).toBe("bytes of a file");
    const archive = await db.account.exportData();
    expect(archive).toStartWith(`${base}/v1/exports/${ADMIN}/`);
    expect(readZip(await (await fetch(archive)).bytes()).has("app/docs.ndjson")).toBe(true);
    const [[, , , , shown] = []] = await server.rows("SHOW EXPORT");
    expect(shown).toStartWith(`${base}/v1/exports/`);
    db.close();
  });

  test("sockets and event streams open, and SUBSCRIBE TO returns their URL with the base path", async () => {
    const [[, address] = []] = await server.rows("SUBSCRIBE TO app.docs");
    expect(address).toBe(`${base.replace("http", "ws")}/v1/ws`);
    const socket = await SocketClient.connect(base, { token: server.token });
    await socket.expect("auth_success");
    socket.close();
    const query = new URLSearchParams({ sql: "SELECT id FROM app.docs" });
    const stream = await fetch(`${base}/v1/api/live?${query.toString()}`, {
      headers: { Authorization: `Bearer ${server.token}` },
    });
    expect(stream.headers.get("content-type")).toBe("text/event-stream");
    await stream.body?.cancel();
  });

  test("the API description and its advice contain the base path", async () => {
    const description = await (await server.get("/my/db/v1/openapi.json")).json();
    expect(description).toMatchObject({ servers: [{ url: "/my/db" }] });
    const types = (await server.get("/my/db/v1/client.js")).headers.get("x-typescript-types");
    expect(types).toBe("./client.d.ts");
    const wrong = (await (await server.get("/my/db/v1/api/sql")).json()) as { message: string };
    expect(wrong.message).toContain(`'${base}/v1/api/sql'`);
  });
});

describe("the server serves requests below X-Forwarded-Prefix of a trusted proxy", () => {
  test.each([
    ["/db", "/db"],
    ["/db/", "/db"],
    ["/a/b.c/d-e~f_g", "/a/b.c/d-e~f_g"],
    ["/outer, /inner", "/outer/inner"],
  ])("the prefix %s of a trusted proxy becomes the path %s", async (prefix, path) => {
    // The proxy may have removed the prefix or left it in place.
    for (const asked of ["/", `${path}/`]) {
      const answer = await through(prefix, asked);
      expect([answer.status, answer.headers.get("location")]).toEqual([302, `${path}/ui`]);
    }
    const [[url] = []] = (
      (await (
        await fetch(`${trusting.url}/v1/api/sql`, {
          method: "POST",
          headers: {
            Authorization: `Bearer ${trusting.token}`,
            "Content-Type": "application/json",
            "X-Forwarded-Prefix": prefix,
          },
          body: JSON.stringify({ sql: "SELECT FILE_URL(file) FROM app.docs" }),
        })
      ).json()) as { results: { rows: unknown[][] }[] }
    ).results[0]?.rows ?? [[]];
    expect(url).toStartWith(`${path}/v1/files/`);
    expect(await (await through(prefix, String(url))).text()).toBe("bytes of a file");
  });

  test.each([
    "",
    "/",
    "db",
    "//evil.test",
    "/db//x",
    "/../x",
    "/a/./b",
    "/a b",
    "/a;Path=/",
    '/a"><script>',
    "/%2e%2e",
    "/v1",
    "/ui/x",
    "/api",
    "/metrics",
    "https://evil.test/db",
    `/${"a".repeat(300)}`,
  ])("the prefix %s is not believed", async (prefix) => {
    const answer = await through(prefix, "/");
    expect(answer.headers.get("location")).toBe("/ui");
    expect(await (await through(prefix, "/ui")).text()).not.toContain("evil");
  });

  test("a prefix from an untrusted peer changes nothing", async () => {
    const answer = await server.get("/", { "X-Forwarded-Prefix": "/other" });
    expect(answer.headers.get("location")).toBe("/my/db/ui");
  });
});

const REFUSED = ["db", "/", "/db/", "/v1/db", "/ui", "/a//b", "/a b", "/../x", "/a?b"];

test.each(shareOf(REFUSED, { oneOf: 3 }))(
  "server.base_path = %s is refused with the correct form",
  async (path) => {
    const failure = await startReadyServer({ config: { server: { base_path: path } } }).then(
      () => "started",
      String,
    );
    expect(failure).toContain("server.base_path");
    expect(failure).toContain("a path such as /db, without a trailing slash");
  },
);

describeUnless(chromiumMissing ?? onlyThorough)("the admin page below a sub-path", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  }, TEST_MS_MAX);
  afterAll(() => browser.close());

  test(
    "a user logs in, runs a statement, and stays logged in after a reload",
    async () => {
      const { faults, page } = await openWorkbench(browser, { url: base });
      await runSql(page, "SELECT 6 * 7 AS answer");
      await page.getByText("42", { exact: true }).first().waitFor();
      expect(faults()).toEqual([]);
      expect(page.url()).toStartWith(`${base}/ui`);
      await page.reload();
      await page.getByRole("button", { name: "Run" }).waitFor();
      expect(faults()).toEqual([]);
    },
    TEST_MS_MAX,
  );
});
