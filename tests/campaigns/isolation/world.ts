/**
 * Opens an in-process database with a few callers, called a world. The common world contains the
 * rows of all callers. A lonely world contains only one caller, who must never receive more in the
 * common world than in the lonely one.
 *
 * The worlds' wall clock moves only when the campaign moves it, so that the age of a row depends
 * on the seed alone. Timers use the system's clock.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Database } from "../../../src/database.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
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

/** Lists the other users for whom a caller may act through EXECUTE AS. */
export function mayActAs({ role }: Caller): readonly Caller[] {
  if (role === "user") return [];
  return CALLERS.filter(
    (other) => other.role !== "dba" && (role === "dba" || other.name !== "sam"),
  );
}

/** The wall clock of all worlds in a round. */
export class RoundClock implements Clock {
  #nowMs = Date.UTC(2026, 6, 1);

  /** Advances the wall clock. */
  pass(ms: number): void {
    this.#nowMs += ms;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs();
  }

  after(...timer: Parameters<Clock["after"]>): ReturnType<Clock["after"]> {
    return systemClock.after(...timer);
  }

  yield(): Promise<void> {
    return systemClock.yield();
  }
}

/** The dependencies with which a world is opened. */
export interface WorldParts {
  readonly clock: Clock;
  /** Receives every statement before it runs. */
  readonly note?: ((caller: string, sql: string) => void) | undefined;
}

export class World implements AsyncDisposable {
  readonly database: Database;
  readonly #directory: string;
  readonly #note: WorldParts["note"];

  private constructor(database: Database, directory: string, note: WorldParts["note"]) {
    this.database = database;
    this.#directory = directory;
    this.#note = note;
  }

  static async open({ clock, note }: WorldParts): Promise<World> {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-isolation-"));
    const config = `storage.durability = "relaxed"\n${SMALL_FILES}`;
    const database = await openAt(directory, { config, clock });
    const world = new World(database, directory, note);
    for (const { name, role } of CALLERS) {
      await world.prepare(`CREATE USER ${name} WITH INTERNAL ROLE ${role}`);
    }
    return world;
  }

  /** Runs SQL. An exception is always a defect, and is returned as INTERNAL_ERROR. */
  async ask(caller: string, sql: string): Promise<SqlResponse> {
    this.#note?.(caller, sql);
    try {
      const principal = principalFor(this.database, caller);
      return await this.database.sql.execute(principal, { sql, params: [] });
    } catch (cause) {
      const error = new DatabaseError("INTERNAL_ERROR", String(cause), { cause });
      return { results: [], error };
    }
  }

  /**
   * Runs SQL as root. The SQL must succeed.
   * @throws If the SQL is refused.
   */
  async prepare(sql: string): Promise<void> {
    const { error } = await this.ask("root", sql);
    if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
