/**
 * Runs a prepared statement for one caller and makes its result entry.
 */
import type { Principal } from "../auth/mod.ts";
import { assert } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Value } from "../types/mod.ts";
import type { StatementResult, UploadedFile } from "./engine.ts";
import type { SqlEnvironment } from "./environment.ts";
import type { DmlOutcome } from "./execute/dml.ts";
import { type Deadline, drain } from "./execute/operator.ts";
import type { Transaction } from "./execute/transaction.ts";
import { Uploads } from "./files.ts";
import { newRun } from "./new_run.ts";
import type { Prepared, PreparedDml, PreparedQuery } from "./prepared.ts";

export interface RunOptions {
  readonly principal: Principal;
  readonly namespace: string;
  readonly transaction: Transaction | undefined;
  /** Parameters, then lifted literals. */
  readonly parameters: readonly Value[];
  readonly files: ReadonlyMap<string, UploadedFile> | undefined;
  /** Binds the statement again if a definition changed since. @throws {DatabaseError} */
  renewed?(): Prepared;
}

const VERBS = { insert: "Inserted", update: "Updated", delete: "Deleted" } as const;

export class StatementRunner {
  readonly #environment: SqlEnvironment;
  readonly #deadline: Deadline;

  constructor(environment: SqlEnvironment, deadline: Deadline) {
    this.#environment = environment;
    this.#deadline = deadline;
  }

  /** @throws {DatabaseError} */
  run(prepared: Prepared, options: RunOptions): Promise<StatementResult> {
    if (prepared.kind === "query") return this.#query(prepared, options);
    return this.#change(prepared, options);
  }

  async #query(prepared: PreparedQuery, options: RunOptions): Promise<StatementResult> {
    if (options.files !== undefined) refuseExtra(options.files, []);
    const { clock, limits, store } = this.#environment;
    const run = newRun(this.#environment, {
      ...options,
      slots: options.parameters,
      atSeq: store.visibleSeq,
      deadline: this.#deadline,
    });
    const { cells } = prepared;
    const rows: unknown[][] = [];
    await drain(prepared.build(run), {
      clock,
      deadline: this.#deadline,
      onBatch: (batch) => {
        run.memory.takeBatch(batch);
        cells.append(batch, rows);
        if (limits.resultRowsMax > 0 && rows.length > limits.resultRowsMax) {
          throw new DatabaseError(
            "RESULT_TOO_LARGE",
            `Cannot answer with more than ${limits.resultRowsMax} rows`,
            { hint: "add LIMIT, or raise limits.max_result_rows" },
          );
        }
      },
    });
    return {
      schema: prepared.fields ?? [],
      rows,
      rowCount: rows.length,
      asUser: options.principal.userId,
    };
  }

  async #change(given: PreparedDml, options: RunOptions): Promise<StatementResult> {
    const { catalog, store } = this.#environment;
    let prepared = given;
    let uploads = Uploads.none;
    // A statement runs in the turn in which it was bound: a definition may change in any other.
    const hasFiles = options.files !== undefined || given.files.length > 0;
    if (hasFiles) {
      uploads = await this.#stage(given, options);
    }
    try {
      if (hasFiles) prepared = renewedDml(given, options);
      const principal = ownerOfWrites(options.principal, (userId) =>
        catalog.ownerNumber(userId, { create: true }),
      );
      const run = newRun(this.#environment, {
        ...options,
        principal,
        slots: hasFiles ? [...options.parameters, ...uploads.references] : options.parameters,
        atSeq: store.appliedSeq,
        uploads: hasFiles ? uploads : undefined,
        deadline: this.#deadline,
      });
      const outcome = prepared.program(run);
      const lastSeq = outcome.applied.commit?.lastSeq;
      if (lastSeq !== undefined) await store.durable(lastSeq);
      uploads.keep();
      return this.#entry(prepared, outcome, options.principal.userId);
    } catch (error) {
      // The rows may be there after the restart, and then name the files.
      const isUnknown = error instanceof DatabaseError && error.condition === "COMMIT_UNKNOWN";
      if (isUnknown) uploads.keep();
      else uploads.discard();
      throw error;
    }
  }

  async #stage({ files }: PreparedDml, options: RunOptions): Promise<Uploads> {
    if (options.files === undefined) {
      throw new DatabaseError(
        "INVALID_INPUT",
        "Cannot read FILE: send the statement as multipart/form-data",
      );
    }
    refuseExtra(options.files, files);
    return Uploads.stage(this.#environment, { parts: options.files, names: files });
  }

  #entry(prepared: PreparedDml, outcome: DmlOutcome, asUser: string): StatementResult {
    const { applied, returned, rowCount } = outcome;
    const lastSeq = applied.commit?.lastSeq ?? null;
    if (prepared.fields === undefined || returned === undefined) {
      const message = `${VERBS[prepared.kind]} ${rowCount} row(s)`;
      return { rowCount, message, asUser, lastSeq };
    }
    const rows: unknown[][] = [];
    prepared.cells.append(returned, rows);
    return { schema: prepared.fields, rows, rowCount, asUser, lastSeq };
  }
}

/** The statement as it is to be run after a wait. @throws {DatabaseError} */
function renewedDml(given: PreparedDml, options: RunOptions): PreparedDml {
  const prepared = options.renewed?.() ?? given;
  assert(prepared.kind !== "query", "a text stays the statement that it is");
  return prepared;
}

/** The first write of a user gives it the number that owns its rows. */
function ownerOfWrites(
  principal: Principal,
  numberOf: (userId: string) => number | undefined,
): Principal {
  if (principal.owner !== undefined) return principal;
  return { ...principal, owner: numberOf(principal.userId) };
}

function refuseExtra(parts: ReadonlyMap<string, UploadedFile>, names: readonly string[]): void {
  for (const name of parts.keys()) {
    if (names.includes(name)) continue;
    throw new DatabaseError(
      "EXTRA_FILE",
      `Cannot use file part "${name}": the statement has no FILE('${name}')`,
    );
  }
  for (const name of names) {
    if (parts.has(name)) continue;
    throw new DatabaseError(
      "MISSING_FILE",
      `Cannot read FILE('${name}'): the request has no part "file:${name}"`,
    );
  }
}
