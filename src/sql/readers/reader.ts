/**
 * One reader in another thread, as the event loop sees it: what it has been told, and the statement
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
import type { ResultFormat, RowText } from "../common/row_text.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { Profile } from "../execute/run/profile.ts";
import type { RequestLedger } from "../execute/run/request_ledger.ts";
import type { Sleeps } from "../execute/run/sleeps.ts";
import type { StagedRows } from "../execute/run/transaction.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import { measuredShape } from "../prepare/measured_nodes.ts";
import type { Prepared } from "../prepare/prepared.ts";
import { JobAnswers } from "./answers.ts";
import {
  type AnswerMessage,
  type FromReader,
  type JobPart,
  type PlanSource,
  type ToReader,
} from "./job.ts";
import { KeptPlans } from "./kept_plans.ts";
import { relationsOf, systemViewsIn } from "./relations.ts";
import { RunningJob } from "./running_job.ts";

/** The source of a plan. */
export interface QuerySource {
  readonly node: QueryStatement;
  /** Types of the parameters; lifted literals follow them in the slots. */
  readonly types: readonly DataType[];
}

/** The limits and the consumption of a query. */
export interface QueryLedger extends Pick<RequestLedger, "bytesElsewhere" | "rowsRead" | "wake"> {
  readonly cancelledBy: RequestLedger["cancelledBy"];
  readonly deadlineMs: number;
}

/** A statement whose rows a reader is to read. */
export interface ReaderQuery {
  readonly prepared: Prepared;
  /** Asked for if the reader does not know the plan. */
  source(): QuerySource;
  readonly slots: readonly Value[];
  readonly principal: Principal;
  readonly namespace: string;
  readonly snapshotSeq: Seq;
  readonly nowMicros: number;
  /** The rows that its transaction has staged. */
  readonly staged: StagedRows | undefined;
  /** Absent if the query may not sleep. */
  readonly sleeps?: Sleeps | undefined;
  readonly ledger: QueryLedger;
  /** Present for EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /** @throws {DatabaseError} The statement ends then. */
  onBatch(batch: Batch): void;
  /** Further rows, once `textFormat` has named a format. @throws {DatabaseError} */
  onText?(text: RowText): void;
  /** The format in which further rows shall come; undefined as long as batches shall. */
  textFormat?(): ResultFormat | undefined;
  /** Resolves when the reader may send more; undefined if it may at once. */
  taken?(): Promise<void> | undefined;
  /** The first reader of a divided query has sent its part, and waits for the others. */
  onParted?(): void;
}

/**
 * Whether the rows have all come, or none of them: the statement is then begun anew in another way,
 * in one reader instead of several, or on the event loop. `unstarted` is a reader whose thread
 * could not start.
 */
export type ReadOutcome = "read" | "refused" | "unstarted";

/** A read that a reader has begun for a statement. */
export interface StartedRead {
  readonly outcome: Promise<ReadOutcome>;
  /** Ends it: nobody wants its rows any more. The outcome is then a failure. */
  stop(): void;
}

/** The same, of one reader. */
export interface ReaderRead extends StartedRead {
  /** Resolves once the reader is free again, or gone: that may be later than the outcome. */
  readonly done: Promise<void>;
}

/** A thread that reads, or a stand-in in the thread of the event loop. */
export interface ReaderPort extends MessageThread<ToReader> {
  /** Answers the question for which the reader waits. */
  answer(message: AnswerMessage): void;
}

export interface ReaderParts {
  readonly sharing: SharingStore;
  readonly store: Pick<Store, "liveRowCount" | "snowflakeId">;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Log;
}

/** Whoever chooses among readers is told what they do. */
export interface ReaderWatch {
  /** Its thread has started. */
  readonly onReady: () => void;
  /** It begins a statement of a user. */
  readonly onBegun: (userId: string) => void;
  /** It is done with that, and free if it is not gone. */
  readonly onDone: (userId: string) => void;
  /** The client of its statement does not take the rows; told now and then. */
  readonly onHeldUp: () => void;
  /** It can do no more. */
  readonly onGone: (reason: string) => void;
}

export class Reader {
  readonly events: ThreadEvents<FromReader>;
  readonly #parts: ReaderParts;
  readonly #watch: ReaderWatch;
  readonly #sharing: TableSharing;
  /** The plans that it has, as it forgets them itself. */
  readonly #plans = new KeptPlans<true>();
  #port: ReaderPort | undefined;
  #isReady = false;
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
          this.#replace(error, "its message could not be taken");
        }
      },
      onFailure: (reason) => this.#lose(reason),
    };
  }

  attach(port: ReaderPort): void {
    this.#port = port;
  }

  /** Whether its thread has started. */
  get isReady(): boolean {
    return this.#isReady;
  }

  get isBusy(): boolean {
    return this.#job !== undefined;
  }

  /** How long it has waited for the client of its statement; undefined if it does not. */
  get heldUpMs(): number | undefined {
    return this.#job?.heldUpMs;
  }

  /** Ends the statement that it runs. */
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

  /** Tells which files and memory nobody needs any more. */
  tellDropped(): void {
    const dropped = this.#sharing.takeDropped();
    if (dropped.segmentIds.length + dropped.memtableIds.length === 0) return;
    this.#port?.post({ kind: "drop", dropped });
  }

  /** @throws {DatabaseError} @throws {CorruptionError} */
  run(query: ReaderQuery, plan: number, part?: JobPart): ReaderRead {
    assert(this.#job === undefined, "a reader runs one statement at a time");
    if (this.#port === undefined) throw new Error("A reader thread failed before its statement");
    const { catalog, clock, sharing } = this.#parts;
    const { ledger, namespace, nowMicros, prepared, principal, profile } = query;
    const { slots, snapshotSeq } = query;
    const tables = tablesOf(prepared, catalog);
    const source = this.knows(plan) ? undefined : this.#sourceOf(query, tables);
    const shares = sharing.share(
      this.#sharing,
      tables.map(({ tableId }) => tableId),
      snapshotSeq,
    );
    const answers = this.#answersTo(query, tables);
    const job = new RunningJob(query, {
      answers,
      clock,
      plan,
      shares,
      onHung: () => this.#hang(),
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
        measuredShape: profile && measuredShape(defined(prepared.plan, "a reader runs a plan")),
      });
    } catch (error) {
      // It has not been told what it seems to have.
      this.#replace(error, "its statement could not be sent");
    }
    return job;
  }

  /** Has the first reader of a divided query go on, over the rows of all parts. */
  runWhole(gathered: readonly Batch[]): void {
    try {
      this.#port?.post({ kind: "whole", gathered });
    } catch (error) {
      this.#replace(error, "the rows of its statement could not be sent");
    }
  }

  #sourceOf(query: ReaderQuery, tables: readonly TableEntry[]): PlanSource {
    const { catalog, store } = this.#parts;
    const { namespace } = query;
    const { node, types } = query.source();
    const systemViews = systemViewsIn(query.prepared.requirements);
    const relations = relationsOf({ namespace, node, types }, catalog, systemViews);
    const counted = tables.map(({ tableId }): [number, number] => [
      tableId,
      store.liveRowCount(tableId, undefined),
    ]);
    return { node, types, namespace, relations, rowCounts: new Map(counted) };
  }

  #answersTo(
    { prepared, principal, staged }: ReaderQuery,
    tables: readonly TableEntry[],
  ): JobAnswers {
    const { clock, store } = this.#parts;
    const { isImpersonated, role, userId } = principal;
    return new JobAnswers({
      clock,
      store,
      systemViews: systemViewsIn(prepared.requirements),
      caller: { isImpersonated, role, userId },
      stagedOf: (tableId) => {
        // The catalog may have dropped it since.
        const table = tables.find((each) => each.tableId === tableId);
        const owner = ownerOf(principal, defined(table, "a job reads tables that it was given"));
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
      // In the turn in which it is opened, nobody waits for it yet.
      if (this.#port !== undefined) this.#watch.onReady();
      return;
    }
    const job = defined(this.#job, "a reader speaks of its statement");
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
      // Nobody knows in which state a bug has left it.
      if (message.failure.kind === "bug") return this.#replace(error, "it met a bug");
      // Its plan may be what failed.
      this.#plans.delete(job.plan);
      job.fail(error);
    } else {
      job.end(message.kind === "end" ? message.totals : undefined);
    }
    this.#job = undefined;
  }

  #hang(): void {
    this.#port?.close();
    this.#lose("it did not end its statement in time");
  }

  /** Ends the thread, and its statement with an error. */
  #replace(error: unknown, reason: string): void {
    this.#port?.close();
    const job = this.#job;
    this.#job = undefined;
    this.#lose(reason);
    job?.fail(error instanceof Error ? error : new Error(String(error)));
  }

  /** The thread is gone. */
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

/** The tables that a statement reads, as the catalog has them. */
function tablesOf({ kind, requirements }: Prepared, catalog: Catalog): TableEntry[] {
  const byId = new Map<number, TableEntry>();
  for (const requirement of requirements) {
    if (!("table" in requirement)) continue;
    // An INSERT reads the table that it writes only where its query names it.
    if (requirement.action === "write" && kind === "insert") continue;
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
