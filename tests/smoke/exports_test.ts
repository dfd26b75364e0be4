/**
 * Tests exports of users' own data over HTTP: archives compared with SELECT, downloads by token,
 * cookie and signed URL, rights, scoped tokens, the audit log, a killed process, and a large
 * archive.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "../../src/client/mod.ts";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";
import { readZip, textOf } from "../support/zip_reader.ts";

let server: ServerProcess;
let ann: string;
let bob: string;

const BYTES: Uint8Array<ArrayBuffer> = Uint8Array.from({ length: 70_000 }, (_, at) => at % 251);

beforeAll(async () => {
  server = await startReadyServer({ config: { auth: { cookie_secure: false } } });
  ann = await server.createUser("ann");
  bob = await server.createUser("bob");
  await server.rows(
    `CREATE NAMESPACE app;
     CREATE TYPE app.mood AS ENUM ('glad', 'sad');
     CREATE USER TABLE app.notes (id BIGINT PRIMARY KEY, "Title, long" TEXT, price NUMERIC(10, 2),
       mood app.mood, tags TEXT[], at TIMESTAMPTZ, raw BYTEA, extra JSONB, twice BIGINT GENERATED ALWAYS AS (id * 2) STORED);
     CREATE USER TABLE app.loose (v TEXT);
     CREATE USER TABLE app.docs (id INT PRIMARY KEY, file FILE);
     CREATE STREAM TABLE app.typing (room TEXT) WITH (TTL_SECONDS = 3600);
     CREATE TABLE app.shared (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'PUBLIC')`,
  );
  await server.rows("INSERT INTO app.shared VALUES (1)");
  for (const [token, name] of [
    [ann, "ann"],
    [bob, "bob"],
  ] as const) {
    await server.rows(
      `INSERT INTO app.notes (id, "Title, long", price, mood, tags, at, raw, extra) VALUES
         (9007199254740993, 'ä "quoted" of ${name}', 1.50, 'glad', '{a,NULL,"b c"}', '2026-11-30T10:00:00Z', '\\x00ff', '{"k": [1, null]}'),
         (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
       INSERT INTO app.notes (id) SELECT i FROM generate_series(10, 300) g(i);
       UPDATE app.notes SET "Title, long" = 'changed' WHERE id = 10; DELETE FROM app.notes WHERE id = 11;
       INSERT INTO app.loose VALUES ('one'), ('one'); INSERT INTO app.typing VALUES ('hall')`,
      { token },
    );
    const form = new FormData();
    form.set("sql", "INSERT INTO app.docs VALUES (1, FILE('d'))");
    form.set("file:d", new File([BYTES], `of ${name}.bin`, { type: "image/png" }));
    const headers = { Authorization: `Bearer ${token}` };
    const answer = await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
    expect(await answer.json()).toMatchObject({ status: "success" });
  }
  await server.rows("STORAGE FLUSH TABLE app.notes");
});

afterAll(async () => {
  await server.stop();
});

/** Exports a user's data. Returns the path of the archive, without its signature. */
async function exported(token: string, user = "ann"): Promise<string> {
  const [row = []] = await server.rows("EXPORT USER DATA", { token });
  expect(row.slice(1, 3)).toEqual(["export", "completed"]);
  return `/v1/exports/${user}/${String(row[0])}`;
}

async function urlOf(token: string): Promise<string> {
  const [[, , , , url] = []] = await server.rows("SHOW EXPORT", { token });
  return String(url);
}

function bearer(token: string): Record<string, string> {
  return { Authorization: `Bearer ${token}` };
}

async function refusal(answer: Response): Promise<unknown[]> {
  const { error } = (await answer.json()) as { error: { code: string; message: string } };
  return [answer.status, error.code, error.message];
}

describe("an exported archive contains the data of its user", () => {
  test("an archive contains what SELECT shows of its user, and COPY reads it back", async () => {
    const path = await exported(ann);
    const answer = await server.get(path, bearer(ann));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/zip");
    expect(answer.headers.get("content-disposition")).toBe(
      `attachment; filename="${path.split("/").at(-1)}.zip"`,
    );
    expect(answer.headers.get("cache-control")).toBe("private, no-cache");
    const entries = readZip(await answer.bytes());
    const names = [...entries.keys()].map((name) => name.replace(/\d{5,}/, "N"));
    expect(names.toSorted()).toEqual([
      "app/docs.ndjson",
      "app/loose.ndjson",
      "app/notes.ndjson",
      "app/typing.ndjson",
      "export.json",
      "files/app/docs/N-of-ann.bin",
    ]);
    const file = [...entries.keys()].find((name) => name.startsWith("files/")) ?? "";
    expect(entries.get(file)).toEqual(BYTES);
    expect(textOf(entries, "app/loose.ndjson")).toBe('{"v":"one"}\n{"v":"one"}\n');
    for (const [name, content] of entries) {
      expect(new TextDecoder().decode(content), name).not.toContain("bob");
    }
    await server.rows(
      `CREATE USER TABLE IF NOT EXISTS app.back (id BIGINT PRIMARY KEY, "Title, long" TEXT, price NUMERIC(10, 2),
         mood app.mood, tags TEXT[], at TIMESTAMPTZ, raw BYTEA, extra JSONB, twice BIGINT)`,
    );
    const query = new URLSearchParams({ sql: "COPY app.back FROM STDIN WITH (FORMAT ndjson)" });
    const copied = await fetch(`${server.url}/v1/api/copy?${query.toString()}`, {
      method: "POST",
      headers: bearer(ann),
      body: textOf(entries, "app/notes.ndjson"),
    });
    expect(await copied.json()).toMatchObject({ status: "success", results: [{ row_count: 292 }] });
    const differing = `(SELECT * FROM app.notes EXCEPT ALL SELECT * FROM app.back)
      UNION ALL (SELECT * FROM app.back EXCEPT ALL SELECT * FROM app.notes)`;
    expect(await server.rows(differing, { token: ann })).toEqual([]);
    await server.rows("DROP TABLE app.back");
  });

  test("an archive can be downloaded in ranges, and is not sent again if the client has it", async () => {
    const path = await exported(ann);
    const whole = await (await server.get(path, bearer(ann))).bytes();
    const part = await server.get(path, { ...bearer(ann), Range: "bytes=4-9" });
    expect(part.status).toBe(206);
    expect(part.headers.get("content-range")).toBe(`bytes 4-9/${whole.length}`);
    expect(await part.bytes()).toEqual(whole.subarray(4, 10));
    const tag = part.headers.get("etag") ?? "";
    expect((await server.get(path, { ...bearer(ann), "If-None-Match": tag })).status).toBe(304);
    const beyond = await server.get(path, { ...bearer(ann), Range: "bytes=99999999-" });
    expect(beyond.status).toBe(416);
  });
});

describe("an export can be downloaded", () => {
  test("a download is available to the user and to role dba", async () => {
    const path = await exported(ann);
    expect((await server.get(path, bearer(server.token))).status).toBe(200);
    expect(await refusal(await server.get(path, bearer(bob)))).toEqual([
      403,
      "PERMISSION_DENIED",
      "Cannot download another user's export: this requires the role dba or system, or the " +
        "right to act for that user",
    ]);
    // The response is the same whether or not the other user's export exists.
    const missing = await server.get("/v1/exports/ann/EX1", bearer(bob));
    expect((await refusal(missing)).slice(0, 2)).toEqual([403, "PERMISSION_DENIED"]);
    const anonymous = await refusal(await server.get(path));
    expect(anonymous.slice(0, 2)).toEqual([401, "MISSING_AUTHORIZATION"]);
    expect(await refusal(await server.get("/v1/exports/bob/EX1", bearer(bob)))).toEqual([
      404,
      "EXPORT_NOT_FOUND",
      "Cannot find export EX1",
    ]);
  });

  test.each([
    ["/v1/exports/ann", "the path must be /v1/exports/{user_id}/{export_id}"],
    ["/v1/exports/ann/", "the path must be /v1/exports/{user_id}/{export_id}"],
    ["/v1/exports/ann/EX1/more", "the path must be /v1/exports/{user_id}/{export_id}"],
    ["/v1/exports/ann/%2e%2e%2fx", "its path contains a forbidden segment"],
    ["/v1/exports/ann/%ff", "its path is not percent-encoded UTF-8"],
  ])("a download refuses the path %s", async (path, why) => {
    const answer = await server.get(path, bearer(ann));
    expect(await refusal(answer)).toEqual([400, "INVALID_INPUT", `Cannot read an export: ${why}`]);
  });

  test("a download works by the URL of SHOW EXPORT without a header until the session ends", async () => {
    await exported(ann);
    const session = (await server.login("ann")).access_token;
    const url = await urlOf(session);
    expect(url).toStartWith(`${server.url}/v1/exports/ann/EX`);
    expect(readZip(await (await fetch(url)).bytes()).has("export.json")).toBe(true);
    const [before = "", end = "", signature = ""] = url.split(".").slice(-3);
    expect(before).toContain("access=");
    for (const changed of [
      url.replace(`.${end}.`, `.${Number(end) + 1}.`),
      url.replace(signature, signature.replaceAll(/[a-z]/g, "A")),
      url.replace(/EX\d+/, "EX1"),
    ]) {
      expect(await refusal(await fetch(changed))).toEqual([
        401,
        "INVALID_CREDENTIALS",
        "The URL is not valid, or its session has ended; FILE_URL and SHOW EXPORT return new URLs",
      ]);
    }
    // The signature of an archive's URL gives no access to other files, and is valid only for its
    // user.
    const other = await fetch(url.replace("/exports/ann/", "/exports/bob/"));
    expect((await refusal(other)).slice(0, 2)).toEqual([403, "PERMISSION_DENIED"]);
    await server.post("/v1/api/auth/logout", {}, bearer(session));
    expect((await fetch(url)).status).toBe(401);
  });

  test("a download works by the login cookie for pages of this server", async () => {
    const path = await exported(ann);
    const cookie = { Cookie: `tidemark_auth=${ann}` };
    const own = { ...cookie, "Sec-Fetch-Site": "same-origin" };
    expect((await server.get(path, own)).status).toBe(200);
    const foreign = { ...cookie, Origin: "https://evil.test" };
    expect((await server.get(path, foreign)).status).toBe(401);
  });

  test("a download works by db.account.exportData() in the client", async () => {
    const db = createClient({ url: server.url, auth: { token: ann } });
    const url = await db.account.exportData();
    db.close();
    expect(readZip(await (await fetch(url)).bytes()).has("app/notes.ndjson")).toBe(true);
  });
});

test("a service token requires READ and no limit to namespaces", async () => {
  const tokenOf = async (name: string, scopes: string): Promise<string> => {
    const [row = []] = await server.rows(`CREATE TOKEN ${name} FOR USER ann SCOPES (${scopes})`);
    return String(row[1]);
  };
  const path = await exported(ann);
  const limited = await tokenOf("limited", "WRITE, NAMESPACE app");
  for (const sql of ["EXPORT USER DATA", "SHOW EXPORT"]) {
    const { body } = await server.sql(sql, { token: limited });
    expect(body.error).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(body.error?.message).toContain("token limited is limited to the namespaces app");
  }
  expect((await server.get(path, bearer(limited))).status).toBe(403);
  const reader = await tokenOf("reader", "READ");
  expect((await server.get(path, bearer(reader))).status).toBe(200);
  expect((await fetch(await urlOf(reader))).status).toBe(200);
});

test("exports are listed as jobs of their user, and are audited", async () => {
  const path = await exported(bob, "bob");
  const [, id] = /(EX\d+)/.exec(path) ?? [];
  const jobs = "SELECT job_id, job_type, status, progress, created_by FROM system.my_jobs";
  expect(await server.rows(jobs, { token: bob })).toContainEqual([
    id,
    "export",
    "completed",
    1,
    "bob",
  ]);
  const audit = "SELECT target FROM system.audit_log WHERE action = 'export user data'";
  expect(await server.rows(audit)).toContainEqual(["bob"]);
});

test("a large number of exports leaves the jobs of other users in the list", async () => {
  for (let count = 0; count < 5; count += 1) await exported(bob, "bob");
  const jobs = "SELECT job_id FROM system.my_jobs WHERE job_type = 'export'";
  expect(await server.rows(jobs, { token: bob })).toHaveLength(2);
  expect(await server.rows("SHOW EXPORT", { token: bob })).toHaveLength(1);
});

test("wrong statements are refused with a hint about the expected form", async () => {
  for (const sql of ["EXPORT", "EXPORT USER", "EXPORT DATA", "EXPORT USER DATA TO '/tmp/x'"]) {
    const { body } = await server.sql(sql, { token: ann });
    expect(body.error, sql).toMatchObject({ code: expect.stringMatching(/INVALID_SQL|PARSE/) });
  }
  const inside = await server.sql("EXECUTE AS USER 'ann' (SHOW TABLES)");
  expect(inside.body.error?.message).toContain("COPY, EXPORT USER DATA and SHOW EXPORT");
});

test("a back end that may act for a user exports the data of the user", async () => {
  const backEnd = await server.createUser("back_end", "service");
  const [row = []] = await server.rows("EXECUTE AS USER 'ann' (EXPORT USER DATA)", {
    token: backEnd,
  });
  expect(row.slice(1, 3)).toEqual(["export", "completed"]);
  const show = "EXECUTE AS USER 'ann' (SHOW EXPORT)";
  const [[jobId, status, , , url] = []] = await server.rows(show, { token: backEnd });
  expect([jobId, status]).toEqual([row[0], "completed"]);
  // A back end downloads the archive with its own token. A signed URL would belong to a session,
  // which a back end may not have.
  expect(String(url)).toEndWith(`/v1/exports/ann/${String(jobId)}`);
  const archive = await (await server.get(new URL(String(url)).pathname, bearer(backEnd))).bytes();
  expect(textOf(readZip(archive), "app/loose.ndjson")).toBe('{"v":"one"}\n{"v":"one"}\n');
  expect(await server.rows("SHOW EXPORT", { token: backEnd })).toEqual([]);
  const audit =
    "SELECT actor_user_id, target FROM system.audit_log WHERE action = 'execute as' AND target = 'ann'";
  await until(async () => (await server.rows(audit)).length >= 2);
  expect(await server.rows(audit)).toContainEqual(["back_end", "ann"]);
});

test.each([
  ["READ, ACT", "none", 200],
  ["WRITE", "PERMISSION_DENIED", 403],
  ["READ, ACT, NAMESPACE app", "PERMISSION_DENIED", 403],
])("a service token exports for others with READ and ACT: %s", async (scopes, code, status) => {
  await server.rows("CREATE USER IF NOT EXISTS exporter INTERNAL ROLE service");
  const name = `t_${scopes.replaceAll(/\W+/g, "_").toLowerCase()}`;
  const [made = []] = await server.rows(
    `CREATE TOKEN ${name} FOR USER exporter SCOPES (${scopes})`,
  );
  const token = String(made[1]);
  const path = await exported(ann);
  const answer = await server.sql("EXECUTE AS USER 'ann' (EXPORT USER DATA)", { token });
  expect(answer.body.error?.code ?? "none").toBe(code);
  const newest = String((await server.rows("SHOW EXPORT", { token: ann }))[0]?.[0]);
  const download = await server.get(path.replace(/EX\d+$/, newest), bearer(token));
  expect(download.status).toBe(status);
});

test("nobody exports for a user for whom they may not act", async () => {
  const sql = "EXECUTE AS USER 'ada' (EXPORT USER DATA)";
  const backEnd = (await server.login("back_end")).access_token;
  for (const token of [ann, backEnd]) {
    expect((await server.sql(sql, { token })).body.error?.code).toBe("PERMISSION_DENIED");
  }
  const answer = await server.get("/v1/exports/ada/EX1", bearer(backEnd));
  expect(answer.status).toBe(403);
});

testThoroughly(
  "a killed process keeps the finished archive, and nothing of an unfinished export",
  async () => {
    const path = await exported(ann);
    await server.rows(
      "INSERT INTO app.loose SELECT repeat('x', 2000) || i FROM generate_series(1, 20000) g(i)",
      { token: ann },
    );
    const running = server.sql("EXPORT USER DATA", { token: ann }).catch(() => undefined);
    const temporary = join(server.dataPath, "tmp");
    await until(() => readdirSync(temporary).some((name) => name.startsWith("EX")));
    await server.restart("SIGKILL");
    await running;
    expect(readdirSync(temporary).filter((name) => name.startsWith("EX"))).toEqual([]);
    ann = (await server.login("ann")).access_token;
    const answer = await server.get(path, bearer(ann));
    expect(readZip(await answer.bytes()).has("export.json")).toBe(true);
    expect((await server.rows("SHOW EXPORT", { token: ann })).map((row) => row[1])).toEqual([
      "completed",
    ]);
  },
);

test("DROP USER … PURGE erases archives", async () => {
  const eve = await server.createUser("eve");
  await server.rows("INSERT INTO app.loose VALUES ('of eve')", { token: eve });
  await exported(eve, "eve");
  const root = join(server.dataPath, "exports");
  const owners = (): string[] => (existsSync(root) ? readdirSync(root) : []);
  const count = owners().length;
  await server.rows("DROP USER eve PURGE");
  await until(() => owners().length < count);
  const left = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  for (const entry of left) {
    const zip = readFileSync(join(entry.parentPath, entry.name));
    expect(textOf(readZip(zip), "export.json")).not.toContain('"eve"');
  }
});
