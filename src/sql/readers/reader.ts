/**
 * Represents a reader thread on the event loop: the messages sent to the thread, and the statement
 * that it runs.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert, defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, NamespaceEntry, TableEntry } from "../../catalog/mod.ts";
import type { SharingStore, Store, TableSharing } from "../../storage/mod.ts";
import { errorFromFailure, type MessageThread, type ThreadEvents } from "../../threads/mod.ts";
import type { Batch, DataType, Value } from "../../types/mod.ts";
import { CellError } from "../bind/cell_error.ts";
import type { Profile } from "../execute/context/profile.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Sleeps } from "../execute/context/sleeps.ts";
import type { StagedRows } from "../execute/context/transaction.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { ObjectCalls, SequenceCalls, SettingCalls } from "../functions/base/function.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import type { ResultFormat } from "../ports/engine.ts";
import { measuredShape } from "../prepare/measured_nodes.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { mayReadTombstones } from "../prepare/tombstone_reads.ts";
import type { RowText } from "../result/row_text.ts";
import { JobAnswers } from "./answers.ts";
import type {
  AnswerMessage,
  FromReader,
  FurtherMessage,
  JobPart,
  PlanSource,
  ReaderMemory,
  ToReader,
} from "./job.ts";
import { KeptPlans } from "./kept_plans.ts";
import { relationsOf, systemViewsIn } from "./relations.ts";
import { RunningJob } from "./running_job.ts";

/** The input from which a reader compiles a plan. */
export interface QuerySource {
  readonly node: QueryStatement;
  /**
   * The types of the slots: the types of the parameters, followed by the types of lifted literals.
   */
  readonly types: readonly DataType[];
}

/** The limits for a query, and the resources that it has used so far. */
export interface QueryLedger extends Pick<RequestLedger, "bytesElsewhere" | "rowsRead" | "wake"> {
  readonly cancelledBy: RequestLedger["cancelledBy"];
  readonly deadlineMs: number;
}

/** A statement whose rows a reader will read. */
export interface ReaderQuery {
  readonly prepared: Prepared;
  /**
   * Returns the input for compiling the plan; needed only by a reader that does not have the plan.
   */
  source(): QuerySource;
  readonly slots: readonly Value[];
  readonly principal: Principal;
  readonly namespace: string;
  readonly snapshotSeq: Seq;
  /**
   * Returns the seqs at which the statement reads earlier states of tables, in the order of the
   * indexes of these reads. Called in the same tick in which the tables are shared.
   *
   * @throws {DatabaseError} HISTORY_TOO_OLD, VALUE_OUT_OF_RANGE …
   */
  pastSeqs(): readonly Seq[];
  readonly nowMicros: number;
  /** The rows that the statement's transaction has staged. */
  readonly staged: StagedRows | undefined;
  /** Takes numbers from sequences, with the caller's rights; absent for a live query. */
  readonly sequences: SequenceCalls | undefined;
  /** Looks up objects for the caller. */
  readonly objects: ObjectCalls;
  /** Reads and changes the settings of the request; absent for a live query. */
  readonly settings: SettingCalls | undefined;
  /** Implements pg_sleep for the query; absent if the query may not sleep. */
  readonly sleeps?: Sleeps | undefined;
  readonly ledger: QueryLedger;
  /** Collects the measurements of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** Receives rows of the statement. @throws {DatabaseError} to end the statement. */
  onBatch(batch: Batch): void;
  /**
   * Receives further rows as text, once `textFormat` has returned a format.
   *
   * @throws {DatabaseError}
   */
  onText?(text: RowText): void;
  /** Returns the text format for further rows; undefined as long as batches are needed. */
  textFormat?(): ResultFormat | undefined;
  /**
   * Returns a promise that resolves when the reader may send more rows, or undefined if it may
   * continue immediately.
   */
  taken?(): Promise<void> | undefined;
  /** Called when the reader has sent its rows and is waiting for {@linkcode ReaderRead.goOn}. */
  onParted?(): void;
}

/**
 * The outcome of a read. "read" means that all rows have arrived. Otherwise, no rows have arrived,
 * and the statement is restarted, in a single reader instead of several or on the event loop.
 * "unstarted" means that the reader's thread could not be started.
 */
export type ReadOutcome = "read" | "refused" | "unstarted";

/** A read that is in progress in a reader. */
export interface StartedRead {
  readonly outcome: Promise<ReadOutcome>;
  /** Makes a waiting reader continue. The call has no effect once the reader has ended. */
  goOn(message: FurtherMessage): void;
  /** Ends the read, because its rows are no longer needed. Its outcome then rejects. */
  stop(): void;
}

/** A read by a single reader. */
export interface ReaderRead extends StartedRead {
  /** Resolves once the reader is free again or has ended. This may be later than `outcome`. */
  readonly done: Promise<void>;
}

/** A reader thread, or a substitute in the thread of the event loop. */
export interface ReaderPort extends MessageThread<ToReader> {
  /** Answers the question for which the reader is waiting. */
  answer(message: AnswerMessage): void;
}

export interface ReaderParts {
  readonly sharing: SharingStore;
  readonly store: Pick<Store, "liveRowCount" | "snowflakeId">;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Log;
}

/** Callbacks with which a reader notifies its pool. */
export interface ReaderWatch {
  /** Called when the thread of a reader has started. */
  readonly onReady: () => void;
  /** Called when the reader starts a user's statement. */
  readonly onBegun: (userId: string) => void;
  /**
   * Called when the reader has finished a user's statement. Unless its thread has ended, the
   * reader is free again.
   */
  readonly onDone: (userId: string) => void;
  /** Called repeatedly while the statement's client does not read the rows. */
  readonly onHeldUp: () => void;
  /** Called when the reader can no longer run any statements. */
  readonly onGone: (reason: string) => void;
}

export class ReaderThread {
  readonly events: ThreadEvents<FromReader>;
  readonly #parts: ReaderParts;
  readonly #watch: ReaderWatch;
  readonly #sharing: TableSharing;
  /**
   * The numbers of the plans that the reader thread keeps. Both sides discard plans by the same
   * rule.
   */
  readonly #plans = new KeptPlans<true>();
  #port: ReaderPort | undefined;
  #isReady = false;
  #memory: ReaderMemory = { heapBytes: 0, cacheBytes: 0 };
  #job: RunningJob | undefined;

  constructor(parts: ReaderParts, watch: ReaderWatch) {
    this.#parts = parts;
    this.#watch = watch;
    this.#sharing = parts.sharing.newSharing();
    this.events = {
      onMessage: (message) => {
        try {
          this.#receive(message);
        } catch (error) {
          this.#replace(error, "a message could not be processed");
        }
      },
      onFailure: (reason) => this.#lose(reason),
    };
  }

  attach(port: ReaderPort): void {
    this.#port = port;
  }

  /** Whether the thread of the reader has started. */
  get isReady(): boolean {
    return this.#isReady;
  }

  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /**
   * The time for which the reader has been waiting for its statement's client, in milliseconds;
   * undefined if the reader is not waiting.
   */
  get heldUpMs(): number | undefined {
    return this.#job?.heldUpMs;
  }

  /** The memory that the reader used after its most recent statement. */
  get memory(): ReaderMemory {
    return this.#memory;
  }

  /** Fails the statement that the reader is running. */
  abandon(error: Error): void {
    this.#job?.abandon(error);
  }

  knows(plan: number): boolean {
    return this.#plans.has(plan);
  }

  close(reason: string): void {
    this.#port?.close();
    this.#lose(reason);
  }

  /** Tells the reader which files and memory are no longer needed. */
  tellDropped(): void {
    const dropped = this.#sharing.takeDropped();
    if (dropped.segmentIds.length + dropped.memtableIds.length === 0) return;
    this.#port?.post({ kind: "drop", dropped });
  }

  /** Makes the reader release unpacked segment parts. */
  giveBackMemory(): void {
    this.#port?.post({ kind: "give back" });
  }

  /** Starts a statement in the reader. @throws {DatabaseError} @throws {CorruptionError} */
  run(query: ReaderQuery, plan: number, part?: JobPart): ReaderRead {
    assert(this.#job === undefined, "reader: a statement is already running");
    if (this.#port === undefined) throw new Error("A reader thread failed before its statement");
    const { catalog, clock, sharing } = this.#parts;
    const { ledger, namespace, nowMicros, prepared, principal, profile } = query;
    const { slots, snapshotSeq } = query;
    const tables = tablesOf(prepared, catalog);
    // A reader that reads tombstones also receives the history of the tables.
    const withTombstones = mayReadTombstones(prepared);
    const pastSeqs = query.pastSeqs();
    const source = this.knows(plan) ? undefined : this.#sourceOf(query, tables);
    const shares = sharing.share(
      this.#sharing,
      tables.map(({ tableId }) => tableId),
      { upTo: snapshotSeq, pastSeqs, withTombstones },
    );
    const answers = this.#answersTo(query, tables);
    const job: RunningJob = new RunningJob(query, {
      answers,
      clock,
      plan,
      shares,
      isStarted: () => this.#isReady,
      onHung: () => this.#hang(),
      goOn: (message) => this.#goOn(job, message),
      onHeldUp: () => this.#watch.onHeldUp(),
    });
    this.#job = job;
    const { userId } = principal;
    this.#watch.onBegun(userId);
    void job.done.then(() => this.#watch.onDone(userId));
    if (source !== undefined) this.#plans.add(plan, true, source.node);
    try {
      this.#port?.post({
        kind: "run",
        plan,
        source,
        slots,
        principal,
        namespace,
        namespaces: namespacesOf(tables, catalog),
        snapshotSeq,
        pastSeqs,
        nowMicros,
        slept: query.sleeps?.soFar,
        eras: sharing.seqEras,
        tables: shares.tables,
        stagedTableIds: tables.flatMap(({ tableId }) =>
          query.staged?.hasStaged(tableId) === true ? [tableId] : [],
        ),
        dropped: this.#sharing.takeDropped(),
        timeMs: ledger.deadlineMs - clock.monotonicMs(),
        words: job.words,
        part,
        measuredShape: profile && prepared.plan && measuredShape(prepared.plan),
      });
    } catch (error) {
      // The thread did not receive the message, so it is replaced.
      this.#replace(error, "a statement could not be sent to the thread");
    }
    return job;
  }

  #goOn(job: RunningJob, message: FurtherMessage): void {
    // The job may have failed, and the reader may already be running another job.
    if (this.#job !== job) return;
    try {
      this.#port?.post(message);
    } catch (error) {
      this.#replace(error, "the rows for a statement could not be sent to the thread");
    }
  }

  #sourceOf(query: ReaderQuery, tables: readonly TableEntry[]): PlanSource {
    const { catalog, store } = this.#parts;
    const { namespace, principal } = query;
    const { node, types } = query.source();
    const systemViews = systemViewsIn(query.prepared.requirements);
    const place = { catalog, principal };
    const relations = relationsOf({ namespace, node, types }, place, systemViews);
    const counted = tables.map(({ tableId }): [number, number] => [
      tableId,
      store.liveRowCount(tableId, undefined),
    ]);
    return { node, types, namespace, relations, rowCounts: new Map(counted) };
  }

  #answersTo(
    { objects, prepared, principal, sequences, settings, staged }: ReaderQuery,
    tables: readonly TableEntry[],
  ): JobAnswers {
    const { clock, store } = this.#parts;
    const { isImpersonated, role, tokenScope, userId } = principal;
    return new JobAnswers({
      clock,
      store,
      sequences,
      objects,
      settings,
      systemViews: systemViewsIn(prepared.requirements),
      caller: { isImpersonated, role, tokenScope, userId },
      stagedOf: (tableId) => {
        // The table may have been dropped from the catalog in the meantime.
        const table = tables.find((each) => each.tableId === tableId);
        const owner = ownerOf(
          principal,
          defined(table, "reader: job asked for a table it was not given"),
        );
        return staged?.stagedOf(tableId, owner) ?? [];
      },
    });
  }

  #receive(message: FromReader): void {
    if (message.kind === "log") {
      this.#parts.log[message.level](message.text, message.fields);
      return;
    }
    if (message.kind === "ready") {
      this.#isReady = true;
      // If a reader becomes ready while it is still being opened, it need not report this, because
      // no statement waits for it yet.
      if (this.#port !== undefined) this.#watch.onReady();
      return;
    }
    const job = defined(this.#job, "reader: received a report without a running statement");
    if (message.kind === "rows" || message.kind === "text") {
      job.takeRows(message);
      return;
    }
    if (message.kind === "ask") {
      const answer = job.answerTo(message);
      if (answer === undefined) return;
      this.#port?.answer(answer);
      job.noteAnswered();
      return;
    }
    if (message.kind === "left") {
      job.leave(message.reading);
      return;
    }
    if (message.kind === "parted") {
      job.noteParted();
      return;
    }
    if (message.kind === "failed") {
      const error = errorOf(message);
      // The state of a reader after a bug is unknown.
      if (message.failure.kind === "bug") return this.#replace(error, "a bug stopped it");
      // The failed statement's plan may have caused the failure, so the reader discards the plan.
      this.#plans.delete(job.plan);
      job.fail(error);
    } else {
      if (message.kind === "end") this.#memory = message.totals.memory;
      job.end(message.kind === "end" ? message.totals : undefined);
    }
    this.#job = undefined;
  }

  #hang(): void {
    this.#port?.close();
    this.#lose("the thread did not end its statement in time");
  }

  /** Closes the thread of the reader, and fails its statement. */
  #replace(error: unknown, reason: string): void {
    this.#port?.close();
    const job = this.#job;
    this.#job = undefined;
    this.#lose(reason);
    job?.fail(error instanceof Error ? error : new Error(String(error)));
  }

  /** Called when the thread of a reader has ended. */
  #lose(reason: string): void {
    if (this.#port === undefined) return;
    this.#port = undefined;
    const job = this.#job;
    this.#job = undefined;
    this.#watch.onGone(reason);
    if (!this.#isReady) job?.endUnstarted();
    else job?.fail(job.reasonToEnd() ?? new Error(`A reader thread failed: ${reason}`));
  }
}

function errorOf({ failure, place }: Extract<FromReader, { kind: "failed" }>): Error {
  const error = errorFromFailure(failure);
  const isInCell = place !== undefined && error instanceof DatabaseError;
  return isInCell ? new CellError(error, place) : error;
}

/** Returns the catalog entries of the tables that a statement reads. */
function tablesOf(prepared: Prepared, catalog: Catalog): TableEntry[] {
  const { kind, requirements } = prepared;
  const isInsert = kind === "insert" && !prepared.isOfParts;
  const byId = new Map<number, TableEntry>();
  for (const requirement of requirements) {
    if (!("table" in requirement)) continue;
    // An INSERT reads its target table only if its query refers to the table.
    const { action } = requirement;
    if ((action === "write" || action === "rows") && isInsert) continue;
    const { tableId } = requirement.table;
    const table = catalog.tableById(tableId);
    if (table !== undefined) byId.set(tableId, table);
  }
  return [...byId.values()];
}

function namespacesOf(tables: readonly TableEntry[], catalog: Catalog): NamespaceEntry[] {
  const names = new Set(tables.map(({ namespace }) => namespace));
  return [...names].flatMap((name) => catalog.namespace(name) ?? []);
}
