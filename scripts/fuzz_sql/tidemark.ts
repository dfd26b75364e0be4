/**
 * Tidemark in this process, on a real directory, as the scripts ask it that compare its answers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../src/auth/mod.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { openAt } from "../../tests/support/database.ts";

export interface TidemarkSide extends AsyncDisposable {
  /** Runs a text. What is thrown comes back as INTERNAL_ERROR: it is a defect. */
  readonly ask: (sql: string) => Promise<SqlResponse>;
  /** Runs what must succeed. @throws When it is refused. */
  readonly prepare: (sql: string) => Promise<void>;
}

/** Opens a database in a directory of its own, which goes with it. */
export async function openTidemark(): Promise<TidemarkSide> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-fuzz-"));
  const database = await openAt(directory, { config: 'storage.durability = "relaxed"' });
  const principal: Principal = {
    userId: "fuzz",
    role: "dba",
    owner: database.catalog.ownerNumber("fuzz", { create: true }),
    actorId: "fuzz",
    actorRole: "dba",
    isImpersonated: false,
    sessionId: "",
  };
  const ask = async (sql: string): Promise<SqlResponse> => {
    try {
      return await database.sql.execute(principal, { sql, params: [] });
    } catch (cause) {
      return responseOfDefect(cause);
    }
  };
  return {
    ask,
    async prepare(sql) {
      const { error } = await ask(sql);
      if (error !== undefined) throw new Error(`Cannot prepare with ${sql}`, { cause: error });
    },
    async [Symbol.asyncDispose]() {
      await database.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function responseOfDefect(cause: unknown): SqlResponse {
  const { message, stack = "" } = cause instanceof Error ? cause : new Error(String(cause));
  const place = stack.split("\n").slice(1, 5).join("\n");
  return {
    results: [],
    error: new DatabaseError("INTERNAL_ERROR", `${message}\n${place}`, { cause }),
  };
}
