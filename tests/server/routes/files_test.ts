/**
 * Tests `GET /v1/files/…`: the files that a caller may read, ranges, entity tags, headers and
 * damaged files.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { silentLog } from "../../../src/base/log.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { SEQ_ZERO } from "../../../src/base/seq.ts";
import type { FileEntry, TableEntry } from "../../../src/catalog/mod.ts";
import { LocalFileAccess } from "../../../src/sql/mod.ts";
import { LocalBlobStore, SHARED_OWNER } from "../../../src/storage/mod.ts";
import { FILE, TEXT } from "../../../src/types/mod.ts";
import { startTestServer, type TestServer } from "../../support/http.ts";
import type { ModelStore } from "../../support/model_store.ts";
import { defineTable } from "../../support/store_fixture.ts";

const CONTENT = "0123456789";
const TAG = `"${new Bun.CryptoHasher("sha256").update(CONTENT).digest("hex")}"`;

let server: TestServer;
let directory: string;
let blobs: LocalBlobStore;
let adaOwner: number;
/** The store with the rows that refer to the files. */
let store: ModelStore;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-files-"));
  blobs = new LocalBlobStore({
    disk: bunDisk,
    dataPath: directory,
    log: silentLog,
    random: systemRandom,
  });
  server = await startTestServer({
    files: (world) => {
      ({ store } = world);
      // No table has policies, so the route must not run a statement.
      const sql = { execute: () => Promise.reject(new Error("a statement ran")) };
      return new LocalFileAccess({ ...world, blobs, sql });
    },
  });
  await server.token();
  await server.token("bob");
  const { catalog } = server;
  adaOwner = catalog.accounts.ownerNumber("ada", { create: true }) ?? 0;
  const bobOwner = catalog.accounts.ownerNumber("bob", { create: true }) ?? 0;
  catalog.createNamespace({ name: "chat", owner: undefined, options: {}, createdAtMs: 0 });
  for (const [tableId, name, kind, accessLevel] of [
    [20, "notes", "user", undefined],
    [21, "public", "shared", "PUBLIC"],
    [22, "private", "shared", "PRIVATE"],
    [23, "events", "stream", undefined],
  ] as const) {
    const options = accessLevel === undefined ? {} : { accessLevel };
    catalog.createTable(table({ tableId, name, kind, options }), SEQ_ZERO);
    store.defineTable(defineTable(tableId, [TEXT, FILE]));
  }
  await add({ fileId: "101", storedName: "101-my-notes.txt" });
  await add({ fileId: "102", owner: bobOwner, storedName: "102-bobs.txt" });
  await add({ fileId: "103", tableId: 21, owner: SHARED_OWNER, storedName: "103-page.html" });
  await add({ fileId: "104", tableId: 22, owner: SHARED_OWNER, storedName: "104-x.txt" });
});

afterAll(async () => {
  expect(server.bugs).toEqual([]);
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

function table(change: Pick<TableEntry, "tableId" | "name" | "kind" | "options">): TableEntry {
  return {
    namespace: "chat",
    columns: [
      { columnId: 1, name: "id", type: TEXT, notNull: true, generatedAlways: false, missing: null },
      { columnId: 2, name: "f", type: FILE, notNull: false, generatedAlways: false, missing: null },
    ],
    primaryKey: [1],
    checks: [],
    schemaVersion: 1,
    nextColumnId: 3,
    createdBy: "ada",
    createdAtMs: 0,
    updatedAtMs: 0,
    ...change,
  };
}

/**
 * Stores a file and its catalog entry as an upload would; by default, the file is ada's in
 * `chat.notes`.
 */
async function add(
  change: Partial<FileEntry> & Pick<FileEntry, "fileId" | "storedName">,
  content: string = CONTENT,
): Promise<FileEntry> {
  const blob = await blobs.stage(new TextEncoder().encode(content));
  const entry: FileEntry = {
    tableId: 20,
    owner: adaOwner,
    columnId: 2,
    keyJson: JSON.stringify([change.fileId]),
    sub: "f0001",
    name: change.storedName.slice(4),
    mime: change.storedName.endsWith("html") ? "text/html" : "text/plain",
    size: blob.size,
    sha256: blob.sha256,
    createdAtMs: 0,
    ...change,
  };
  blobs.publish([{ blob, path: entry }]);
  server.catalog.files.add([entry]);
  const { fileId, owner, tableId } = entry;
  const rows = [[fileId, JSON.stringify({ id: fileId })]];
  store.write({ tableId, owner, operation: "insert", rows });
  return entry;
}

async function get(
  path: string,
  { user = "ada", ...headers }: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const token = await server.token(user);
  return await server.fetch(path, { headers: { Authorization: `Bearer ${token}`, ...headers } });
}

const NOTES = "/v1/files/chat/notes/f0001/101-my-notes.txt";

test("a file is returned with its type, tag, policy and name", async () => {
  const response = await get(NOTES);
  expect(response.status).toBe(200);
  expect(await response.text()).toBe(CONTENT);
  const headers = Object.fromEntries(response.headers);
  expect(headers).toMatchObject({
    "content-type": "text/plain",
    "content-length": "10",
    "content-security-policy": "sandbox; default-src 'none'",
    "content-disposition": "inline; filename=\"my-notes.txt\"; filename*=UTF-8''my-notes.txt",
    etag: TAG,
    "cache-control": "private, no-cache",
    "accept-ranges": "bytes",
    "x-content-type-options": "nosniff",
  });
});

test("an HTML file is never shown inline, and keeps its name", async () => {
  const name = 'é"1%.html';
  await add({ fileId: "105", tableId: 21, owner: SHARED_OWNER, storedName: "105-n.html", name });
  const response = await get("/v1/files/chat/public/f0001/105-n.html");
  expect(response.headers.get("content-disposition")).toBe(
    "attachment; filename=\"__1_.html\"; filename*=UTF-8''%C3%A9%221%25.html",
  );
});

test("the bare id and the alias lead to the same file", async () => {
  expect(await (await get("/v1/files/chat/notes/f0001/101")).text()).toBe(CONTENT);
  expect(await (await get(`/api${NOTES}`)).text()).toBe(CONTENT);
});

type Case = [what: string, path: string, user: string, answer: string];

test.each<Case>([
  ["own file", NOTES, "ada", "200"],
  ["own file, named owner", `${NOTES}?user_id=ada`, "ada", "200"],
  ["another's file", NOTES, "bob", "404 FILE_NOT_FOUND"],
  ["another's file by user_id", `${NOTES}?user_id=ada`, "bob", "403 PERMISSION_DENIED"],
  ["another's file by a service", `${NOTES}?user_id=ada`, "service1", "403 PERMISSION_DENIED"],
  ["another's file by an admin", "/v1/files/chat/notes/f0001/102?user_id=bob", "ada", "200"],
  ["another's id without user_id", "/v1/files/chat/notes/f0001/102", "ada", "404 FILE_NOT_FOUND"],
  ["a user who does not exist", `${NOTES}?user_id=nobody`, "ada", "404 FILE_NOT_FOUND"],
  ["shared, public", "/v1/files/chat/public/f0001/103", "bob", "200"],
  ["shared, private", "/v1/files/chat/private/f0001/104", "bob", "404 TABLE_NOT_FOUND"],
  ["shared, private, service", "/v1/files/chat/private/f0001/104", "service1", "200"],
  [
    "shared with user_id",
    "/v1/files/chat/public/f0001/103?user_id=ada",
    "ada",
    "400 INVALID_INPUT",
  ],
  ["of another table", "/v1/files/chat/notes/f0001/103", "ada", "404 FILE_NOT_FOUND"],
  ["of another folder", "/v1/files/chat/notes/f0002/101", "ada", "404 FILE_NOT_FOUND"],
  ["with another name", "/v1/files/chat/notes/f0001/101-other.txt", "ada", "404 FILE_NOT_FOUND"],
  ["without id", "/v1/files/chat/notes/f0001/x.txt", "ada", "404 FILE_NOT_FOUND"],
  ["unknown table", "/v1/files/chat/nope/f0001/101", "ada", "404 TABLE_NOT_FOUND"],
  ["stream table", "/v1/files/chat/events/f0001/101", "ada", "400 INVALID_INPUT"],
  ["system table", "/v1/files/system/users/f0001/101", "ada", "400 INVALID_INPUT"],
  ["bad folder", "/v1/files/chat/notes/f001/101", "ada", "400 INVALID_INPUT"],
  ["too short", "/v1/files/chat/notes/f0001", "ada", "400 INVALID_INPUT"],
  ["too long", "/v1/files/chat/notes/f0001/101/x", "ada", "400 INVALID_INPUT"],
  ["dots", "/v1/files/chat/notes/f0001/%2e%2e%2fsecret", "ada", "400 INVALID_INPUT"],
  ["a slash", "/v1/files/chat/notes/f0001/a%2fb", "ada", "400 INVALID_INPUT"],
  ["a backslash", "/v1/files/chat/notes/f0001/a%5Cb", "ada", "400 INVALID_INPUT"],
  ["NUL", "/v1/files/chat/notes/f0001/101%00", "ada", "400 INVALID_INPUT"],
  ["no UTF-8", "/v1/files/chat/notes/f0001/%ff", "ada", "400 INVALID_INPUT"],
])("%s", async (_what, path, user, wanted) => {
  const response = await get(path, { user });
  if (wanted === "200") {
    expect([response.status, await response.text()]).toEqual([200, CONTENT]);
    return;
  }
  const { error } = (await response.json()) as { error: { code: string } };
  expect(`${response.status} ${error.code}`).toBe(wanted);
});

test("a file to which no row refers does not exist, and every file requires a token", async () => {
  await add({ fileId: "107", storedName: "107-x.txt" });
  expect((await get("/v1/files/chat/notes/f0001/107")).status).toBe(200);
  const rows = [["107", null]];
  store.write({ tableId: 20, owner: adaOwner, operation: "delete", rows });
  expect((await get("/v1/files/chat/notes/f0001/107")).status).toBe(404);
  expect((await server.fetch(NOTES)).status).toBe(401);
});

test("a single range gets that part; several ranges, or another ETag in If-Range, get the whole file", async () => {
  const part = await get(NOTES, { Range: "bytes=2-4" });
  expect([part.status, await part.text()]).toEqual([206, "234"]);
  expect(part.headers.get("content-range")).toBe("bytes 2-4/10");
  expect(part.headers.get("content-length")).toBe("3");
  const last = await get(NOTES, { Range: "bytes=-2" });
  expect([last.status, await last.text()]).toEqual([206, "89"]);
  const beyond = await get(NOTES, { Range: "bytes=10-" });
  expect([beyond.status, await beyond.json()]).toMatchObject([
    416,
    { error: { code: "RANGE_NOT_SATISFIABLE" } },
  ]);
  expect(beyond.headers.get("content-range")).toBe("bytes */10");
  expect((await get(NOTES, { Range: "bytes=0-1,3-4" })).status).toBe(200);
  expect((await get(NOTES, { Range: "bytes=2-4", "If-Range": TAG })).status).toBe(206);
  expect((await get(NOTES, { Range: "bytes=2-4", "If-Range": '"other"' })).status).toBe(200);
});

test("a matching If-None-Match gets 304 without a body", async () => {
  const response = await get(NOTES, { "If-None-Match": `"other", ${TAG}` });
  expect([response.status, await response.text()]).toEqual([304, ""]);
  expect(response.headers.get("etag")).toBe(TAG);
  expect((await get(NOTES, { "If-None-Match": '"other"' })).status).toBe(200);
});

test("HEAD returns the size without a body", async () => {
  const headers = { Authorization: `Bearer ${await server.token()}` };
  const response = await server.fetch(NOTES, { method: "HEAD", headers });
  expect([response.status, await response.text()]).toEqual([200, ""]);
  expect(response.headers.get("content-length")).toBe("10");
  expect(response.headers.get("etag")).toBe(TAG);
});

test("an empty file is returned as an empty body", async () => {
  await add({ fileId: "106", storedName: "106-e.txt" }, "");
  const response = await get("/v1/files/chat/notes/f0001/106");
  expect([response.status, await response.text()]).toEqual([200, ""]);
});

test.each<[string, string, string]>([
  ["another byte", "201", "012345678X"],
  ["a byte less", "202", "012345678"],
  ["a byte more", "203", "0123456789X"],
])("damage is never served: %s", async (_what, fileId, content) => {
  const entry = await add({ fileId, storedName: `${fileId}-d.txt` });
  const { owner, storedName, sub, tableId } = entry;
  writeFileSync(join(directory, "files", `${tableId}`, `${owner}`, sub, storedName), content);
  const response = await get(`/v1/files/chat/notes/f0001/${fileId}`, { Range: "bytes=0-1" });
  expect(response.status).toBe(500);
  const body = (await response.json()) as { error: Record<string, unknown> };
  expect(body.error).toMatchObject({ code: "DATA_DAMAGED" });
  expect(body.error["message"]).toContain(fileId);
});

test("missing bytes are reported as damage", async () => {
  blobs.remove(await add({ fileId: "108", storedName: "108-x.txt" }));
  expect((await get("/v1/files/chat/notes/f0001/108")).status).toBe(500);
});
