/** Runs PostgreSQL and SQLite under a soak load, each behind its front end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPostgres } from "../../../tests/support/postgres.ts";
import { signToken } from "../systems/bearer.ts";
import { startFront } from "../systems/start_systems.ts";
import { familyOf, RefusedStatement, type SoakTarget } from "./target.ts";
import { openFollower } from "./tidemark.ts";

const SECRET = "a secret for the soak alone, 32 bytes or more";
const TOKEN_SECONDS = 86_400;

export async function startPeer(kind: "postgres" | "sqlite"): Promise<SoakTarget> {
  await using opened = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "tidemark-soak-"));
  opened.defer(() => rmSync(directory, { recursive: true, force: true }));
  const postgres = kind === "postgres" ? await startPostgres() : undefined;
  opened.defer(() => postgres?.stop());
  const address = postgres?.url ?? join(directory, "sqlite.db");
  const front = await startFront(kind, [kind, address, SECRET]);
  opened.defer(() => front.stop());
  const claims = { sub: "soak", exp: Math.floor(Date.now() / 1000) + TOKEN_SECONDS };
  const headers = { Authorization: `Bearer ${signToken(claims, SECRET)}` };

  async function ask(path: string, body: unknown): Promise<unknown> {
    const answer = await fetch(`${front.url}${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    if (answer.ok) return answer.json();
    throw new RefusedStatement(`${answer.status} ${await answer.text()}`);
  }
  const closing = opened.move();
  return {
    name: postgres === undefined ? "SQLite" : "PostgreSQL",
    async makeTable(table) {
      const columns = "(id BIGINT PRIMARY KEY, room INT, author TEXT, body TEXT)";
      await ask("/bulk", { sql: `CREATE TABLE ${table} ${columns}` });
    },
    nameOf: (table) => table,
    async change(table, sql) {
      await ask("/change", { table, sql });
    },
    query: async (sql) => ((await ask("/query", { sql })) as { rows: unknown[] }).rows,
    follow: (table) =>
      openFollower(`${front.url.replace("http", "ws")}/ws`, {
        headers,
        message: `table:${table}`,
        beginsAfter: "open",
      }),
    pids: () => [front.pid, ...(postgres === undefined ? [] : familyOf(postgres.pid))],
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}
