/**
 * Runs a prepared statement for a caller, and builds its result entry.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import type { Catalog } from "../../catalog/mod.ts";
import { UNKNOWN } from "../../types/mod.ts";
import { NOT_READ } from "../execute/build/build_scan.ts";
import type { DmlOutcome } from "../execute/change/change_writer.ts";
import { needsTransaction } from "../execute/change/references.ts";
import type { Sleeps } from "../execute/context/sleeps.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { DeferredCall } from "../execute/context/trigger_calls.ts";
import { Uploads } from "../files/uploads.ts";
import { referencesTo } from "../names/references.ts";
import type { StatementResult, UploadedFile } from "../ports/engine.ts";
import { AttemptNumbers } from "../prepare/attempt_numbers.ts";
import type { Prepared, PreparedDml, PreparedQuery } from "../prepare/prepared.ts";
import { newContext, type StatementContext } from "../prepare/statement_context.ts";
import { isInspecting, type QueryReaders, type ReadingPlace } from "../readers/query_readers.ts";
import type { QuerySource } from "../readers/reader.ts";
import { type CopyField, CopyText } from "../result/copy_text.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import { beginChange, beginChangeIn, type NewChange, streamIn } from "./change_rows.ts";
import { changeTogether } from "./change_together.ts";
import { CollectedRows } from "./collected_rows.ts";
import { cursorNotFound } from "./cursors.ts";
import { runDeferred } from "./deferred_triggers.ts";
import { finishChange } from "./long_changes.ts";
import { Notices } from "./notices.ts";
import { OUTDATED, type QueryRowsOptions, readHere, readIn } from "./query_rows.ts";
import { isKnownLong, noteLong, readersFor } from "./read_elsewhere.ts";
import { changeResult, changeResultInTicks, queryResult } from "./row_results.ts";
import type { RunnerOptions, RunOptions, StatementDeps } from "./run_options.ts";
import { StatementCalls } from "./statement_calls.ts";
import { locksOnly } from "./statement_locks.ts";

/** A change to rows that is in progress. */
interface RunningChange {
  readonly prepared: PreparedDml;
  readonly options: RunOptions;
  readonly uploads: Uploads;
}

export class StatementRunner {
  readonly #deps: StatementDeps;
  readonly #options: RunnerOptions;
  readonly #calls: StatementCalls;
  #isWaiting = false;
  /** Whether the statement has already been run a second time because of the storage limit. */
  #hasRunTwice = false;
  /** The notices of the statement, unless the options of its run name another receiver. */
  readonly #notices = new Notices();
  /** The numbers that the current attempt of the statement takes from sequences. */
  readonly #attempt = new AttemptNumbers();

  constructor(deps: StatementDeps, options: RunnerOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#calls = new StatementCalls(deps, {
      ledger: options.ledger,
      settings: options.settings,
      runner: () => this.#inner(),
      onNotice: (message) => this.#notices.add(message),
    });
  }

  /**
   * Whether the work that `run` has started can still be cancelled. Work that is only waiting for
   * the disk cannot.
   */
  get isUnderWay(): boolean {
    return !this.#isWaiting;
  }

  /**
   * The time by which a statement that starts now must move from the event loop to a reader
   * thread; undefined if it cannot move.
   */
  #sliceEndMs(mayLeave: boolean): number | undefined {
    return mayLeave ? this.#deps.clock.monotonicMs() + FIRST_SLICE_MS_MAX : undefined;
  }

  /**
   * Returns the readers that can read the rows of a statement; undefined if the statement has to
   * run on the event loop.
   */
  #readersFor(prepared: Prepared): QueryReaders | undefined {
    return readersFor(prepared, this.#deps.readers);
  }

  async #placeIn(
    readers: QueryReaders,
    prepared: Prepared,
    { principal, profile }: RunOptions,
  ): Promise<ReadingPlace> {
    const { isStreamed, ledger } = this.#options;
    // The client may disconnect while the statement waits.
    if (isStreamed) this.#channel();
    const place = await readers.place({ userId: principal.userId, ledger, prepared });
    if (profile !== undefined) profile.waitedMs += place.waitedMs;
    return place;
  }

  /** Runs a prepared statement. @throws {DatabaseError} */
  run(prepared: Prepared, given: RunOptions): StatementResult | Promise<StatementResult> {
    const options = atCurrentRow(prepared, given);
    this.#hasRunTwice = false;
    this.#attempt.end();
    this.#calls.transaction = options.transaction;
    this.#notices.clear();
    if (!locksOnly(prepared)) options.transaction?.fixSnapshot();
    const result = this.#mustWait(prepared, options)
      ? this.#runLater(prepared, options)
      : this.#run(prepared, options);
    return result instanceof Promise
      ? result.then((late) => this.withNotices(late))
      : this.withNotices(result);
  }

  /** Adds the notices raised since the last call to a result, and forgets them. */
  withNotices(result: StatementResult): StatementResult {
    const { messages } = this.#notices;
    if (messages === undefined) return result;
    this.#notices.clear();
    return { ...result, notices: [...(result.notices ?? []), ...messages] };
  }

  /**
   * Whether the statement has to wait because memory is scarce. Transactions, and statements that
   * inspect the server, need not wait.
   */
  #mustWait(prepared: Prepared, { transaction }: RunOptions): boolean {
    return this.#deps.memoryGate.isClosed && transaction === undefined && !isInspecting(prepared);
  }

  async #runLater(given: Prepared, options: RunOptions): Promise<StatementResult> {
    await this.#deps.memoryGate.opened(this.#options.ledger);
    return await this.#run(options.renewed?.() ?? given, options);
  }

  #run(prepared: Prepared, options: RunOptions): StatementResult | Promise<StatementResult> {
    if (prepared.kind === "query") return this.#query(prepared, options);
    if (options.files !== undefined || prepared.files.length > 0) {
      return this.#changeWithFiles(prepared, options);
    }
    return this.#change({ prepared, options, uploads: Uploads.none });
  }

  /**
   * Runs a query.
   *
   * @param sleeps The sleeps of an earlier attempt.
   */
  #query(
    prepared: PreparedQuery,
    options: RunOptions,
    sleeps?: Sleeps,
  ): StatementResult | Promise<StatementResult> {
    if (options.files !== undefined) refuseExtra(options.files, []);
    const { readRow } = prepared;
    const isPlain = options.profile === undefined && options.copyTo === undefined;
    if (readRow !== undefined && isPlain) {
      const result = this.#queryByKey(prepared, options, readRow);
      if (result !== undefined) return result;
    }
    const readers = this.#readersFor(prepared);
    const mayLeave = readers !== undefined;
    if (mayLeave && isKnownLong(prepared, readers)) {
      return this.#queryInPlace(readers, prepared, { options });
    }
    const { ledger } = this.#options;
    const { rowsRead } = ledger;
    const context = this.#newQuery(prepared, options, { mayLeave, sleeps });
    const leave = (error: unknown): StatementResult | Promise<StatementResult> => {
      if (error === OUTDATED) {
        ledger.rowsRead = rowsRead;
        return this.#query(renewedQuery(prepared, options), options, context.sleeps);
      }
      if (error !== SLICE_OVER || readers === undefined) throw error;
      ledger.rowsRead = rowsRead;
      if (!context.readsInOrder) noteLong(prepared);
      return this.#queryInPlace(readers, prepared, { options, sleeps: context.sleeps });
    };
    try {
      const isOutdated = (): boolean => renewedQuery(prepared, options) !== prepared;
      const rows = { ...this.#rowsOf(prepared, options, context), isOutdated };
      const further = readHere(rows, mayLeave);
      const { collected } = rows;
      return further === undefined
        ? collected.finish()
        : further.then(() => collected.finish(), leave);
    } catch (error) {
      return leave(error);
    }
  }

  /**
   * Runs a query that looks up rows by key. Such a query reads few rows, so it never takes long.
   * Returns undefined if the query needs operators.
   */
  #queryByKey(
    prepared: PreparedQuery,
    options: RunOptions,
    readRow: NonNullable<PreparedQuery["readRow"]>,
  ): StatementResult | undefined {
    const rows = readRow(this.#newQuery(prepared, options, { mayLeave: false }));
    if (rows === NOT_READ) return undefined;
    const cells = rows.map((row) => prepared.cells.cellsOf(row));
    return queryResult(prepared, cells, options);
  }

  /**
   * Waits for a reader, and then starts the query with the definitions and rows that are current
   * in that tick.
   */
  async #queryInPlace(
    readers: QueryReaders,
    given: PreparedQuery,
    { options, sleeps }: { options: RunOptions; sleeps?: Sleeps | undefined },
  ): Promise<StatementResult> {
    const place = await this.#placeIn(readers, given, options);
    let prepared: PreparedQuery;
    try {
      prepared = renewedQuery(given, options);
      const context = this.#newQuery(prepared, options, { mayLeave: false, sleeps });
      const rows = this.#rowsOf(prepared, options, context);
      const how = await readIn(place, rows);
      if (how === "read") return rows.collected.finish();
    } finally {
      place.giveBack();
    }
    return await this.#query(prepared, options);
  }

  /**
   * Creates the context for an execution of a query.
   * @param about.sleeps The sleeps of an earlier attempt.
   */
  #newQuery(
    prepared: PreparedQuery,
    options: RunOptions,
    about: { mayLeave: boolean; sleeps?: Sleeps | undefined },
  ): StatementContext {
    const { mayLeave, sleeps } = about;
    const { namespace, nowMicros, parameters, principal, profile, transaction } = options;
    profile?.clear();
    const asleep = sleeps ?? this.#calls.sleepsOf(prepared, transaction);
    return newContext(this.#deps, {
      principal,
      namespace,
      slots: parameters,
      atSeq: options.atSeq?.() ?? this.#deps.store.visibleSeq,
      nowMicros,
      transaction,
      profile,
      ledger: this.#options.ledger,
      settings: () => this.#calls.settingsOf(principal),
      ...frameOf(options),
      sliceEndMs: this.#sliceEndMs(mayLeave),
      sleeps: asleep,
      advisory: this.#calls.locksOf(prepared, options, asleep),
      programs: this.#calls.programsOf(prepared, options, asleep),
      attempt: this.#attempt,
    });
  }

  /** Returns a runner for the statements of triggers, which returns rows to the triggers. */
  #inner(): StatementRunner {
    const { ledger, settings } = this.#options;
    const channelFor = noChannel;
    const deps = { ...this.#deps, readers: undefined };
    return new StatementRunner(deps, { ledger, settings, isStreamed: false, channelFor });
  }

  /**
   * Runs the constraint triggers deferred to the end of a transaction.
   *
   * @throws {DatabaseError}
   */
  async runDeferred(
    transaction: Transaction,
    isChosen?: (call: DeferredCall) => boolean,
  ): Promise<void> {
    if (!transaction.hasDeferred) return;
    await runDeferred(transaction, {
      ...(isChosen && { isChosen }),
      callsFor: (principal) => this.#calls.triggersOf({ principal, transaction }),
    });
  }

  #rowsOf(
    prepared: PreparedQuery,
    options: RunOptions,
    context: StatementContext,
  ): QueryRowsOptions {
    const { clock, limits } = this.#deps;
    const { ledger } = this.#options;
    const isMeasured = options.profile !== undefined;
    // When a query is restarted after a sleep, rows that have been sent cannot be taken back.
    const isStreamed = this.#options.isStreamed && !isMeasured && context.sleeps === undefined;
    const { copyTo } = options;
    const collected = new CollectedRows({
      cells: prepared.cells,
      copy: copyTo === undefined ? undefined : new CopyText(copyFieldsOf(prepared), copyTo),
      head: { schema: prepared.fields ?? [], asUser: options.principal.userId },
      // Streamed rows are sent before many have accumulated, so they need no memory budget of
      // their own.
      memory: isStreamed ? context.memory.elastic() : context.memory,
      rowsMax: limits.resultRowsMax,
      isCounted: isMeasured,
    });
    return {
      prepared,
      context,
      ledger,
      namespace: options.namespace,
      collected,
      clock,
      source: () => options.source?.(),
      channel: isStreamed ? () => this.#channel() : undefined,
      slices: {
        ...(isStreamed && {
          isEnough: () => collected.areMany,
          onSlice: () => collected.send(this.#channel()),
        }),
        // A statement that does not stream its rows must also end when its client disconnects.
        ...(this.#options.isStreamed && !isStreamed && { onSlice: () => void this.#channel() }),
      },
    };
  }

  #channel(): AnswerChannel {
    const channel = this.#options.channelFor();
    channel.watchReader();
    return channel;
  }

  /**
   * Starts a change in the tick in which its statement was bound, because definitions may change
   * in later ticks.
   *
   * @param place The place where the rows are read. If it is absent, the rows are read in the
   *   first time slice.
   */
  #change(change: RunningChange, place?: ReadingPlace): StatementResult | Promise<StatementResult> {
    let outcome: DmlOutcome | Promise<DmlOutcome>;
    try {
      if (!this.#isReady(change)) return this.#changeLater(change, place !== undefined);
      if (this.#takesOthersAlong(change)) return this.#changeTogether(change);
      const begun = this.#newChange(change);
      outcome = place === undefined ? beginChange(begun) : beginChangeIn(place, begun);
    } catch (error) {
      const isLong = error === SLICE_OVER;
      if (!isLong && !this.#isRunAgain(error, change.options)) throw error;
      return this.#changeLater(change, isLong);
    } finally {
      place?.giveBack();
    }
    if (outcome instanceof Promise) return this.#changeLong(outcome, change);
    this.#isWaiting = true;
    const result = changeResult(change.prepared, outcome, change.options);
    const lastSeq = outcome.applied.commit?.lastSeq;
    return lastSeq === undefined ? result : this.#deps.store.durable(lastSeq).then(() => result);
  }

  /**
   * Whether a change may cause further changes, to rows of other tables or to other rows of the
   * same table.
   */
  #takesOthersAlong({ options, prepared }: RunningChange): boolean {
    if (options.transaction !== undefined) return false;
    const { catalog } = this.#deps;
    const to = (tableId: number): ReturnType<typeof referencesTo> => referencesTo(catalog, tableId);
    return prepared.isOfParts || prepared.changes.some((each) => needsTransaction(each, { to }));
  }

  /** Runs a change in a transaction of its own, which begins in this tick. */
  async #changeTogether(change: RunningChange): Promise<StatementResult> {
    const { clock, store } = this.#deps;
    const { options, prepared: given } = change;
    const { ledger } = this.#options;
    const { rowsRead } = ledger;
    const readers = this.#readersOf(change);
    const isRepeatable = options.copyInput === undefined;
    const outcome = await changeTogether({
      deps: this.#deps,
      ledger,
      tableIds: given.tableIds,
      uploads: change.uploads,
      first:
        readers !== undefined && (!isRepeatable || isKnownLong(given, readers)) ? "reader" : "here",
      isRepeatable,
      place: () => this.#placeOf(change),
      onLong: () => {
        ledger.rowsRead = rowsRead;
        noteLong(given);
      },
      runDeferred: (transaction) => this.runDeferred(transaction),
      begin: (transaction, at) => {
        const renewed = renewedChange(change);
        const source = (): QuerySource | undefined => options.source?.();
        const within = { ...renewed, options: { ...options, source, transaction } };
        const begun = this.#newChange(within);
        const mayLeave = at.kind === "here" && at.mayLeave && readers !== undefined;
        const context = begun.runAt(transaction.snapshotSeq, mayLeave);
        const elsewhere = at.kind === "reader" ? streamIn(at.place, begun, context) : undefined;
        return { context, outcome: elsewhere?.() ?? begun.prepared.program(context) };
      },
    });
    this.#isWaiting = true;
    const result = await changeResultInTicks(change.prepared, outcome, { options, clock });
    const lastSeq = outcome.applied.commit?.lastSeq;
    if (lastSeq !== undefined) await store.durable(lastSeq);
    return result;
  }

  /**
   * Returns the readers that can read the rows of a change; undefined if the change has to run on
   * the event loop. A measured statement with several parts has to run there, because a reader can
   * measure only a single plan.
   */
  #readersOf({ options, prepared }: RunningChange): QueryReaders | undefined {
    if (prepared.isOfParts && options.profile !== undefined) return undefined;
    return this.#readersFor(prepared);
  }

  /** Whether a change to the caller's rows in the table may be made in this tick. */
  #isReady({ options, prepared }: RunningChange): boolean {
    const { storageQuota, writeGates } = this.#deps;
    // The statement that fired the trigger may have closed the write gate itself, and waits before
    // its commit.
    if (options.trigger !== undefined) return true;
    if (writeGates.areClosed(gatesOf(prepared, options))) return false;
    if (storageQuota === undefined || options.transaction !== undefined) return true;
    return storageQuota.isReady(options.principal.owner);
  }

  async #changeLater(change: RunningChange, isLong: boolean): Promise<StatementResult> {
    const { storageQuota, writeGates } = this.#deps;
    const { ledger } = this.#options;
    const { options, prepared } = change;
    if (options.transaction === undefined) {
      await storageQuota?.ready(options.principal.owner, ledger);
    }
    if (options.trigger === undefined) await writeGates.opened(gatesOf(prepared, options), ledger);
    const place = isLong ? await this.#placeOf(change) : undefined;
    try {
      return await this.#change(renewedChange(change), place);
    } finally {
      place?.giveBack();
    }
  }

  /** Waits for a reader. Returns undefined if the change reads its rows on the event loop. */
  async #placeOf(change: RunningChange): Promise<ReadingPlace | undefined> {
    const readers = this.#readersOf(change);
    if (readers === undefined) return undefined;
    return await this.#placeIn(readers, change.prepared, change.options);
  }

  /**
   * Whether a statement that was refused for lack of space should be run again, because space may
   * have been freed in the meantime.
   */
  #isRunAgain(error: unknown, { copyInput, principal, transaction }: RunOptions): boolean {
    const { storageQuota } = this.#deps;
    if (copyInput !== undefined) return false;
    if (storageQuota === undefined || transaction !== undefined || this.#hasRunTwice) return false;
    if (!(error instanceof DatabaseError) || error.code !== "LIMIT_EXCEEDED") return false;
    this.#hasRunTwice = !storageQuota.isReady(principal.owner);
    return this.#hasRunTwice;
  }

  async #changeLong(begun: Promise<DmlOutcome>, change: RunningChange): Promise<StatementResult> {
    const { clock, store, writeGates } = this.#deps;
    const { options, prepared } = change;
    let outcome: DmlOutcome;
    try {
      outcome = await finishChange(begun, {
        ledger: this.#options.ledger,
        store,
        gates: writeGates,
        tableIds: prepared.tableIds,
        place: () => this.#placeOf(change),
        begin: (place) => beginChangeIn(place, this.#newChange(renewedChange(change))),
        isRepeatable: options.transaction === undefined && options.copyInput === undefined,
      });
    } catch (error) {
      if (!this.#isRunAgain(error, options)) throw error;
      return await this.#changeLater(change, false);
    }
    this.#isWaiting = true;
    const result = await changeResultInTicks(prepared, outcome, { options, clock });
    const lastSeq = outcome.applied.commit?.lastSeq;
    if (lastSeq !== undefined) await store.durable(lastSeq);
    return result;
  }

  #newChange(change: RunningChange): NewChange {
    const { catalog, store } = this.#deps;
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
      isRepeatable: options.copyInput === undefined,
      runAt: (atSeq, mayLeave) => {
        // An attempt that begins anew calls the triggers again.
        this.#notices.clear();
        profile?.clear();
        return newContext(this.#deps, {
          principal,
          namespace,
          slots: references.length === 0 ? parameters : [...parameters, ...references],
          atSeq,
          writes: store,
          transaction,
          profile,
          isOfParts: prepared.isOfParts,
          uploads: uploads === Uploads.none ? undefined : uploads,
          copyInput: options.copyInput,
          ledger,
          settings: () => this.#calls.settingsOf(principal),
          triggers: () => this.#calls.triggersOf({ ...options, principal }),
          ...frameOf(options),
          sliceEndMs: this.#sliceEndMs(mayLeave),
          advisory: this.#calls.locksOf(prepared, options),
          programs: this.#calls.programsOf(prepared, options),
          attempt: this.#attempt,
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
        "Cannot read FILE: a request with files must be sent as multipart/form-data",
      );
    }
    refuseExtra(options.files, files);
    return Uploads.stage(this.#deps, { parts: options.files, names: files });
  }
}

function noChannel(): AnswerChannel {
  throw new TypeError("trigger execution: statement asked for a streamed result");
}

/** Returns the context options that depend on the trigger for which the statement runs. */
function frameOf({
  trigger,
}: RunOptions): Pick<Parameters<typeof newContext>[1], "transition" | "triggerDepth"> {
  return trigger === undefined
    ? {}
    : { transition: trigger.transition, triggerDepth: trigger.depth };
}

/**
 * Fills the slots of a statement that changes the current row of a cursor. @throws {DatabaseError}
 */
function atCurrentRow(prepared: Prepared, options: RunOptions): RunOptions {
  const row = prepared.kind === "query" ? undefined : prepared.currentRow;
  if (row === undefined) return options;
  if (options.currentKey === undefined) throw cursorNotFound(row.cursor);
  const parameters = [...options.parameters];
  for (const [i, value] of options.currentKey(row).entries()) parameters[row.slot + i] = value;
  return { ...options, parameters };
}

/**
 * Returns the query to run after a wait. It is bound again if necessary. @throws {DatabaseError}
 */
function renewedQuery(given: PreparedQuery, options: RunOptions): PreparedQuery {
  const prepared = options.renewed?.() ?? given;
  assert(
    prepared.kind === "query",
    "re-parsing the same SQL text yielded a different statement kind",
  );
  return prepared;
}

/**
 * Returns the change to run after a wait. It is bound again if necessary. @throws {DatabaseError}
 */
function renewedChange(change: RunningChange): RunningChange {
  const prepared = change.options.renewed?.() ?? change.prepared;
  assert(
    prepared.kind !== "query",
    "re-parsing the same SQL text yielded a different statement kind",
  );
  return { ...change, prepared };
}

/** Returns the caller with an owner number, which is assigned when a user first writes rows. */
function ownerOfWrites(principal: Principal, catalog: Catalog): Principal {
  if (principal.owner !== undefined) return principal;
  return { ...principal, owner: catalog.accounts.ownerNumber(principal.userId, { create: true }) };
}

/**
 * Returns the tables whose write gates a change has to pass. Gates that were closed for the change
 * itself are excluded.
 */
function gatesOf({ tableIds }: PreparedDml, { transaction }: RunOptions): readonly number[] {
  const own = transaction?.gatedIds ?? [];
  return own.length === 0 ? tableIds : tableIds.filter((id) => !own.includes(id));
}

function copyFieldsOf({ cells, fields = [] }: PreparedQuery): CopyField[] {
  return fields.map(({ name }, index) => ({ name, type: cells.types[index] ?? UNKNOWN }));
}

function refuseExtra(parts: ReadonlyMap<string, UploadedFile>, names: readonly string[]): void {
  for (const name of parts.keys()) {
    if (names.includes(name)) continue;
    throw new DatabaseError(
      "EXTRA_FILE",
      `Cannot use file part "${name}": the statement does not contain FILE('${name}')`,
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
