/**
 * Runs a prepared statement for one caller and makes its result entry.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { Value } from "../../types/mod.ts";
import type { StatementResult, UploadedFile } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import type { Profile } from "../execute/run/profile.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import { Sleeps } from "../execute/run/sleeps.ts";
import type { Transaction } from "../execute/run/transaction.ts";
import { TURN_OVER } from "../execute/run/turn.ts";
import { Uploads, type UploadWorld } from "../files/uploads.ts";
import { type NotedRun, newRun, type RunWorld } from "../prepare/new_run.ts";
import type { Prepared, PreparedDml, PreparedQuery } from "../prepare/prepared.ts";
import type { QueryReaders, ReadingPlace } from "../readers/query_readers.ts";
import type { QuerySource } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import { beginChange, beginChangeIn, type NewChange } from "./change_rows.ts";
import { CollectedRows } from "./collected_rows.ts";
import { finishChange } from "./long_changes.ts";
import { type QueryRowsOptions, readHere, readIn } from "./query_rows.ts";
import { isKnownLong, maySleep, noteLong, readersFor } from "./read_elsewhere.ts";
import { changeResult, changeResultInTurns, queryResult } from "./row_results.ts";

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

/** What statements of rows run in. */
export interface StatementWorld extends RunWorld, UploadWorld, Pick<SqlEnvironment, "writeGates"> {
  /** Absent if every query runs on the event loop. */
  readonly readers: QueryReaders | undefined;
}

/** A change on its way. */
interface Change {
  readonly prepared: PreparedDml;
  readonly options: RunOptions;
  readonly uploads: Uploads;
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
  #turnEndMs(mayLeave: boolean): number | undefined {
    return mayLeave ? this.#world.clock.monotonicMs() + TURN_MS_MAX : undefined;
  }

  /** The readers that can read the rows of a statement; undefined if it stays here. */
  #readersFor(prepared: Prepared): QueryReaders | undefined {
    return readersFor(prepared, this.#world.readers);
  }

  async #placeIn(
    readers: QueryReaders,
    prepared: Prepared,
    { principal, profile }: RunOptions,
  ): Promise<ReadingPlace> {
    const { isStreamed, ledger } = this.#options;
    // The client may leave while the statement waits.
    if (isStreamed) this.#channel();
    const place = await readers.place({ userId: principal.userId, ledger, prepared });
    if (profile !== undefined) profile.waitedMs += place.waitedMs;
    return place;
  }

  /** @throws {DatabaseError} */
  run(prepared: Prepared, options: RunOptions): StatementResult | Promise<StatementResult> {
    this.#hasRunTwice = false;
    if (prepared.kind === "query") return this.#query(prepared, options);
    if (options.files !== undefined || prepared.files.length > 0) {
      return this.#changeWithFiles(prepared, options);
    }
    return this.#change({ prepared, options, uploads: Uploads.none });
  }

  #query(prepared: PreparedQuery, options: RunOptions): StatementResult | Promise<StatementResult> {
    if (options.files !== undefined) refuseExtra(options.files, []);
    const { readRow } = prepared;
    if (readRow !== undefined && options.profile === undefined) {
      return this.#queryByKey(prepared, options, readRow);
    }
    const readers = this.#readersFor(prepared);
    const mayLeave = readers !== undefined;
    if (mayLeave && isKnownLong(prepared, readers)) {
      return this.#queryInPlace(readers, prepared, { options });
    }
    const { ledger } = this.#options;
    const { rowsRead } = ledger;
    const run = this.#newQuery(prepared, options, { mayLeave });
    const leave = (error: unknown): Promise<StatementResult> => {
      if (error !== TURN_OVER || readers === undefined) throw error;
      ledger.rowsRead = rowsRead;
      if (!run.readsInOrder) noteLong(prepared);
      return this.#queryInPlace(readers, prepared, { options, sleeps: run.sleeps });
    };
    try {
      const rows = this.#rowsOf(prepared, options, run);
      const further = readHere(rows, mayLeave);
      const { collected } = rows;
      return further === undefined
        ? collected.finish()
        : further.then(() => collected.finish(), leave);
    } catch (error) {
      return leave(error);
    }
  }

  /** One row is never long. */
  #queryByKey(
    prepared: PreparedQuery,
    options: RunOptions,
    readRow: NonNullable<PreparedQuery["readRow"]>,
  ): StatementResult {
    const row = readRow(this.#newQuery(prepared, options, { mayLeave: false }));
    return queryResult(prepared, row === undefined ? [] : [prepared.cells.cellsOf(row)], options);
  }

  /** Waits for a reader, and begins there as the definitions and rows of that turn are. */
  async #queryInPlace(
    readers: QueryReaders,
    given: PreparedQuery,
    { options, sleeps }: { options: RunOptions; sleeps?: Sleeps | undefined },
  ): Promise<StatementResult> {
    const place = await this.#placeIn(readers, given, options);
    let prepared: PreparedQuery;
    try {
      prepared = renewedQuery(given, options);
      const run = this.#newQuery(prepared, options, { mayLeave: false, sleeps });
      const rows = this.#rowsOf(prepared, options, run);
      const how = await readIn(place, rows);
      if (how === "read") return rows.collected.finish();
    } finally {
      place.giveBack();
    }
    return await this.#query(prepared, options);
  }

  /** @param about.sleeps Those of the query when it was begun before. */
  #newQuery(
    prepared: PreparedQuery,
    options: RunOptions,
    about: { mayLeave: boolean; sleeps?: Sleeps | undefined },
  ): NotedRun {
    const { mayLeave, sleeps } = about;
    const { namespace, parameters, principal, profile, transaction } = options;
    profile?.clear();
    return newRun(this.#world, {
      principal,
      namespace,
      slots: parameters,
      atSeq: this.#world.store.visibleSeq,
      transaction,
      profile,
      ledger: this.#options.ledger,
      turnEndMs: this.#turnEndMs(mayLeave),
      sleeps: sleeps ?? this.#sleepsOf(prepared, transaction),
    });
  }

  #sleepsOf(prepared: PreparedQuery, transaction: Transaction | undefined): Sleeps | undefined {
    if (!maySleep(prepared)) return undefined;
    const { clock, limits } = this.#world;
    // The next statement of a transaction whose time is over is refused.
    const msMax = (): number =>
      transaction === undefined
        ? Number.POSITIVE_INFINITY
        : Math.max(0, transaction.startedAtMs + limits.transactionTimeoutMs - clock.monotonicMs()) +
          1;
    return new Sleeps({ clock, ledger: this.#options.ledger, msMax });
  }

  #rowsOf(prepared: PreparedQuery, options: RunOptions, run: NotedRun): QueryRowsOptions {
    const { clock, limits } = this.#world;
    const { ledger } = this.#options;
    const isMeasured = options.profile !== undefined;
    // Rows that were sent could not be forgotten after a sleep.
    const isStreamed = this.#options.isStreamed && !isMeasured && run.sleeps === undefined;
    const collected = new CollectedRows({
      cells: prepared.cells,
      head: { schema: prepared.fields ?? [], asUser: options.principal.userId },
      // A reader is given its rows before they are many, so these need no budget.
      memory: isStreamed ? run.memory.elastic() : run.memory,
      rowsMax: limits.resultRowsMax,
      isCounted: isMeasured,
    });
    return {
      prepared,
      run,
      ledger,
      namespace: options.namespace,
      collected,
      clock,
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
    };
  }

  #channel(): AnswerChannel {
    const channel = this.#options.channelFor();
    channel.watchReader();
    return channel;
  }

  /**
   * Begins in the turn in which the statement was bound: a definition may change in any other.
   *
   * @param place Where it reads its rows; absent if they are to be read in its first turn.
   */
  #change(change: Change, place?: ReadingPlace): StatementResult | Promise<StatementResult> {
    let outcome: DmlOutcome | Promise<DmlOutcome>;
    try {
      if (!this.#isReady(change)) return this.#changeLater(change, place !== undefined);
      const begun = this.#newChange(change);
      outcome = place === undefined ? beginChange(begun) : beginChangeIn(place, begun);
    } catch (error) {
      const isLong = error === TURN_OVER;
      if (!isLong && !this.#isRunAgain(error, change.options)) throw error;
      return this.#changeLater(change, isLong);
    } finally {
      place?.giveBack();
    }
    if (outcome instanceof Promise) return this.#changeLong(outcome, change);
    this.#isWaiting = true;
    const result = changeResult(change.prepared, outcome, change.options);
    const lastSeq = outcome.applied.commit?.lastSeq;
    return lastSeq === undefined ? result : this.#world.store.durable(lastSeq).then(() => result);
  }

  /** Whether the rows of its table, and of its owner, may be changed in this turn. */
  #isReady({ options, prepared }: Change): boolean {
    const { storageQuota, writeGates } = this.#world;
    if (writeGates.isClosed(prepared.target.tableId)) return false;
    if (storageQuota === undefined || options.transaction !== undefined) return true;
    return storageQuota.isReady(options.principal.owner);
  }

  async #changeLater(change: Change, isLong: boolean): Promise<StatementResult> {
    const { storageQuota, writeGates } = this.#world;
    const { ledger } = this.#options;
    const { options, prepared } = change;
    if (options.transaction === undefined) {
      await storageQuota?.ready(options.principal.owner, ledger);
    }
    await writeGates.opened([prepared.target.tableId], ledger);
    const place = isLong ? await this.#placeOf(change) : undefined;
    try {
      return await this.#change(renewedChange(change), place);
    } finally {
      place?.giveBack();
    }
  }

  /** Waits for a reader; undefined if the change reads its rows on the event loop. */
  async #placeOf(change: Change): Promise<ReadingPlace | undefined> {
    const readers = this.#readersOf(change);
    if (readers === undefined) return undefined;
    return await this.#placeIn(readers, change.prepared, change.options);
  }

  #readersOf({ prepared, uploads }: Change): QueryReaders | undefined {
    return uploads === Uploads.none ? this.#readersFor(prepared) : undefined;
  }

  /** Whether the statement was refused for lack of storage that may since have become free. */
  #isRunAgain(error: unknown, { principal, transaction }: RunOptions): boolean {
    const { storageQuota } = this.#world;
    if (storageQuota === undefined || transaction !== undefined || this.#hasRunTwice) return false;
    if (!(error instanceof DatabaseError) || error.condition !== "LIMIT_EXCEEDED") return false;
    this.#hasRunTwice = !storageQuota.isReady(principal.owner);
    return this.#hasRunTwice;
  }

  async #changeLong(begun: Promise<DmlOutcome>, change: Change): Promise<StatementResult> {
    const { clock, store, writeGates } = this.#world;
    const { options, prepared } = change;
    let outcome: DmlOutcome;
    try {
      outcome = await finishChange(begun, {
        ledger: this.#options.ledger,
        store,
        gates: writeGates,
        tableId: prepared.target.tableId,
        place: () => this.#placeOf(change),
        begin: (place) => beginChangeIn(place, this.#newChange(renewedChange(change))),
        isRepeatable: options.transaction === undefined,
      });
    } catch (error) {
      if (!this.#isRunAgain(error, options)) throw error;
      return await this.#changeLater(change, false);
    }
    this.#isWaiting = true;
    const result = await changeResultInTurns(prepared, outcome, { options, clock });
    const lastSeq = outcome.applied.commit?.lastSeq;
    if (lastSeq !== undefined) await store.durable(lastSeq);
    return result;
  }

  #newChange(change: Change): NewChange {
    const { catalog, store } = this.#world;
    const { options, prepared, uploads } = change;
    const { namespace, parameters, profile, transaction } = options;
    const { ledger } = this.#options;
    const { references } = uploads;
    const principal = ownerOfWrites(options.principal, catalog);
    return {
      prepared,
      ledger,
      namespace,
      store,
      readers: this.#readersOf(change),
      source: () => options.source?.(),
      runAt: (atSeq, mayLeave) => {
        profile?.clear();
        return newRun(this.#world, {
          principal,
          namespace,
          slots: references.length === 0 ? parameters : [...parameters, ...references],
          atSeq,
          writes: store,
          transaction,
          profile,
          uploads: uploads === Uploads.none ? undefined : uploads,
          ledger,
          turnEndMs: this.#turnEndMs(mayLeave),
        });
      },
    };
  }

  async #changeWithFiles(given: PreparedDml, options: RunOptions): Promise<StatementResult> {
    const uploads = await this.#stage(given, options);
    let result: StatementResult;
    try {
      result = await this.#change(renewedChange({ prepared: given, options, uploads }));
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

/** The statement as it is to be run after a wait. @throws {DatabaseError} */
function renewedQuery(given: PreparedQuery, options: RunOptions): PreparedQuery {
  const prepared = options.renewed?.() ?? given;
  assert(prepared.kind === "query", "a text stays the statement that it is");
  return prepared;
}

/** The same. @throws {DatabaseError} */
function renewedChange(change: Change): Change {
  const prepared = change.options.renewed?.() ?? change.prepared;
  assert(prepared.kind !== "query", "a text stays the statement that it is");
  return { ...change, prepared };
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
