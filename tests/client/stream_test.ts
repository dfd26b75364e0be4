/**
 * Verifies that responses are read as they arrive, both from a scripted server that splits them at
 * every position and from a real server that pauses its statements for a slow reader.
 */
import { expect, test } from "bun:test";
import { createClient, type ExecutionPart, ServerError } from "../../src/client/mod.ts";
import { testThoroughly } from "../support/requirements.ts";
import { ADMIN, PASSWORD, startServer } from "../support/server_process.ts";
import { FakeServer, loginBody, ok } from "./scripted_server.ts";

const SCHEMA = [
  { name: "text", data_type: "Text", index: 0 },
  { name: "list", data_type: { Embedding: 2 }, index: 1 },
];
const ROWS = [
  ['a "quoted" \\ ]}{[ "rows":[ text', [1, 2]],
  [null, [3, 4]],
  ["é", null],
];
const BODY = JSON.stringify({
  results: [
    { row_count: 1, message: 'Inserted "1" row(s)', as_user: "ada", last_seq: 5 },
    { schema: SCHEMA, rows: ROWS, row_count: 3, as_user: "ada" },
    { schema: SCHEMA, rows: [], row_count: 0, as_user: "ada" },
  ],
  status: "success",
  took: 1.5,
});

/** Returns a client whose server sends `bytes` in parts of `length` bytes. */
async function clientOf(bytes: Uint8Array, length: number) {
  const server = new FakeServer();
  server.answer = () => ok(loginBody("t1"));
  const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, index) =>
    bytes.slice(index * length, (index + 1) * length),
  );
  let read = 0;
  let isCancelled = false;
  const body = {
    getReader: () => ({
      read: async () => ({ done: read >= pieces.length, value: pieces[read++] }),
      async cancel() {
        isCancelled = true;
      },
    }),
  };
  const client = createClient({
    url: "http://127.0.0.1:2900",
    values: "wire",
    environment: {
      connect: (url, handlers) => server.connect(url, handlers),
      after: (delayMs, callback) => server.after(delayMs, callback),
      random: () => 0.5,
      async fetch(url, request) {
        const answer = await server.fetch(url, request);
        return url.endsWith("/sql") ? { ...answer, body } : answer;
      },
    },
  });
  await client.session.login("ada", PASSWORD);
  return { client, piecesRead: () => read, isCancelled: () => isCancelled };
}

async function collected(parts: AsyncIterable<ExecutionPart>): Promise<ExecutionPart[]> {
  const all: ExecutionPart[] = [];
  for await (const part of parts) all.push(part);
  return all;
}

test.each([1, 2, 3, 7, 64, 100_000])(
  "a response in pieces of %i bytes is read completely",
  async (length) => {
    const { client } = await clientOf(new TextEncoder().encode(BODY), length);
    const parts = await collected(client.stream("SELECT 1"));
    const rows = parts.flatMap((part) => (part.kind === "rows" ? part.rows : []));
    expect(rows).toEqual(ROWS);
    const entries = parts.flatMap((part) => (part.kind === "entry" ? [part] : []));
    expect(entries.map(({ statement }) => statement)).toEqual([0, 1, 2]);
    expect(entries.map(({ entry }) => entry)).toEqual([
      { row_count: 1, message: 'Inserted "1" row(s)', as_user: "ada", last_seq: 5 },
      { schema: SCHEMA, rows: [], row_count: 3, as_user: "ada" },
      { schema: SCHEMA, rows: [], row_count: 0, as_user: "ada" },
    ] as never);
    expect(parts.at(-1)).toEqual({ kind: "end", tookMs: 1.5 });
  },
);

test("no more is read than requested, and leaving the loop cancels the response", async () => {
  const { client, isCancelled, piecesRead } = await clientOf(new TextEncoder().encode(BODY), 16);
  const parts = client.stream("SELECT 1");
  await parts.next();
  const { length } = new TextEncoder().encode(BODY);
  expect(piecesRead()).toBeLessThan(length / 16 / 2);
  await parts.return();
  expect(isCancelled()).toBe(true);
});

test("the stream throws a failure after the first rows, and an invalid or incomplete response", async () => {
  const failed = BODY.replace(
    /"status".*/,
    '"status":"error","took":1,"error":{"code":"QUERY_TIMEOUT","message":"Too long"}}',
  );
  const bodies = [failed, "<html>", BODY.slice(0, -9)];
  const codes: unknown[] = [];
  for (const body of bodies) {
    const { client } = await clientOf(new TextEncoder().encode(body), 16);
    const error: unknown = await collected(client.stream("SELECT 1")).catch((e: unknown) => e);
    codes.push(error instanceof ServerError ? error.code : (error as Error).name);
  }
  expect(codes).toEqual(["QUERY_TIMEOUT", "http_error", "ConnectionError"]);
});

testThoroughly(
  "while the client does not read, the server does not start the next statement",
  async () => {
    await using server = await startServer();
    await server.setup();
    await server.rows("CREATE NAMESPACE s; CREATE TABLE s.t (id BIGINT PRIMARY KEY)");
    const client = createClient({ url: server.url });
    await client.session.login(ADMIN, PASSWORD);
    const sql = "SELECT n, repeat('x', 1000) FROM generate_series(1, 20000) AS g (n);";
    const parts = client.stream(`${sql} INSERT INTO s.t VALUES (1)`);
    const first = await parts.next();
    expect(first.value).toMatchObject({ kind: "rows", statement: 0 });
    expect(await server.rows("SELECT count(*) FROM s.t")).toEqual([[0]]);
    let count = first.value?.kind === "rows" ? first.value.rows.length : 0;
    for await (const part of parts) if (part.kind === "rows") count += part.rows.length;
    expect(count).toBe(20_000);
    expect(await server.rows("SELECT count(*) FROM s.t")).toEqual([[1]]);
  },
);

test("invalid options throw a TypeError, as for execute", async () => {
  const { client } = await clientOf(new TextEncoder().encode(BODY), 16);
  const parts = client.stream("SELECT 1", [1] as never);
  expect(await parts.next().catch((error: unknown) => error)).toBeInstanceOf(TypeError);
});
