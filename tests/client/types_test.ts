/**
 * Compiles code that uses the client as its users do: with their compiler settings rather than the
 * settings of this project, and without the types of the server or its runtime.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runToEnd } from "../support/run_to_end.ts";
import { shareOf } from "../support/thoroughness.ts";

const ROOT = join(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "tidemark-types-"));

afterAll(() => rmSync(folder, { recursive: true }));

const PROGRAM = `
import {
  type Cell, type Change, createClient, type LiveQuery, type RowObject, type SchemaField,
} from "${ROOT}/src/client/mod.ts";

interface Message { id: number; text: string }

export const db = createClient({ url: "http://127.0.0.1:2900", timeout: "10s" });
export const plain: RowObject[] = await db.query("SELECT 1");
export const cell: Cell | undefined = plain[0]?.["id"];
export const messages: Message[] = await db.query<Message>("SELECT id, text FROM t WHERE id = $1", [1n]);
export let last: { change: Change; schema: readonly SchemaField[] | undefined } | undefined;
export const live: LiveQuery = db.live("SELECT * FROM t", {
  onEvent: (event) => {
    if (event.type === "change") last = { change: event.change, schema: undefined };
  },
});
// @ts-expect-error: only the program can know what the rows are.
export const unsaid: Message[] = plain;
// @ts-expect-error: a duration has a unit.
createClient({ url: "", timeout: "10" });
// @ts-expect-error: NULL is null.
await db.query("SELECT $1", [undefined]);
// @ts-expect-error: the parameters of a query are a list.
await db.query("SELECT $1", { params: [1] });
`;

const SETTINGS: readonly (readonly [string, object])[] = [
  ["strict and ES2022", { strict: true, target: "ES2022" }],
  ["strict and the newest", { strict: true, target: "ESNext", exactOptionalPropertyTypes: true }],
  ["strict and NodeNext", { strict: true, module: "NodeNext", moduleResolution: "NodeNext" }],
];

test.each(shareOf(SETTINGS, { oneOf: 3 }))(
  "the client compiles in a program that is %s",
  async (_name, options) => {
    const program = join(folder, "program.mts");
    const project = join(folder, "tsconfig.json");
    const compilerOptions = {
      target: "ES2022",
      module: "Preserve",
      moduleResolution: "Bundler",
      lib: [(options as { target?: string }).target ?? "ES2022", "DOM"],
      types: [],
      noEmit: true,
      allowImportingTsExtensions: true,
      ...options,
    };
    writeFileSync(program, PROGRAM);
    writeFileSync(project, JSON.stringify({ compilerOptions, files: [program] }));
    const { stdout } = await runToEnd(["node_modules/typescript/bin/tsc", "-p", project]);
    expect(stdout).toBe("");
  },
);
