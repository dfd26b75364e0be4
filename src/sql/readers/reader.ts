/**
 * One reader in another thread, as the event loop sees it: what it has been told, and the statement
 * that it runs.
 */

import type { Principal } from "../../auth/mod.ts";
import { assert, defined } from "../../base/assert.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { putNewest } from "../../base/newest.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, NamespaceEntry, TableEntry } from "../../catalog/mod.ts";
import type { SharingStore, Store, TableShares, TableSharing } from "../../storage/mod.ts";
import { errorFromFailure, type MessageThread, type ThreadEvents } from "../../threads/mod.ts";
import type { Batch, DataType, Value } from "../../types/mod.ts";
import { CellError } from "../bind/cell_error.ts";
import type { ResultFormat, RowText } from "../common/row_text.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import type { Prepared } from "../prepare/prepared.ts";
import {
  CANCEL_CAUSES,
  FORMATS,
  type FromReader,
  JOB_WORDS,
  type JobPart,
  type JobWords,
  newJobWords,
  PLANS_MAX,
  type PlanSource,
  type ToReader,
  WINDOW_KIB,
} from "./job.ts";
import { relationsOf } from "./relations.ts";

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
  readonly ledger: QueryLedger;
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
 * in one reader instead of several, or on the event loop.
 */
export type ReadOutcome = "read" | "refused";

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

export interface ReaderParts {
  readonly sharing: SharingStore;
  readonly store: Pick<Store, "liveRowCount">;
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Log;
}

/** Whoever chooses among readers is told what they do. */
export interface ReaderWatch {
  /** It begins a statement of a user. */
  readonly onBegun: (userId: string) => void;
  /** It is done with that, and free if it is not gone. */
  readonly onDone: (userId: string) => void;
  /** It can do no more. */
  readonly onGone: (reason: string) => void;
}

/** How often the event loop looks at a reader that is busy. */
const LOOK_MS = 50;

/** A reader that goes on for so long after its statement had to end hangs. */
const HUNG_MS = 2000;

export class Reader {
  readonly events: ThreadEvents<FromReader>;
  readonly #parts: ReaderParts;
  readonly #watch: ReaderWatch;
  readonly #sharing: TableSharing;
  /** The plans that it has, as it forgets them itself. */
  readonly #plans = new Map<number, true>();
  #port: MessageThread<ToReader> | undefined;
  #job: Job | undefined;

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

  attach(port: MessageThread<ToReader>): void {
    this.#port = port;
  }

  get isBusy(): boolean {
    return this.#job !== undefined;
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
    const { ledger, namespace, nowMicros, prepared, principal, slots, snapshotSeq } = query;
    const tables = tablesOf(prepared, catalog);
    const source = this.knows(plan) ? undefined : this.#sourceOf(query, tables);
    const shares = sharing.share(
      this.#sharing,
      tables.map(({ tableId }) => tableId),
      snapshotSeq,
    );
    const job = new Job(query, { clock, plan, shares, onHung: () => this.#hang() });
    this.#job = job;
    const { userId } = principal;
    this.#watch.onBegun(userId);
    void job.done.then(() => this.#watch.onDone(userId));
    if (source !== undefined) putNewest(this.#plans, [plan, true], PLANS_MAX);
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
        eras: sharing.seqEras,
        tables: shares.tables,
        dropped: this.#sharing.takeDropped(),
        timeMs: ledger.deadlineMs - clock.monotonicMs(),
        words: job.words,
        part,
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
    const relations = relationsOf({ namespace, node, types }, catalog);
    const counted = tables.map(({ tableId }): [number, number] => [
      tableId,
      store.liveRowCount(tableId, undefined),
    ]);
    return { node, types, namespace, relations, rowCounts: new Map(counted) };
  }

  #receive(message: FromReader): void {
    if (message.kind === "log") {
      this.#parts.log[message.level](message.text, message.fields);
      return;
    }
    const job = defined(this.#job, "a reader speaks of its statement");
    if (message.kind === "rows" || message.kind === "text") {
      job.takeRows(message);
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
      job.end(message.kind === "end" ? message.totals.rowsRead : undefined);
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
    job?.fail(job.reasonToEnd() ?? new Error(`A reader thread failed: ${reason}`));
  }
}

type RowMessage = Extract<FromReader, { kind: "rows" | "text" }>;

interface JobOptions {
  readonly clock: Clock;
  readonly plan: number;
  readonly shares: TableShares;
  readonly onHung: () => void;
}

/** The statement that a reader runs. */
class Job implements ReaderRead {
  readonly words: JobWords = newJobWords();
  readonly plan: number;
  readonly #query: ReaderQuery;
  readonly #clock: Clock;
  readonly #shares: TableShares;
  readonly #onHung: () => void;
  readonly #rowsReadBefore: number;
  readonly #settled = Promise.withResolvers<ReadOutcome>();
  readonly #done = Promise.withResolvers<void>();
  readonly #queue: RowMessage[] = [];
  #isPumping = false;
  /** The outcome in the reader, while rows still wait here. */
  #ended: ReadOutcome | Error | undefined;
  #isOver = false;
  #pendingKib = 0;
  /** Bytes that the ledger was told the reader holds. */
  #heldBytes = 0;
  #endAskedMs: number | undefined;
  #cancelLook: CancelTimer;

  constructor(query: ReaderQuery, { clock, onHung, plan, shares }: JobOptions) {
    this.plan = plan;
    this.#query = query;
    this.#clock = clock;
    this.#shares = shares;
    this.#onHung = onHung;
    this.#rowsReadBefore = query.ledger.rowsRead;
    query.ledger.wake = () => this.#look();
    this.#cancelLook = clock.after(LOOK_MS, () => this.#lookLater());
  }

  get outcome(): Promise<ReadOutcome> {
    return this.#settled.promise;
  }

  get done(): Promise<void> {
    return this.#done.promise;
  }

  takeRows(message: RowMessage): void {
    if (this.#isOver) return;
    this.#queue.push(message);
    this.#pendingKib += message.kib;
    if (!this.#isPumping) void this.#pump();
  }

  noteParted(): void {
    this.#query.onParted?.();
  }

  /** The reader is done. @param rowsRead undefined if it refused the statement. */
  end(rowsRead: number | undefined): void {
    this.#letGo();
    if (rowsRead !== undefined) this.#query.ledger.rowsRead = this.#rowsReadBefore + rowsRead;
    this.#ended = rowsRead === undefined ? "refused" : "read";
    if (!this.#isPumping) this.#settle();
  }

  /** The reader is done, or gone. The rows before the failure are still taken. */
  fail(error: Error): void {
    this.#ended = error;
    if (!this.#isPumping || this.reasonToEnd() !== undefined) this.#settle();
    this.#letGo();
    this.#shares.noteDamage(error);
  }

  stop(): void {
    if (this.#isOver) return;
    this.#raise("kill");
    this.#reject(new Error("Nobody wants the rows any more"));
  }

  /** Why the statement has to end; undefined while it may go on. */
  reasonToEnd(): Error | undefined {
    try {
      checkDeadline(this.#query.ledger, this.#clock);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        if (this.#isOver) break;
        this.#give(next);
        const waiting = this.#query.taken?.();
        if (waiting !== undefined) await waiting;
        this.#askForText();
        this.#pendingKib -= next.kib;
        Atomics.add(this.words, JOB_WORDS.takenKib, next.kib);
        Atomics.notify(this.words, JOB_WORDS.takenKib);
      }
    } catch (error) {
      this.#raise("kill");
      this.#reject(error);
    }
    this.#isPumping = false;
    if (this.#ended !== undefined) this.#settle();
  }

  #give(message: RowMessage): void {
    if (message.kind === "rows") this.#query.onBatch(message.batch);
    else this.#query.onText?.(message);
  }

  /** Has the reader encode the rows to come, if they go into a streamed answer. */
  #askForText(): void {
    const format = this.#query.textFormat?.();
    if (format === undefined) return;
    Atomics.store(this.words, JOB_WORDS.format, FORMATS.indexOf(format) + 1);
  }

  #lookLater(): void {
    this.#look();
    if (this.#ended === undefined && !this.#isLetGo) {
      this.#cancelLook = this.#clock.after(LOOK_MS, () => this.#lookLater());
    }
  }

  #look(): void {
    const { ledger } = this.#query;
    // The deadline of a client that takes rows is later than it seems until it has taken them.
    const mayEnd = ledger.cancelledBy !== undefined || !this.#isPumping;
    const reason = mayEnd ? this.reasonToEnd() : undefined;
    if (reason !== undefined) {
      // The caller need not wait until the reader has noticed.
      this.#raise(ledger.cancelledBy ?? "kill");
      this.#reject(reason);
    }
    const kiloRows = Atomics.load(this.words, JOB_WORDS.kiloRowsRead);
    ledger.rowsRead = Math.max(ledger.rowsRead, this.#rowsReadBefore + kiloRows * 1000);
    this.#noteHeld(Atomics.load(this.words, JOB_WORDS.heldKib) * 1024);
    const nowMs = this.#clock.monotonicMs();
    const isToEnd = this.#isOver || nowMs >= ledger.deadlineMs;
    // A reader that waits for its rows to be taken does not hang.
    const isWaiting = !this.#isOver && this.#pendingKib > WINDOW_KIB;
    if (!isToEnd || isWaiting) this.#endAskedMs = undefined;
    else this.#endAskedMs ??= nowMs;
    if (this.#endAskedMs !== undefined && nowMs - this.#endAskedMs >= HUNG_MS) this.#onHung();
  }

  #noteHeld(bytes: number): void {
    this.#query.ledger.bytesElsewhere += bytes - this.#heldBytes;
    this.#heldBytes = bytes;
  }

  #raise(cause: (typeof CANCEL_CAUSES)[number]): void {
    Atomics.store(this.words, JOB_WORDS.cancelled, CANCEL_CAUSES.indexOf(cause) + 1);
    Atomics.notify(this.words, JOB_WORDS.takenKib);
  }

  #isLetGo = false;

  #letGo(): void {
    this.#isLetGo = true;
    this.#cancelLook();
    this.#query.ledger.wake = undefined;
    this.#noteHeld(0);
    this.#shares.release();
    this.#done.resolve();
  }

  #settle(): void {
    this.#isOver = true;
    const ended = defined(this.#ended, "the reader has ended");
    if (ended instanceof Error) this.#settled.reject(ended);
    else this.#settled.resolve(ended);
  }

  #reject(error: unknown): void {
    this.#isOver = true;
    this.#settled.reject(error);
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
