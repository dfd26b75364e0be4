/**
 * A database with a few callers, in this process. One world holds the rows of all of them; in a
 * lonely one a caller is by itself, and what it is answered there is what it may be answered at
 * all.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseError } from "../../src/base/errors.ts";
import type { Database } from "../../src/database.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { openAt } from "../../tests/support/database.ts";
import { principalFor } from "../../tests/support/principal_for.ts";

export interface Caller {
  readonly name: string;
  readonly role: "user" | "service" | "dba";
}

export const CALLERS: readonly Caller[] = [
  { name: "alice", role: "user" },
  { name: "bob", role: "user" },
  { name: "sam", role: "service" },
  { name: "dora", role: "dba" },
];

/** Whom a caller may stand for by EXECUTE AS, itself left out. */
export function mayActAs({ role }: Caller): readonly Caller[] {
  if (role === "user") return [];
  return CALLERS.filter(
    (other) => other.role !== "dba" && (role === "dba" || other.name !== "sam"),
  );
}

export class World implements AsyncDisposable {
  readonly database: Database;
  readonly #directory: string;

  private constructor(database: Database, directory: string) {
    this.database = database;
    this.#directory = directory;
  }

  static async open(): Promise<World> {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-isolation-"));
    const database = await openAt(directory, { config: 'storage.durability = "relaxed"' });
    const world = new World(database, directory);
    for (const { name, role } of CALLERS) {
      await world.prepare(`CREATE USER ${name} WITH INTERNAL ROLE ${role}`);
    }
    return world;
  }

  /** Runs a text. What is thrown comes back as INTERNAL_ERROR: it is a defect. */
  async ask(caller: string, sql: string): Promise<SqlResponse> {
    try {
      const principal = principalFor(this.database, caller);
      return await this.database.sql.execute(principal, { sql, params: [] });
    } catch (cause) {
      const error = new DatabaseError("INTERNAL_ERROR", String(cause), { cause });
      return { results: [], error };
    }
  }

  /** Runs as root what must succeed. @throws When it is refused. */
  async prepare(sql: string): Promise<void> {
    const { error } = await this.ask("root", sql);
    if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
