/**
 * Verifies that the server delivers the client library as a single module to pages of any origin
 * and to every runtime, with types that compile under any compiler settings.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { runNode } from "../support/run_node.ts";
import { runToEnd } from "../support/run_to_end.ts";
import {
  ADMIN,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";

let server: ServerProcess;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tidemark-module-"));
  server = await startReadyServer({ config: { server: { ui_enabled: false } } });
  for (const [path, name] of [
    ["client.js", "client.mjs"],
    ["client.js", "client.js"],
    ["client.d.ts", "client.d.ts"],
  ] as const) {
    writeFileSync(join(folder, name), await (await server.get(`/v1/${path}`)).text());
  }
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

test.each([
  ["/v1/client.js", "text/javascript; charset=utf-8", "./client.d.ts"],
  ["/v1/client.d.ts", "application/typescript; charset=utf-8", null],
])("%s is available to every origin, and is not sent again", async (path, type, types) => {
  const answer = await server.get(path, { Origin: "http://elsewhere.test" });
  expect(answer.status).toBe(200);
  const { headers } = answer;
  expect(headers.get("content-type")).toBe(type);
  expect(headers.get("access-control-allow-origin")).toBe("*");
  expect(headers.get("cross-origin-resource-policy")).toBe("cross-origin");
  expect(headers.get("cache-control")).toBe("public, max-age=300");
  expect(headers.get("x-typescript-types")).toBe(types);
  const tag = headers.get("etag") ?? "";
  expect(tag).toMatch(/^W\/"[0-9a-f]{64}"$/);
  for (const given of [tag, tag.slice(2), `"other", ${tag}`, "*"]) {
    const again = await server.get(path, { "If-None-Match": given });
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", tag]);
    expect(again.headers.get("access-control-allow-origin")).toBe("*");
  }
  const other = await server.get(path, { "If-None-Match": 'W/"0"' });
  expect(other.status).toBe(200);
  expect((await fetch(server.url + path, { method: "HEAD" })).headers.get("etag")).toBe(tag);
});

test("an allowed origin with credentials also receives the module", async () => {
  const cors = { allowed_origins: ["http://page.test"], allow_credentials: true };
  await using other = await startReadyServer({ config: { "security.cors": cors } });
  for (const [origin, allowed] of [
    ["http://page.test", "http://page.test"],
    ["http://elsewhere.test", "*"],
  ] as const) {
    const { headers } = await other.get("/v1/client.js", { Origin: origin });
    expect(headers.get("access-control-allow-origin")).toBe(allowed);
  }
});

test("the module has no imports and is small", async () => {
  const text = await Bun.file(join(folder, "client.js")).text();
  expect(text).not.toMatch(/\bimport\b/);
  // About 270 of these bytes order live rows by collations and sort keys, as the server does.
  expect(Bun.gzipSync(text).length).toBeLessThan(25_500);
  // When an error is not caught, Node prints the entire line that threw it, so lines must be
  // short.
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThan(1000);
});

const SCRIPT = `
import { ConnectionError, createClient, ServerError } from "./client.mjs";
const [url, user, password] = process.argv.slice(2);
const db = createClient({ url, auth: { user, password }, timeout: "50000m" });
const bytes = Uint8Array.of(1, 2);
const [row] = await db.query(
  "SELECT $1::timestamp AS at, $2::jsonb AS j, $3::bytea AS b, 2 = ANY($4) AS has",
  [new Date(5), { a: [1] }, bytes, [1, 2]],
);
console.log(JSON.stringify([row.at instanceof Date, row.at, row.j, [...row.b], row.has]));
for (const call of [
  () => db.query("SELEC"),
  () => db.execute("SELECT 1", [1]),
  () => createClient({ url: "http://127.0.0.1:1", auth: { user, password } }).query("SELECT 1", [], {}),
]) {
  const error = await call().catch((each) => each);
  console.log(error.name, error instanceof ServerError, error instanceof ConnectionError);
}
try {
  const live = db.live("SELECT id FROM system.users", { onRows: (rows) => { console.log("live"); db.close(); } });
} catch (error) {
  console.log(error.message.slice(0, 89));
}
`;

const SAID = [
  '[true,"1970-01-01T00:00:00.005Z",{"a":[1]},[1,2],true]',
  "ServerError true false",
  "TypeError false false",
  "ConnectionError false true",
];

testUnless(programMissing("node", "nodejs"))(
  "the module runs in Node, and reports a version without live queries",
  async () => {
    writeFileSync(
      join(folder, "script.mjs"),
      SCRIPT.replace('http://127.0.0.1:1", ', 'http://127.0.0.1:1", maxRetries: 0, '),
    );
    const { stdout } = await runNode(join(folder, "script.mjs"), server.url, ADMIN, PASSWORD);
    const version = await runNode("-p", "typeof WebSocket");
    const last = version.stdout.startsWith("function")
      ? "live"
      : "Cannot follow the query: this runtime has no WebSocket; use Node 22 or later (Node 20 and";
    expect(stdout.trim().split("\n")).toEqual([...SAID, last]);
  },
);

const PROGRAM = `
import {
  type Cell, type Change, type Client, type ClientOptions, ConnectionError, createClient, type LiveQuery,
  type Parameter, type RowObject, type SchemaField, ServerError, type Session,
} from "./client.js";

interface Message { id: number; text: string; at: Date }

export const db: Client = createClient({ url: "http://127.0.0.1:2900", auth: async () => "t", timeout: "10s" });
export const session: Session = db.session;
export const options: ClientOptions = { url: "", auth: { user: "a", password: "b" } };
export const plain: RowObject[] = await db.query("SELECT 1");
export const cell: Cell = plain[0]?.["id"];
const params: Parameter[] = [1n, new Date(), new Uint8Array(1), { a: [1] }, [1, 2], null];
export const messages: Message[] = await db.query<Message>("SELECT id, text FROM t WHERE id = $1", params);
export let last: { change: Change; schema: readonly SchemaField[] | undefined } | undefined;
export const live: LiveQuery<Message> = db.live<Message>("SELECT * FROM t", {
  orderBy: (left, right) => left.id - right.id,
  onRows: (rows) => rows.map(({ at }) => at.toISOString()),
  onEvent: (event) => {
    if (event.type === "change") event.change.old_values?.[0]?.at?.getTime();
  },
  onError: (error) => { if (error instanceof ServerError) console.log(error.code, error.status); },
});
export const error: Error = new ConnectionError("gone");
export const first: string | undefined = live.rows[0]?.text;
// @ts-expect-error: only the program knows the type of the rows.
export const unsaid: Message[] = plain;
// @ts-expect-error: there is no such option.
createClient({ url: "", token: "t" });
// @ts-expect-error: a cell may be null.
await db.query("SELECT $1", [undefined]);
// @ts-expect-error: options are not a list.
await db.execute("SELECT $1", [1]);
`;

const PROGRAMS: readonly (readonly [what: string, options: Readonly<Record<string, unknown>>])[] = [
  ["strict and ES2022", { strict: true, target: "ES2022", lib: ["ES2022", "DOM"] }],
  [
    "with the strictest settings",
    {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noPropertyAccessFromIndexSignature: true,
      isolatedModules: true,
      verbatimModuleSyntax: true,
    },
  ],
  ["NodeNext", { strict: true, module: "NodeNext", moduleResolution: "NodeNext" }],
];

testThoroughly.each(PROGRAMS)("its types compile in a program that is %s", async (_name, given) => {
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(join(folder, "program.ts"), PROGRAM);
  const compilerOptions = {
    target: "ESNext",
    module: "Preserve",
    moduleResolution: "Bundler",
    lib: ["ESNext", "DOM"],
    types: [],
    noEmit: true,
    skipLibCheck: false,
    ...given,
  };
  const project = join(folder, "tsconfig.json");
  writeFileSync(project, JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const { stdout } = await runToEnd(["node_modules/typescript/bin/tsc", "-p", project]);
  expect(stdout).toBe("");
});
