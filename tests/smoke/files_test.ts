/**
 * Tests files that are uploaded with a statement and downloaded by their owner.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "../../src/client/mod.ts";
import { type ServerProcess, type SqlBody, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;
let ann: string;

beforeAll(async () => {
  server = await startReadyServer({
    config: {
      files: { max_size_bytes: 100_000, max_request_bytes: 300_000, max_files_per_request: 3 },
    },
  });
  ann = await server.createUser("ann");
  await server.rows(
    "CREATE NAMESPACE app; " +
      "CREATE USER TABLE app.docs (id INT PRIMARY KEY, name TEXT NOT NULL, file FILE); " +
      "CREATE SHARED TABLE app.logos (id INT PRIMARY KEY, file FILE) WITH (ACCESS_LEVEL='PUBLIC')",
  );
});

afterAll(async () => {
  await server.stop();
});

interface Reference {
  readonly id: string;
  readonly sub: string;
  readonly name: string;
  readonly mime: string;
  readonly size: number;
  readonly sha256: string;
}

interface UploadOptions {
  sql: string;
  parts?: Readonly<Record<string, File | string>>;
  token?: string;
}

async function upload({ sql, parts = {}, token = ann }: UploadOptions): Promise<{
  status: number;
  body: SqlBody;
}> {
  const form = new FormData();
  form.set("sql", sql);
  for (const [name, part] of Object.entries(parts)) form.set(name, part);
  const answer = await fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    body: form,
  });
  return { status: answer.status, body: (await answer.json()) as SqlBody };
}

function textFile(text: string, name = "My Report_v2 (final).TXT"): File {
  return new File([text], name, { type: "text/plain" });
}

async function referenceOf(id: number, table = "app.docs", token = ann): Promise<Reference> {
  const [row] = await server.rows(`SELECT file FROM ${table} WHERE id = ${id}`, { token });
  return JSON.parse(String(row?.[0])) as Reference;
}

function fetchFile(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return server.get(path, { Authorization: `Bearer ${ann}`, ...headers });
}

/** Returns every upload file below the data directory. */
function storedFiles(): string[] {
  const root = join(server.dataPath, "files");
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

const INSERT = "INSERT INTO app.docs VALUES ($1, $2, FILE('doc'))";

describe("a file can be uploaded", () => {
  test("an upload returns a reference, and its bytes can be downloaded", async () => {
    const parts = { params: '[1, "one"]', "file:doc": textFile("hello") };
    expect((await upload({ sql: INSERT, parts })).body).toMatchObject({ status: "success" });
    const reference = await referenceOf(1);
    expect(reference).toEqual({
      id: expect.stringMatching(/^\d+$/),
      sub: "f0001",
      name: "My Report_v2 (final).TXT",
      mime: expect.stringMatching(/^text\/plain/),
      size: 5,
      sha256: new Bun.CryptoHasher("sha256").update("hello").digest("hex"),
    });
    const path = `/v1/files/app/docs/f0001/${reference.id}-my-report-v2-final.txt`;
    const answer = await fetchFile(path);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toBe("hello");
    expect(answer.headers.get("ETag")).toBe(`"${reference.sha256}"`);
    expect(answer.headers.get("Cache-Control")).toBe("private, no-cache");
    expect(answer.headers.get("Content-Security-Policy")).toBe("sandbox; default-src 'none'");
    expect(answer.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(answer.headers.get("Content-Disposition")).toMatch(
      /^inline; .*filename\*=UTF-8''My%20Report/,
    );
    for (const other of [`/v1/files/app/docs/f0001/${reference.id}`, `/api${path}`]) {
      expect(await (await fetchFile(other)).text()).toBe("hello");
    }
  });

  test("an upload that a browser could run is sent as an attachment", async () => {
    const html = new File(["<script>"], "x.html", { type: "text/html" });
    await upload({ sql: INSERT, parts: { params: '[2, "two"]', "file:doc": html } });
    const { id, sub } = await referenceOf(2);
    const answer = await fetchFile(`/v1/files/app/docs/${sub}/${id}`);
    expect(answer.headers.get("Content-Disposition")).toMatch(/^attachment/);
  });

  test("an upload can be requested again by its tag, and in parts", async () => {
    const { id, sub, sha256 } = await referenceOf(1);
    const path = `/v1/files/app/docs/${sub}/${id}`;
    expect((await fetchFile(path, { "If-None-Match": `"${sha256}"` })).status).toBe(304);
    const ranges: readonly (readonly [range: string, status: number, text: string])[] = [
      ["bytes=1-2", 206, "el"],
      ["bytes=3-", 206, "lo"],
      ["bytes=-2", 206, "lo"],
      ["bytes=0-100", 206, "hello"],
      ["bytes=0-1,3-4", 200, "hello"],
    ];
    for (const [range, status, text] of ranges) {
      const answer = await fetchFile(path, { Range: range });
      expect([answer.status, await answer.text()], range).toEqual([status, text]);
    }
    const beyond = await fetchFile(path, { Range: "bytes=9-" });
    expect(beyond.status).toBe(416);
    const stale = await fetchFile(path, { Range: "bytes=0-1", "If-Range": '"other"' });
    expect(stale.status).toBe(200);
  });

  test("an upload is removed with its row", async () => {
    await upload({ sql: INSERT, parts: { params: '[3, "three"]', "file:doc": textFile("gone") } });
    const { id, sub } = await referenceOf(3);
    await server.rows("DELETE FROM app.docs WHERE id = 3", { token: ann });
    const answer = await fetchFile(`/v1/files/app/docs/${sub}/${id}`);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({
      status: "error",
      error: { code: "FILE_NOT_FOUND" },
    });
  });

  test("an upload to a shared table is available to all who may read the table, and belongs to no user", async () => {
    const sql = 'INSERT INTO app.logos VALUES (1, FILE("logo"))';
    const parts = {
      "file:logo": new File([Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10)], "l.png", {
        type: "image/png",
      }),
    };
    expect((await upload({ sql, parts, token: server.token })).status).toBe(200);
    const { id, sub, mime } = await referenceOf(1, "app.logos");
    expect(mime).toBe("image/png");
    const path = `/v1/files/app/logos/${sub}/${id}`;
    expect((await fetchFile(path)).status).toBe(200);
    expect((await fetchFile(`${path}?user_id=ann`)).status).toBe(400);
  });

  test("a dba can download a user's file by naming the user", async () => {
    const { id, sub } = await referenceOf(1);
    const path = `/v1/files/app/docs/${sub}/${id}`;
    const headers = { Authorization: `Bearer ${server.token}` };
    expect((await server.get(path, headers)).status).toBe(404);
    expect((await server.get(`${path}?user_id=ann`, headers)).status).toBe(200);
  });

  test("an upload survives a kill of the server", async () => {
    await server.restart("SIGKILL");
    const { id, sub } = await referenceOf(1);
    expect(await (await fetchFile(`/v1/files/app/docs/${sub}/${id}`)).text()).toBe("hello");
  });
});

describe("an upload that fails leaves nothing behind", () => {
  const big = textFile("x".repeat(100_001));
  const cases: readonly (readonly [
    name: string,
    options: UploadOptions,
    status: number,
    code: string,
  ])[] = [
    ["without its part", { sql: INSERT, parts: { params: '[90,"x"]' } }, 400, "MISSING_FILE"],
    [
      "with a part too much",
      { sql: "INSERT INTO app.docs VALUES (90, 'x', NULL)", parts: { "file:doc": textFile("x") } },
      400,
      "EXTRA_FILE",
    ],
    [
      "that is too large",
      { sql: INSERT, parts: { params: '[90,"x"]', "file:doc": big } },
      400,
      "FILE_TOO_LARGE",
    ],
    [
      "of too many files",
      {
        sql: "INSERT INTO app.docs VALUES (91,'a',FILE('a')),(92,'b',FILE('b')),(93,'c',FILE('c')),(94,'d',FILE('d'))",
        parts: Object.fromEntries(
          ["a", "b", "c", "d"].map((name) => [`file:${name}`, textFile(name)]),
        ),
      },
      400,
      "TOO_MANY_FILES",
    ],
    [
      "whose statement fails",
      { sql: INSERT, parts: { params: "[90,null]", "file:doc": textFile("x") } },
      400,
      "SQL_EXECUTION_ERROR",
    ],
    [
      "whose key is taken",
      { sql: INSERT, parts: { params: '[1,"x"]', "file:doc": textFile("x") } },
      400,
      "SQL_EXECUTION_ERROR",
    ],
    [
      "of two statements",
      { sql: `${INSERT}; SELECT 1`, parts: { "file:doc": textFile("x") } },
      400,
      "INVALID_INPUT",
    ],
    [
      "with a placeholder in a string only",
      {
        sql: "INSERT INTO app.docs VALUES (90, 'FILE(''doc'')', NULL)",
        parts: { "file:doc": textFile("x") },
      },
      400,
      "EXTRA_FILE",
    ],
  ];

  test.each(cases)("an upload leaves nothing behind: %s", async (_name, options, status, code) => {
    const before = storedFiles();
    const answer = await upload(options);
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(storedFiles()).toEqual(before);
    expect(await server.rows("SELECT id FROM app.docs WHERE id >= 90", { token: ann })).toEqual([]);
  });

  test("an upload with a statement that is only checked leaves nothing behind", async () => {
    const before = storedFiles();
    const parts = { params: '[90,"x"]', check: "true", "file:doc": textFile("x") };
    const { body } = await upload({ sql: INSERT, parts });
    expect(body.results).toMatchObject([{ row_count: 0, message: "checked" }]);
    expect(storedFiles()).toEqual(before);
    expect(await server.rows("SELECT id FROM app.docs WHERE id >= 90", { token: ann })).toEqual([]);
  });

  test("a placeholder without multipart is refused", async () => {
    const { status, body } = await server.sql(INSERT, { token: ann, params: [90, "x"] });
    expect([status, body.error?.code]).toEqual([400, "INVALID_INPUT"]);
  });
});

describe("a signed URL gives access to a file", () => {
  let owner: string;

  beforeAll(async () => {
    owner = await server.createUser("una");
    const sql = "INSERT INTO app.docs (id, name, file) VALUES (700, 'u', FILE('x'))";
    await upload({ sql, parts: { "file:x": textFile("signed bytes", "ä 1.txt") }, token: owner });
  });

  async function urlOf(token: string, expression = "FILE_URL(file)"): Promise<string> {
    const sql = `SELECT ${expression} FROM app.docs WHERE id = 700`;
    const [[url] = []] = await server.rows(sql, { token });
    return String(url);
  }

  const read = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
    server.get(url, headers);

  async function refusal(url: string): Promise<unknown> {
    const answer = await read(url);
    const { error } = (await answer.json()) as { error: { code: string; message: string } };
    return [answer.status, error.code, error.message];
  }

  const NOT_VALID = [
    401,
    "INVALID_CREDENTIALS",
    "The URL is not valid, or its session has ended; FILE_URL and SHOW EXPORT return new URLs",
  ];

  test("a signed URL serves the bytes without a header, in ranges, to pages of any origin", async () => {
    const url = await urlOf(owner);
    expect(url).toMatch(/^\/v1\/files\/\d+\/%C3%A4%201\.txt\?access=[\w-]+\.\d+\.[\w-]{43}$/);
    const whole = await read(url);
    expect([whole.status, await whole.text()]).toEqual([200, "signed bytes"]);
    expect(whole.headers.get("cross-origin-resource-policy")).toBe("cross-origin");
    expect(whole.headers.get("content-disposition")).toStartWith("inline;");
    const part = await read(url, { Range: "bytes=7-11" });
    expect([part.status, await part.text()]).toEqual([206, "bytes"]);
    const saved = await read(`${url}&download=1`);
    expect(saved.headers.get("content-disposition")).toStartWith("attachment;");
    const tag = whole.headers.get("etag") ?? "";
    expect((await read(url, { "If-None-Match": tag })).status).toBe(304);
  });

  test("a signed URL is refused if any part of it is changed", async () => {
    const url = await urlOf(owner);
    const { id } = await referenceOf(700, "app.docs", owner);
    const [before = "", end = "", signature = ""] = url.split(".").slice(-3);
    expect(before).toContain("access=");
    for (const changed of [
      url.replace(end, String(Number(end) + 1)),
      url.replace(signature, signature.replaceAll(/[a-z]/g, "A")),
      url.replace(id, String(Number(id) + 1)),
      url.replace(/access=[\w-]+/, "access=e30"),
      url.replace(/access=.*/, "access="),
    ]) {
      expect(await refusal(changed)).toEqual(NOT_VALID);
    }
  });

  test("a signed URL expires", async () => {
    const url = await urlOf(owner, "FILE_URL(file, 1)");
    await until(async () => (await read(url)).status === 401);
    expect(await refusal(url)).toEqual([
      401,
      "TOKEN_EXPIRED",
      "The URL has expired; FILE_URL and SHOW EXPORT return new URLs",
    ]);
    for (const seconds of ["0", "-1", "1e9", "'nan'::double"]) {
      const { body } = await server.sql(`SELECT FILE_URL(file, ${seconds}) FROM app.docs`, {
        token: owner,
      });
      expect(body.error?.message).toMatch(/in this session, URLs can be valid for 1 to 604800 s$/);
    }
  });

  test("a signed URL for a file that the signer may not read is not found, whether or not the file exists", async () => {
    const cell = JSON.stringify(await referenceOf(700, "app.docs", owner));
    const missing = JSON.stringify({ id: "1", name: "x" });
    for (const text of [cell, missing]) {
      const [[url] = []] = await server.rows("SELECT FILE_URL($1::TEXT)", {
        params: [text],
        token: ann,
      });
      const id = (JSON.parse(text) as Reference).id;
      expect(await refusal(String(url))).toEqual([404, "FILE_NOT_FOUND", `Cannot find file ${id}`]);
    }
  });

  test("a signed URL ends with its session and with its row", async () => {
    const login = await server.login("una");
    const [first, second] = [await urlOf(login.access_token), await urlOf(owner)];
    expect((await read(first)).status).toBe(200);
    await server.post("/v1/api/auth/logout", {}, { Authorization: `Bearer ${login.access_token}` });
    expect(await refusal(first)).toEqual(NOT_VALID);
    expect((await read(second)).status).toBe(200);
    await server.rows("DELETE FROM app.docs WHERE id = 700", { token: owner });
    expect((await read(second)).status).toBe(404);
  });

  test("a signed URL ends with its service token, even if the name is used again", async () => {
    const sql = "INSERT INTO app.logos (id, file) VALUES (701, FILE('x'))";
    await upload({ sql, parts: { "file:x": textFile("logo") }, token: server.token });
    const create = "CREATE TOKEN badge FOR USER una";
    const secretOf = async (): Promise<string> => String((await server.rows(create))[0]?.[1]);
    const select = "SELECT FILE_URL(file) FROM app.logos WHERE id = 701";
    const [[url] = []] = await server.rows(select, { token: await secretOf() });
    expect((await read(String(url))).status).toBe(200);
    await server.rows("DROP TOKEN badge");
    expect(await refusal(String(url))).toEqual(NOT_VALID);
    await secretOf();
    expect(await refusal(String(url))).toEqual(NOT_VALID);
  });

  test.each([
    ["../x", ".._x"],
    ["..", "file"],
    ["a\\b", "a_b"],
    ["50% ?&#", "50%25%20%3F%26%23"],
  ])("a signed URL contains the name %j in its path as %s", async (name, segment) => {
    const params = [JSON.stringify({ id: "7", name })];
    const [[url] = []] = await server.rows("SELECT FILE_URL($1::TEXT)", { params, token: ann });
    expect(String(url)).toStartWith(`/v1/files/7/${segment}?access=`);
  });

  test.each([
    ["SELECT FILE_URL('nothing')", "the argument is not a file"],
    ["SELECT FILE_URL(1)", "the argument is not a file"],
    [
      "EXECUTE AS USER 'ann' (SELECT FILE_URL(file) FROM app.docs LIMIT 1)",
      "the statement runs as a different user",
    ],
  ])("%s is refused", async (sql, reason) => {
    const { body } = await server.sql(sql);
    expect(body.error?.message).toContain(reason);
  });
});

test("a cookie gives access to files for pages of this server, but not for other pages", async () => {
  const sql = "INSERT INTO app.logos (id, file) VALUES (702, FILE('x'))";
  await upload({ sql, parts: { "file:x": textFile("cookie") }, token: server.token });
  const { id, sub } = await referenceOf(702, "app.logos");
  const path = `/v1/files/app/logos/${sub}/${id}`;
  const cookie = `tidemark_auth=${ann}`;
  const own = await server.get(path, { Cookie: cookie, "Sec-Fetch-Site": "same-origin" });
  expect([own.status, await own.text()]).toEqual([200, "cookie"]);
  for (const site of ["same-site", "cross-site"]) {
    expect((await server.get(path, { Cookie: cookie, "Sec-Fetch-Site": site })).status).toBe(401);
  }
});

test("the client creates URLs of files", async () => {
  const sql = "INSERT INTO app.logos (id, file) VALUES (703, FILE('x'))";
  await upload({ sql, parts: { "file:x": textFile("by the client") }, token: server.token });
  const db = createClient({ url: server.url, auth: { token: ann } });
  const [row] = await db.query<{ file: string }>("SELECT file FROM app.logos WHERE id = 703");
  const url = await db.files.url(row?.file ?? "", { seconds: 60, download: true });
  const answer = await fetch(url);
  expect(answer.headers.get("content-disposition")).toStartWith("attachment");
  expect(await answer.text()).toBe("by the client");
  const mistaken = await db.files.url(7 as never).catch(String);
  expect(mistaken).toContain("the content of a FILE cell");
});
