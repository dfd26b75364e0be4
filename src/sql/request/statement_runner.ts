/**
 * Runs a prepared statement for one caller and makes its result entry.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { Value } from "../../types/mod.ts";
import { noticesOf } from "../bind/stored_numbers.ts";
import type { StatementResult, UploadedFile } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { Profile } from "../execute/run/profile.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { Sleeps } from "../execute/run/sleeps.ts";
import type { Transaction } from "../execute/run/transaction.ts";
import { Uploads, type UploadWorld } from "../files/uploads.ts";
import { type NotedRun, newRun, type RunWorld } from "../prepare/new_run.ts";
import type { Prepared, PreparedDml, PreparedQuery } from "../prepare/prepared.ts";
import type { QueryReaders } from "../readers/query_readers.ts";
import type { QuerySource } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import { beginChange } from "./change_rows.ts";
import { CollectedRows } from "./collected_rows.ts";
import { finishChange } from "./long_changes.ts";
import type { MemoryTurns } from "./memory_turns.ts";
import { readRows } from "./query_rows.ts";

export interface RunOptions {
  readonly principal: Principal;
  readonly namespace: string;
  readonly transaction: Transaction | undefined;
  /** Parameters, then lifted literals. */
  readonly parameters: readonly Value[];
  readonly files: ReadonlyMap<string, UploadedFile> | undefined;
  /** Of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** The source of the statement; absent if it has to run on the event loop. */
  source?(): QuerySource | undefined;
  /** Binds the statement again if a definition changed since. @throws {DatabaseError} */
  renewed?(): Prepared;
}

export interface RunnerOptions {
  readonly ledger: RequestLedger;
  /** Whether somebody takes rows that are too many to be held; else all are in the result. */
  readonly isStreamed: boolean;
  /** Where those go; asked for when a query is longer than a turn. */
  channelFor(): AnswerChannel;
}

const VERBS = { insert: "Inserted", update: "Updated", delete: "Deleted" } as const;

/** What most changes answer, so that it is the same text each time. */
const MESSAGES_OF_ONE = {
  insert: "Inserted 1 row(s)",
  update: "Updated 1 row(s)",
  delete: "Deleted 1 row(s)",
} as const;

/** What statements of rows run in. */
export interface StatementWorld extends RunWorld, UploadWorld, Pick<SqlEnvironment, "writeGates"> {
  /** Absent if every query runs on the event loop. */
  readonly readers: QueryReaders | undefined;
  readonly memoryTurns: MemoryTurns;
}

export class StatementRunner {
  readonly #world: StatementWorld;
  readonly #options: RunnerOptions;
  #isWaiting = false;
  /** Whether the statement already ran a second time because of the storage limit. */
  #hasRunTwice = false;

  constructor(world: StatementWorld, options: RunnerOptions) {
    this.#world = world;
    this.#options = options;
  }

  /** Whether what `run` has begun can still be ended: it does not only wait for the disk. */
  get isUnderWay(): boolean {
    return !this.#isWaiting;
  }

  /** When a statement that begins now has to leave the event loop; undefined if it cannot. */
  get #turnEndMs(): number | undefined {
    const { clock, readers } = this.#world;
    return readers === undefined ? undefined : clock.monotonicMs() + TURN_MS_MAX;
  }

  /** @throws {DatabaseError} */
  run(prepared: Prepared, options: RunOptions): StatementResult | Promise<StatementResult> {
    this.#hasRunTwice = false;
    if (prepared.kind === "query") return this.#query(prepared, options);
    if (options.files !== undefined || prepared.files.length > 0) {
      return this.#changeWithFiles(prepared, options);
    }
    return this.#change(prepared, options, Uploads.none);
  }

  #query(prepared: PreparedQuery, options: RunOptions): StatementResult | Promise<StatementResult> {
    if (options.files !== undefined) refuseExtra(options.files, []);
    const { store } = this.#world;
    const { namespace, parameters, principal, transaction } = options;
    const sleeps = this.#sleepsOf(prepared, transaction);
    const run = newRun(this.#world, {
      principal,
      namespace,
      slots: parameters,
      atSeq: store.visibleSeq,
      transaction,
      profile: options.profile,
      ledger: this.#options.ledger,
      turnEndMs: options.profile === undefined ? this.#turnEndMs : undefined,
      sleeps,
    });
    const { cells, readRow } = prepared;
    if (readRow !== undefined && options.profile === undefined) {
      const row = readRow(run);
      return queryResult(prepared, row === undefined ? [] : [cells.cellsOf(row)], options);
    }
    return this.#drained(prepared, options, { run, sleeps });
  }

  #sleepsOf(
    { requirements }: PreparedQuery,
    transaction: Transaction | undefined,
  ): Sleeps | undefined {
    if (requirements.every(({ action }) => action !== "sleep")) return undefined;
    const { clock, limits } = this.#world;
    // The next statement of a transaction whose time is over is refused.
    const msMax = (): number =>
      transaction === undefined
        ? Number.POSITIVE_INFINITY
        : Math.max(0, transaction.startedAtMs + limits.transactionTimeoutMs - clock.monotonicMs()) +
          1;
    return new Sleeps({ clock, ledger: this.#options.ledger, msMax });
  }

  #drained(
    prepared: PreparedQuery,
    options: RunOptions,
    { run, sleeps }: { run: NotedRun; sleeps: Sleeps | undefined },
  ): StatementResult | Promise<StatementResult> {
    const { clock, limits } = this.#world;
    const { ledger } = this.#options;
    const { cells } = prepared;
    const { principal } = options;
    const isMeasured = options.profile !== undefined;
    // Rows that were sent could not be forgotten after a sleep.
    const isStreamed = this.#options.isStreamed && !isMeasured && sleeps === undefined;
    const collected = new CollectedRows({
      cells,
      head: { schema: prepared.fields ?? [], asUser: principal.userId },
      // A reader is given its rows before they are many, so these need no budget.
      memory: isStreamed ? run.memory.elastic() : run.memory,
      rowsMax: limits.resultRowsMax,
      isCounted: isMeasured,
    });
    const further = readRows({
      prepared,
      run,
      sleeps,
      ledger,
      namespace: options.namespace,
      collected,
      clock,
      memoryTurns: this.#world.memoryTurns,
      readers: isMeasured ? undefined : this.#world.readers,
      source: () => options.source?.(),
      channel: isStreamed ? () => this.#channel() : undefined,
      turns: {
        ...(isStreamed && {
          isEnough: () => collected.areMany,
          onTurn: () => collected.send(this.#channel()),
        }),
        // A statement that sends no rows still ends when its client leaves.
        ...(this.#options.isStreamed && !isStreamed && { onTurn: () => void this.#channel() }),
      },
    });
    return further === undefined ? collected.finish() : further.then(() => collected.finish());
  }

  #channel(): AnswerChannel {
    const channel = this.#options.channelFor();
    channel.watchReader();
    return channel;
  }

  /** Begins in the turn in which the statement was bound: a definition may change in any other. */
  #change(
    prepared: PreparedDml,
    options: RunOptions,
    uploads: Uploads,
  ): StatementResult | Promise<StatementResult> {
    const { storageQuota, store, writeGates } = this.#world;
    const isMetered = storageQuota !== undefined && options.transaction === undefined;
    if (
      writeGates.isClosed(prepared.target.tableId) ||
      (isMetered && !storageQuota.isReady(options.principal.owner))
    ) {
      return this.#changeLater(prepared, options, uploads);
    }
    let outcome: DmlOutcome | Promise<DmlOutcome>;
    try {
      outcome = this.#begin(prepared, options, uploads);
    } catch (error) {
      if (!this.#isRunAgain(error, options)) throw error;
      return this.#changeLater(prepared, options, uploads);
    }
    if (outcome instanceof Promise) {
      return this.#changeLong(outcome, { prepared, options, uploads });
    }
    this.#isWaiting = true;
    const result = changeResult(prepared, outcome, options);
    const lastSeq = outcome.applied.commit?.lastSeq;
    return lastSeq === undefined ? result : store.durable(lastSeq).then(() => result);
  }

  async #changeLater(
    given: PreparedDml,
    options: RunOptions,
    uploads: Uploads,
  ): Promise<StatementResult> {
    const { storageQuota, writeGates } = this.#world;
    const { ledger } = this.#options;
    if (options.transaction === undefined) {
      await storageQuota?.ready(options.principal.owner, ledger);
    }
    await writeGates.opened([given.target.tableId], ledger);
    return await this.#change(renewedDml(given, options), options, uploads);
  }

  /** Whether the statement was refused for lack of storage that may since have become free. */
  #isRunAgain(error: unknown, { principal, transaction }: RunOptions): boolean {
    const { storageQuota } = this.#world;
    if (storageQuota === undefined || transaction !== undefined || this.#hasRunTwice) return false;
    if (!(error instanceof DatabaseError) || error.condition !== "LIMIT_EXCEEDED") return false;
    this.#hasRunTwice = !storageQuota.isReady(principal.owner);
    return this.#hasRunTwice;
  }

  async #changeLong(
    begun: Promise<DmlOutcome>,
    {
      options,
      prepared,
      uploads,
    }: { prepared: PreparedDml; options: RunOptions; uploads: Uploads },
  ): Promise<StatementResult> {
    const { clock, store, writeGates } = this.#world;
    let outcome: DmlOutcome;
    try {
      outcome = await finishChange(begun, {
        ledger: this.#options.ledger,
        store,
        gates: writeGates,
        tableId: prepared.target.tableId,
        begin: () => this.#begin(renewedDml(prepared, options), options, uploads),
        isRepeatable: options.transaction === undefined,
      });
    } catch (error) {
      if (!this.#isRunAgain(error, options)) throw error;
      return await this.#changeLater(prepared, options, uploads);
    }
    this.#isWaiting = true;
    const result = await changeResultInTurns(prepared, outcome, { options, clock });
    const lastSeq = outcome.applied.commit?.lastSeq;
    if (lastSeq !== undefined) await store.durable(lastSeq);
    return result;
  }

  #begin(
    prepared: PreparedDml,
    options: RunOptions,
    uploads: Uploads,
  ): DmlOutcome | Promise<DmlOutcome> {
    const { catalog, readers, store } = this.#world;
    const { namespace, parameters, profile, transaction } = options;
    const { ledger } = this.#options;
    const { references } = uploads;
    const hasUploads = uploads !== Uploads.none;
    const principal = ownerOfWrites(options.principal, catalog);
    return beginChange({
      prepared,
      ledger,
      namespace,
      store,
      readers: hasUploads || profile !== undefined ? undefined : readers,
      source: () => options.source?.(),
      runAt: (atSeq) =>
        newRun(this.#world, {
          principal,
          namespace,
          slots: references.length === 0 ? parameters : [...parameters, ...references],
          atSeq,
          writes: store,
          transaction,
          profile,
          uploads: hasUploads ? uploads : undefined,
          ledger,
          turnEndMs: hasUploads || profile !== undefined ? undefined : this.#turnEndMs,
        }),
    });
  }

  async #changeWithFiles(given: PreparedDml, options: RunOptions): Promise<StatementResult> {
    const uploads = await this.#stage(given, options);
    let result: StatementResult;
    try {
      result = await this.#change(renewedDml(given, options), options, uploads);
    } catch (error) {
      uploads.fail(error);
      throw error;
    }
    if (options.transaction === undefined) uploads.keep();
    else options.transaction.holdUploads(uploads);
    return result;
  }

  async #stage({ files }: PreparedDml, options: RunOptions): Promise<Uploads> {
    if (options.files === undefined) {
      throw new DatabaseError(
        "INVALID_INPUT",
        "Cannot read FILE: send the statement as multipart/form-data",
      );
    }
    refuseExtra(options.files, files);
    return Uploads.stage(this.#world, { parts: options.files, names: files });
  }
}

/** What a change answers once it is durable. */
function changeResult(
  { cells, fields, kind, storedNumbers }: PreparedDml,
  { applied, returned, rowCount }: DmlOutcome,
  { parameters, principal: { userId: asUser } }: RunOptions,
): StatementResult {
  const lastSeq = applied.commit?.lastSeq ?? null;
  const notices = storedNumbers.length === 0 ? undefined : noticesOf(storedNumbers, parameters);
  const noticed = notices === undefined || rowCount === 0 ? undefined : { notices };
  if (fields === undefined || returned === undefined) {
    const message = rowCount === 1 ? MESSAGES_OF_ONE[kind] : `${VERBS[kind]} ${rowCount} row(s)`;
    return { rowCount, message, asUser, lastSeq, ...noticed };
  }
  const rows: unknown[][] = [];
  for (const batch of returned) cells.append(batch, rows);
  return { schema: fields, rows, rowCount, asUser, lastSeq, ...noticed };
}

/** The same for a long answer. The commit is made, so nothing ends this. */
async function changeResultInTurns(
  prepared: PreparedDml,
  outcome: DmlOutcome,
  { clock, options }: { clock: Clock; options: RunOptions },
): Promise<StatementResult> {
  const { returned } = outcome;
  const first = changeResult(prepared, { ...outcome, returned: returned && [] }, options);
  if (returned === undefined || first.rows === undefined) return first;
  const rows: unknown[][] = [];
  const pause = pauser(clock);
  for (const batch of returned) {
    prepared.cells.append(batch, rows);
    await pause();
  }
  return { ...first, rows };
}

function queryResult(
  { fields = [] }: PreparedQuery,
  rows: readonly (readonly unknown[])[],
  { principal }: RunOptions,
): StatementResult {
  return { schema: fields, rows, rowCount: rows.length, asUser: principal.userId };
}

/** The statement as it is to be run after a wait. @throws {DatabaseError} */
function renewedDml(given: PreparedDml, options: RunOptions): PreparedDml {
  const prepared = options.renewed?.() ?? given;
  assert(prepared.kind !== "query", "a text stays the statement that it is");
  return prepared;
}

/** The first write of a user gives it the number that owns its rows. */
function ownerOfWrites(principal: Principal, catalog: Catalog): Principal {
  if (principal.owner !== undefined) return principal;
  return { ...principal, owner: catalog.ownerNumber(principal.userId, { create: true }) };
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
