/**
 * Runs queries, and the queries of changes, in a separate thread. Jobs run one at a time and
 * without pauses, because no other work waits for this thread.
 *
 * The thread has no catalog and no log. It reads tables that the event loop shares with it, and
 * sends rows to the event loop. When too many rows are in transit, it waits for the event loop to
 * take them.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { NamespaceEntry } from "../../catalog/mod.ts";
import { ReplicaStore, type ScanShare } from "../../storage/mod.ts";
import { failureFrom } from "../../threads/mod.ts";
import { type Batch, portableBatch, vectorFromTexts } from "../../types/mod.ts";
import { CellError } from "../bind/cell_error.ts";
import { buildPlan } from "../execute/build/build.ts";
import type { Evaluation } from "../execute/change/evaluation.ts";
import type { ExecutionContext, QueryShare } from "../execute/context/execution_context.ts";
import { made, type Operator, type OperatorFactory } from "../execute/context/operator.ts";
import { Profile } from "../execute/context/profile.ts";
import { MaterialisedRows } from "../execute/materialised/materialised_rows.ts";
import { type DividedPlan, dividedAt, shapeOf } from "../plan/divided.ts";
import type { ResultFormat } from "../ports/engine.ts";
import type { SqlLimits } from "../ports/environment.ts";
import { measuredShape, measuresOf } from "../prepare/measured_nodes.ts";
import { type PartRead, type Prepared, prepare } from "../prepare/prepared.ts";
import { newReaderContext, type QueryDeps } from "../prepare/statement_context.ts";
import { rowText } from "../result/row_text.ts";
import { SpillSpace } from "../spill/mod.ts";
import {
  type AnswerMessage,
  type Answers,
  type ClaimWords,
  type EvaluateMessage,
  FORMATS,
  type FromReader,
  type FurtherMessage,
  JOB_WORDS,
  type JobPart,
  type JobTotals,
  type JobWords,
  type PartClaims,
  type QueryJob,
  type Question,
  type ReaderAnswer,
  type ToReader,
  WINDOW_KIB,
} from "./job.ts";
import { JobLedger, sleepsIn, takenBy } from "./job_ledger.ts";
import { KeptPlans } from "./kept_plans.ts";
import { type QuestionOf, Questions } from "./questions.ts";
import { depsIn } from "./relations.ts";

const ENCODER = new TextEncoder();

/**
 * The longest time in milliseconds that a reader sleeps before it checks whether its job has been
 * cancelled.
 */
const LOOK_MS = 20;

/** The settings that a reader receives once, at startup. */
export interface ReaderSettings {
  readonly limits: SqlLimits;
  /** The memory available to the process, in bytes. */
  readonly memoryBytes: number;
  readonly version: string;
  /** The size of the cache of unpacked segment parts, in bytes. */
  readonly cacheBytes: number;
  readonly spill: {
    readonly directory: string;
    /**
     * The prefix for the names of the reader's temporary files. Each reader has a different
     * prefix.
     */
    readonly prefix: string;
    readonly bytesMax: number;
    readonly minFreeBytes: number;
  };
}

export interface QueryReaderParts {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ReaderSettings;
  readonly post: (message: FromReader, moved: readonly ArrayBuffer[]) => void;
  /**
   * Waits, for a limited time, until the event loop has taken more than `takenKib` KiB of rows.
   * Returns false if the event loop cannot take rows while this function waits.
   */
  readonly wait: (words: JobWords, takenKib: number) => boolean;
  /**
   * Waits for `ms` milliseconds, or until the job is cancelled. Returns false if waiting is
   * impossible.
   */
  readonly sleep: (words: JobWords, ms: number) => boolean;
  /**
   * Waits, for a limited time, until the event loop has sent more answers than `answeredCount`.
   * Returns the oldest answer that this function has not yet returned, if there is one.
   */
  readonly takeAnswer: (words: JobWords, answeredCount: number) => AnswerMessage | undefined;
  /**
   * Records the size of rows that have been sent, because their memory becomes garbage in this
   * thread.
   */
  readonly noteSent: (bytes: number) => void;
}

/**
 * Signals that this reader has compiled a different plan from the plan that was divided. This is
 * not a failure.
 */
const OTHER_PLAN: Error = new Error("The reader thread compiled a different plan");

/** The compiled plan of a query that is divided among readers. */
interface CompiledDivision {
  readonly at: number;
  readonly shape: string;
  readonly plan: DividedPlan;
  readonly part: OperatorFactory;
  readonly whole: OperatorFactory;
}

type JobMeasures = JobTotals["measures"];

/** A job that has sent its rows and now runs evaluations. */
interface EvaluatingJob {
  readonly evaluations: readonly Evaluation[];
  readonly context: ExecutionContext;
  readonly ledger: JobLedger;
  readonly sender: RowSender;
  readonly measured: () => JobMeasures;
}

/** A job that runs one part of a divided query. */
interface DividedJob extends Pick<PartsJob, "drained" | "ledger"> {
  readonly columnCount: number;
  readonly division: QueryShare;
  readonly measured: (divided: DividedPlan & { at: number }) => JobMeasures;
}

/** A job for a statement with data-modifying WITH parts. */
interface PartsJob extends EvaluatingJob {
  readonly reads: readonly PartRead[];
  readonly drained: (build: OperatorFactory, columnCount: number) => void;
}

/** Blocks the thread, for a limited time, until the event loop has taken more rows. */
export function waitInThread(words: JobWords, takenKib: number): boolean {
  Atomics.wait(words, JOB_WORDS.takenKib, takenKib, LOOK_MS);
  return true;
}

/** Blocks the thread for `ms` milliseconds, or until the job is cancelled. */
export function sleepInThread(words: JobWords, ms: number): boolean {
  Atomics.wait(words, JOB_WORDS.cancelled, 0, ms);
  return true;
}

/** Blocks the thread, for a limited time, until the event loop has sent more answers. */
export function waitForAnswer(words: JobWords, answeredCount: number): void {
  Atomics.wait(words, JOB_WORDS.answered, answeredCount, LOOK_MS);
}

export class QueryReader {
  readonly #parts: QueryReaderParts;
  readonly #store: ReplicaStore;
  readonly #spillSpace: SpillSpace;
  readonly #plans = new KeptPlans<Prepared>();
  /** The plan number of the most recent job. */
  #plan = 0;
  readonly #divided = new WeakMap<Prepared, CompiledDivision>();
  /** Sends the questions of the current job to the event loop. */
  #questions: Questions | undefined;
  #questionCount = 0;
  /** The time in milliseconds for which the job had worked before the current message arrived. */
  #workedMs = 0;
  #sinceMs = 0;
  /** Continues a job that is waiting for a message; undefined if no job is waiting. */
  #further: ((message: FurtherMessage) => void) | undefined;

  constructor(parts: QueryReaderParts) {
    this.#parts = parts;
    const { disk } = parts;
    this.#store = new ReplicaStore(disk, {
      cacheBytes: parts.settings.cacheBytes,
      nextId: () => this.#currentQuestions.snowflakeId(),
    });
    this.#spillSpace = new SpillSpace({ disk, log: this.#log(), ...parts.settings.spill });
    this.#post({ kind: "ready" });
  }

  receive(message: ToReader): void {
    if (message.kind === "drop") return this.#store.drop(message.dropped);
    if (message.kind === "give back") return this.#store.giveBackMemory();
    const further = this.#further;
    this.#further = undefined;
    // The job may already have failed when the event loop sent this message.
    if (message.kind !== "run" && further === undefined) return;
    this.#sinceMs = this.#parts.clock.monotonicMs();
    try {
      if (message.kind === "run") {
        this.#plan = message.plan;
        this.#workedMs = 0;
        this.#run(message);
      } else {
        further?.(message);
      }
    } catch (error) {
      if (error === OTHER_PLAN) this.#post({ kind: "refused" });
      else this.#fail(error);
    }
    // The answers to the job's questions may contain many rows, so they are released when it ends.
    if (this.#further === undefined) this.#questions = undefined;
  }

  close(): void {
    this.#store.close();
  }

  #run(job: QueryJob): void {
    const { clock } = this.#parts;
    this.#store.drop(job.dropped);
    this.#store.open(job.tables, { upTo: job.snapshotSeq, eras: job.eras });
    const prepared = this.#planOf(job);
    const ledger = new JobLedger(job, clock);
    const questions = this.#newQuestions(job, ledger);
    this.#questions = questions;
    ledger.questions = questions;
    const { namespace, nowMicros, part, pastSeqs, principal, slots, snapshotSeq } = job;
    const division = part === undefined ? undefined : newDivision(part);
    const profile = this.#profileOf(job, prepared);
    const context = newReaderContext(this.#deps(job), {
      principal,
      namespace,
      slots,
      atSeq: snapshotSeq,
      pastSeqs,
      nowMicros,
      staged: questions,
      sleeps: sleepsIn(job, ledger, this.#parts),
      ledger,
      division,
      profile,
      isOfParts: prepared.kind !== "query" && prepared.isOfParts,
    });
    const sender = new RowSender(job.words, prepared, this.#parts);
    const drained = (build: OperatorFactory, columnCount: number): void => {
      drainInto(sender, made(build, context), { columnCount, ledger });
    };
    const { build, columnCount, plan } = prepared;
    const measured = (divided?: DividedPlan & { at: number }): JobMeasures =>
      profile && plan && measuresOf(profile, plan, divided);
    const { evaluations } = prepared;
    if (prepared.kind !== "query" && prepared.isOfParts) {
      const { reads } = prepared;
      this.#answerParts({ reads, evaluations, ledger, context, sender, measured, drained });
      this.#post({ kind: "parted" });
      return;
    }
    if (evaluations.length > 0) {
      if (build !== undefined) closingIfFailed(ledger, () => drained(build, columnCount));
      this.#evaluate({ evaluations, ledger, context, sender, measured });
      this.#post({ kind: "parted" });
      return;
    }
    if (part === undefined || division === undefined) {
      const reads = defined(build, "reader thread: received a statement that reads no rows");
      this.#ending(ledger, () => drained(reads, columnCount), measured);
      return;
    }
    const divided = this.#dividedOf(prepared, part);
    this.#runPart(divided, part, { columnCount, division, drained, ledger, measured });
  }

  /**
   * Runs one part of a divided query and, in the first reader, the rest of the plan on the rows of
   * all parts.
   */
  #runPart(
    { at, part, plan, whole }: CompiledDivision,
    { isFirst }: JobPart,
    { columnCount, division, drained, ledger, measured }: DividedJob,
  ): void {
    const measuredParts = (): JobMeasures => measured({ ...plan, at });
    const ownPart = (): void => drained(part, plan.part.columns.length);
    if (!isFirst) {
      this.#ending(ledger, ownPart, measuredParts);
      return;
    }
    closingIfFailed(ledger, ownPart);
    this.#wait((message) => {
      division.gathered = message.kind === "whole" ? message.gathered : [];
      this.#ending(
        ledger,
        () => {
          ledger.look();
          drained(whole, columnCount);
        },
        measuredParts,
      );
    });
    this.#post({ kind: "parted" });
  }

  /** Suspends a job until its next message arrives. */
  #wait(further: (message: FurtherMessage) => void): void {
    this.#further = further;
    this.#workedMs = this.#worked();
  }

  /** Runs an evaluation of a change each time the event loop requests one. */
  #evaluate(job: EvaluatingJob): void {
    const { ledger, measured } = job;
    this.#wait((message) => {
      if (message.kind !== "evaluate") {
        this.#ending(ledger, () => ledger.look(), measured);
        return;
      }
      this.#sendEvaluated(job, message);
      this.#evaluate(job);
    });
  }

  #sendEvaluated(
    { evaluations, ledger, context, sender }: EvaluatingJob,
    { given, name: wanted }: EvaluateMessage,
  ): void {
    const evaluation = evaluations.find(({ name }) => name === wanted);
    closingIfFailed(ledger, () => {
      context.effort.beginRows();
      const rows = defined(
        evaluation,
        "reader thread: evaluation is missing from its plan",
      ).evaluate(given, context);
      ledger.look();
      sender.send(rows, rows.columns.length, ledger);
    });
  }

  /**
   * Reads rows for the parts of a statement and runs their evaluations, as the event loop
   * requests.
   */
  #answerParts(job: PartsJob): void {
    const { context, drained, ledger, measured, reads } = job;
    const partAt = (index = -1): PartRead =>
      defined(reads[index], "reader thread: statement part is missing from its plan");
    this.#wait((message) => {
      switch (message.kind) {
        case "returned":
          keepReturned(partAt(message.part), message.rows, context);
          break;
        case "read": {
          const { build, columnCount } = partAt(message.part);
          const reading = defined(
            build,
            "reader thread: rows requested from a part that reads none",
          );
          closingIfFailed(ledger, () => drained(reading, columnCount));
          break;
        }
        case "evaluate": {
          const { evaluations } = partAt(message.part);
          this.#sendEvaluated({ ...job, evaluations }, message);
          break;
        }
        default:
          this.#ending(ledger, () => ledger.look(), measured);
          return;
      }
      this.#answerParts(job);
      if (message.kind === "read") this.#post({ kind: "parted" });
    });
  }

  /** Runs the last step of a job, and then reports its totals. */
  #ending(ledger: JobLedger, work: () => void, measured: () => JobMeasures): void {
    closingIfFailed(ledger, () => {
      work();
      this.#currentQuestions.sequences.finish();
    });
    ledger.temporary?.close();
    const taken = takenBy(ledger, this.#store);
    const totals = { ...taken, workedMs: this.#worked(), measures: measured() };
    this.#post({ kind: "end", totals });
  }

  #worked(): number {
    return this.#workedMs + this.#parts.clock.monotonicMs() - this.#sinceMs;
  }

  /**
   * Returns a profile that collects measurements for EXPLAIN ANALYZE.
   * @throws OTHER_PLAN if this reader has compiled a different plan.
   */
  #profileOf({ measuredShape: shape }: QueryJob, { plan }: Prepared): Profile | undefined {
    if (shape === undefined) return undefined;
    if (plan === undefined || measuredShape(plan) !== shape) throw OTHER_PLAN;
    return new Profile(this.#parts.clock);
  }

  get #currentQuestions(): Questions {
    return defined(this.#questions, "reader thread: plan run outside a job");
  }

  #newQuestions({ stagedTableIds, words }: QueryJob, ledger: JobLedger): Questions {
    return new Questions({
      stagedTableIds,
      ask: <K extends Question["kind"]>(question: QuestionOf<K>) =>
        this.#answerTo(question, words, ledger) as Answers[K],
      leave: (reading) => this.#post({ kind: "left", reading }),
    });
  }

  /**
   * Asks the event loop a question, and waits for the answer.
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  #answerTo(question: Question, words: JobWords, ledger: JobLedger): ReaderAnswer {
    this.#questionCount += 1;
    const number = this.#questionCount;
    const answeredCount = Atomics.load(words, JOB_WORDS.answered);
    this.#post({ kind: "ask", number, question });
    for (;;) {
      const message = this.#parts.takeAnswer(words, answeredCount);
      if (message?.number === number) return message.answer;
      ledger.look();
    }
  }

  #fail(error: unknown): void {
    const cell = error instanceof CellError && error.position === undefined ? error : undefined;
    const failure = failureFrom(cell?.reason ?? error);
    // The event loop discards the plan when it receives the failure. If the reader kept the plan,
    // the two lists of plans would diverge.
    this.#plans.delete(this.#plan);
    this.#post({ kind: "failed", failure, place: cell?.place });
  }

  /**
   * Returns the compiled plan for a part of a divided query.
   * @throws OTHER_PLAN if this reader has compiled a different plan.
   */
  #dividedOf(prepared: Prepared, part: JobPart): CompiledDivision {
    const { plan } = prepared;
    const known = this.#divided.get(prepared);
    if (known?.at === part.at && known.shape === part.shape) return known;
    const { at, shape } = part;
    const isSame = plan !== undefined && shapeOf(plan) === shape;
    const divided = isSame ? dividedAt(plan, at) : undefined;
    if (divided === undefined) throw OTHER_PLAN;
    const query: CompiledDivision = {
      at,
      shape,
      plan: divided,
      part: buildPlan(divided.part),
      whole: buildPlan(divided.whole),
    };
    this.#divided.set(prepared, query);
    return query;
  }

  #planOf({ plan, source }: QueryJob): Prepared {
    if (source === undefined) {
      return defined(this.#plans.get(plan), "reader thread: cached plan is missing");
    }
    const { rowCounts } = source;
    const { statement, deps } = depsIn(source, {
      questions: () => this.#currentQuestions,
      statistics: {
        rowsOf: ({ tableId }) => rowCounts.get(tableId) ?? 0,
        distinctOf: ({ tableId }, columnId) => this.#store.distinctValues(tableId, columnId),
      },
    });
    const prepared = prepare(source.node, { deps, statement });
    this.#plans.add(plan, prepared, source.node);
    return prepared;
  }

  #deps({ namespaces }: QueryJob): QueryDeps {
    const { clock, random, settings } = this.#parts;
    const byName = new Map(namespaces.map((each): [string, NamespaceEntry] => [each.name, each]));
    return {
      catalog: { namespace: (name) => byName.get(name), tableById: () => undefined },
      clock,
      limits: settings.limits,
      random,
      spillSpace: this.#spillSpace,
      storageQuota: undefined,
      sequences: this.#currentQuestions.sequences,
      objects: this.#currentQuestions.objects,
      settings: this.#currentQuestions,
      store: this.#store,
      version: settings.version,
    };
  }

  #log(): Log {
    const to =
      (level: Extract<FromReader, { kind: "log" }>["level"]): Log["error"] =>
      (text, fields = {}) =>
        this.#post({ kind: "log", level, text, fields });
    return { error: to("error"), warn: to("warn"), info: to("info"), debug: to("debug") };
  }

  #post(message: FromReader, moved: readonly ArrayBuffer[] = []): void {
    this.#parts.post(message, moved);
  }
}

/**
 * Keeps the rows that a data-modifying statement in WITH returns, for the parts that read them.
 */
function keepReturned(
  { returned }: PartRead,
  batches: readonly Batch[],
  { memory, parts }: ExecutionContext,
): void {
  const { recursion, types } = defined(
    returned,
    "reader thread: rows returned for a part that returns none",
  );
  const rows = new MaterialisedRows(types, memory);
  for (const { columns, rowCount } of batches) rows.append(columns, rowCount);
  defined(parts, "reader thread: state of the data-modifying parts is missing").rows.set(
    recursion,
    rows,
  );
}

/** Sends all rows of a row source, and then closes the source. */
function drainInto(
  sender: RowSender,
  operator: Operator,
  { columnCount, ledger }: { columnCount: number; ledger: JobLedger },
): void {
  try {
    for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
      ledger.look();
      if (batch.rowCount > 0) sender.send(batch, columnCount, ledger);
    }
  } finally {
    operator.close();
  }
}

function closingIfFailed(ledger: JobLedger, work: () => void): void {
  try {
    work();
  } catch (error) {
    ledger.temporary?.close();
    throw error;
  }
}

/** Sends rows to the event loop, and waits while too many are in transit. */
class RowSender {
  readonly #words: JobWords;
  readonly #parts: QueryReaderParts;
  readonly #prepared: Prepared;
  #sentKib = 0;

  constructor(words: JobWords, prepared: Prepared, parts: QueryReaderParts) {
    this.#words = words;
    this.#prepared = prepared;
    this.#parts = parts;
  }

  /**
   * Sends rows to the event loop. Time spent waiting for the client does not count towards the
   * time limit.
   * @throws {DatabaseError} CANCELLED, SHUTTING_DOWN
   */
  send(rows: Batch, columnCount: number, ledger: JobLedger): void {
    const { clock, noteSent, wait } = this.#parts;
    const format = FORMATS[Atomics.load(this.#words, JOB_WORDS.format) - 1];
    const kib =
      format === undefined ? this.#sendBatch(rows, columnCount) : this.#sendText(rows, format);
    this.#sentKib += kib;
    noteSent(1024 * kib);
    for (;;) {
      const takenKib = Atomics.load(this.#words, JOB_WORDS.takenKib);
      if (this.#sentKib - takenKib <= WINDOW_KIB) return;
      const sinceMs = clock.monotonicMs();
      if (!wait(this.#words, takenKib)) return;
      ledger.deadlineMs += clock.monotonicMs() - sinceMs;
      ledger.look();
    }
  }

  #sendBatch(rows: Batch, columnCount: number): number {
    const sent = this.#prepared.kind === "query" ? rows : withTextsAsBytes(rows);
    const { batch, bytes, moved } = portableBatch(sent, columnCount);
    const kib = Math.ceil(bytes / 1024);
    this.#parts.post({ kind: "rows", batch, kib }, moved);
    return kib;
  }

  #sendText(batch: Batch, format: ResultFormat): number {
    const { cells, fields = [] } = this.#prepared;
    const rows: unknown[][] = [];
    cells.append(batch, rows);
    const text = ENCODER.encode(rowText(rows, format, fields));
    const kib = Math.ceil(text.length / 1024);
    this.#parts.post({ kind: "text", text, rowCount: batch.rowCount, kib }, [text.buffer]);
    return kib;
  }
}

/**
 * Converts the strings in a batch to bytes. The rows of a change are stored, so the event loop
 * need not create strings from them.
 */
function withTextsAsBytes({ columns, rowCount }: Batch): Batch {
  return {
    rowCount,
    columns: columns.map((column) =>
      column.kind === "any" ? (vectorFromTexts(column.values) ?? column) : column,
    ),
  };
}

/**
 * Chooses the row groups that this reader reads in a scan divided among several readers. A reader
 * that is slow or starts late takes fewer row groups.
 */
function newDivision({ claims }: Pick<JobPart, "claims">): QueryShare {
  return { share: shareOf(claims), gathered: [] };
}

function shareOf(claims: PartClaims): ScanShare {
  return claims.kind === "counter" ? new CountedShare(claims) : new ShareInTurn(claims);
}

/**
 * Claims the next row group whenever the scan reaches a row group and holds no claim. All row
 * groups up to the claimed one have therefore been claimed by this reader or by others, and no
 * reader ever advances past the row group that it has claimed.
 */
class CountedShare implements ScanShare {
  readonly #words: ClaimWords;
  readonly #number: number;
  #next = 0;
  #inHand = -1;

  constructor({ number, words }: Extract<PartClaims, { kind: "counter" }>) {
    this.#words = words;
    this.#number = number;
  }

  claimsNext(): boolean {
    const group = this.#next;
    this.#next += 1;
    if (this.#inHand < group && Atomics.load(this.#words, 1 + this.#number) === 0) {
      this.#inHand = Atomics.add(this.#words, 0, 1);
    }
    return this.#inHand === group;
  }
}

class ShareInTurn implements ScanShare {
  readonly #number: number;
  readonly #of: number;
  #next = 0;

  constructor({ number, of }: Extract<PartClaims, { kind: "turn" }>) {
    this.#number = number;
    this.#of = of;
  }

  claimsNext(): boolean {
    const group = this.#next;
    this.#next += 1;
    return group % this.#of === this.#number;
  }
}
