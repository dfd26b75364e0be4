/**
 * A database with a few callers, in this process. One world contains the rows of all of them. In a
 * lonely world, there is only one caller. In the common world, that caller must never receive more
 * than it receives there.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Database } from "../../../src/database.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { openAt } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";

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

/** Lists the users for whom a caller may act by EXECUTE AS, excluding itself. */
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

  /** Runs SQL text. An exception, which is a defect, is returned as INTERNAL_ERROR. */
  async ask(caller: string, sql: string): Promise<SqlResponse> {
    try {
      const principal = principalFor(this.database, caller);
      return await this.database.sql.execute(principal, { sql, params: [] });
    } catch (cause) {
      const error = new DatabaseError("INTERNAL_ERROR", String(cause), { cause });
      return { results: [], error };
    }
  }

  /** Runs SQL text as root; it must succeed. @throws If it is refused. */
  async prepare(sql: string): Promise<void> {
    const { error } = await this.ask("root", sql);
    if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
