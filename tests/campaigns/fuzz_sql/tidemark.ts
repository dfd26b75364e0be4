/** Runs Tidemark in-process, on a real directory, for the scripts that compare its results. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { SqlResponse } from "../../../src/sql/mod.ts";
import { openAt } from "../../support/database.ts";

export interface TidemarkSide extends AsyncDisposable {
  /** Runs SQL. An exception is always a defect, and is returned as INTERNAL_ERROR. */
  readonly ask: (sql: string) => Promise<SqlResponse>;
  /**
   * Runs SQL that must succeed.
   * @throws If the SQL is refused.
   */
  readonly prepare: (sql: string) => Promise<void>;
  /**
   * Creates an index. Returns false if the index is refused.
   *
   * @throws If the refusal is a defect.
   */
  readonly mayIndex: (sql: string) => Promise<boolean>;
}

/** Opens a database in a temporary directory. Closing the database also removes the directory. */
export async function openTidemark(): Promise<TidemarkSide> {
  const directory = mkdtempSync(join(tmpdir(), "tidemark-fuzz-"));
  const database = await openAt(directory, { config: 'storage.durability = "relaxed"' });
  const principal: Principal = {
    userId: "fuzz",
    role: "dba",
    owner: database.catalog.accounts.ownerNumber("fuzz", { create: true }),
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
    async mayIndex(sql) {
      const { error } = await ask(sql);
      if (error?.code === "INTERNAL_ERROR")
        throw new Error(`Cannot index: ${sql}`, { cause: error });
      return error === undefined;
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
