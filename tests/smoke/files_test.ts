/**
 * Files that are uploaded with a statement and downloaded by their owner (chapter 6 of the wire
 * contract).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type ServerProcess, type SqlBody, startReadyServer } from "../support/server_process.ts";

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

describe("an upload", () => {
  test("returns a reference, and the bytes can be downloaded", async () => {
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

  test("is sent as an attachment if a browser could run it", async () => {
    const html = new File(["<script>"], "x.html", { type: "text/html" });
    await upload({ sql: INSERT, parts: { params: '[2, "two"]', "file:doc": html } });
    const { id, sub } = await referenceOf(2);
    const answer = await fetchFile(`/v1/files/app/docs/${sub}/${id}`);
    expect(answer.headers.get("Content-Disposition")).toMatch(/^attachment/);
  });

  test("can be requested again by its tag, and in parts", async () => {
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

  test("is removed with its row", async () => {
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

  test("of a shared table is for all who may read it, and has no user", async () => {
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

  test("of a user is for a dba who names that user", async () => {
    const { id, sub } = await referenceOf(1);
    const path = `/v1/files/app/docs/${sub}/${id}`;
    const headers = { Authorization: `Bearer ${server.token}` };
    expect((await server.get(path, headers)).status).toBe(404);
    expect((await server.get(`${path}?user_id=ann`, headers)).status).toBe(200);
  });

  test("survives a kill", async () => {
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

  test.each(cases)("%s", async (_name, options, status, code) => {
    const before = storedFiles();
    const answer = await upload(options);
    expect([answer.status, answer.body.error?.code]).toEqual([status, code]);
    expect(storedFiles()).toEqual(before);
    expect(await server.rows("SELECT id FROM app.docs WHERE id >= 90", { token: ann })).toEqual([]);
  });

  test("that is only checked", async () => {
    const before = storedFiles();
    const parts = { params: '[90,"x"]', check: "true", "file:doc": textFile("x") };
    const { body } = await upload({ sql: INSERT, parts });
    expect(body.results).toMatchObject([{ row_count: 0, message: "checked" }]);
    expect(storedFiles()).toEqual(before);
    expect(await server.rows("SELECT id FROM app.docs WHERE id >= 90", { token: ann })).toEqual([]);
  });

  test("a placeholder without multipart", async () => {
    const { status, body } = await server.sql(INSERT, { token: ann, params: [90, "x"] });
    expect([status, body.error?.code]).toEqual([400, "INVALID_INPUT"]);
  });
});
