/**
 * Runs queries, and the reading half of changes, in a thread of their own, one at a time and
 * straight through: no other work waits for this thread.
 *
 * It has no catalog and no log of its own. It reads tables that were shared with it and sends its
 * rows to the event loop, for which it waits once many rows are on their way.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Disk } from "../../base/disk.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { NamespaceEntry } from "../../catalog/mod.ts";
import { ReplicaStore } from "../../storage/mod.ts";
import { failureFrom } from "../../threads/mod.ts";
import { type Batch, portableBatch, vectorFromTexts } from "../../types/mod.ts";
import { CellError } from "../bind/cell_error.ts";
import type { SqlLimits } from "../common/environment.ts";
import { type ResultFormat, rowText } from "../common/row_text.ts";
import { buildPlan } from "../execute/build/build.ts";
import { made, type Operator, type OperatorFactory } from "../execute/run/operator.ts";
import { Profile } from "../execute/run/profile.ts";
import { type DividedPlan, dividedAt, shapeOf } from "../plan/divided.ts";
import { measuredShape, measuresOf } from "../prepare/measured_nodes.ts";
import { newRun, type QueryWorld } from "../prepare/new_run.ts";
import { type Prepared, prepare } from "../prepare/prepared.ts";
import { SpillSpace } from "../spill/mod.ts";
import {
  type Answer,
  type AnswerMessage,
  type Answers,
  FORMATS,
  type FromReader,
  JOB_WORDS,
  type JobPart,
  type JobTotals,
  type JobWords,
  type QueryJob,
  type Question,
  type ToReader,
  WINDOW_KIB,
} from "./job.ts";
import { JobLedger, sleepsIn } from "./job_ledger.ts";
import { KeptPlans } from "./kept_plans.ts";
import { newDivision } from "./part_share.ts";
import { type Asked, Questions } from "./questions.ts";
import { worldIn } from "./relations.ts";

const ENCODER = new TextEncoder();

/** How long a reader sleeps at most before it looks whether its job was cancelled. */
const LOOK_MS = 20;

/** The settings that a reader gets once, at its start. */
export interface ReaderSettings {
  readonly limits: SqlLimits;
  readonly version: string;
  /** For unpacked parts of segments. */
  readonly cacheBytes: number;
  readonly spill: {
    readonly directory: string;
    /** The beginning of the names of its temporary files; no two readers share it. */
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
   * Waits until the event loop has taken more rows than `takenKib`, or for a while. Returns false
   * if it cannot take any meanwhile.
   */
  readonly wait: (words: JobWords, takenKib: number) => boolean;
  /**
   * Waits until the job is cancelled, or for `ms`. Returns false if it cannot wait.
   */
  readonly sleep: (words: JobWords, ms: number) => boolean;
  /**
   * Waits until the event loop has sent more answers than `answeredCount`, or for a while. Returns
   * the oldest answer that was not taken yet, if there is one.
   */
  readonly takeAnswer: (words: JobWords, answeredCount: number) => AnswerMessage | undefined;
}

/** Says that the plan of this reader is not the one that was divided; no failure. */
const OTHER_PLAN: Error = new Error("The plan has come out as another one");

/** A plan that is compiled for the readers that divide it. */
interface DividedQuery {
  readonly at: number;
  readonly shape: string;
  readonly plan: DividedPlan;
  readonly part: OperatorFactory;
  readonly whole: OperatorFactory;
}

type JobMeasures = JobTotals["measures"];

/** Blocks a thread of its own. */
export function waitInThread(words: JobWords, takenKib: number): boolean {
  Atomics.wait(words, JOB_WORDS.takenKib, takenKib, LOOK_MS);
  return true;
}

/** The same until a job is cancelled, or for so long. */
export function sleepInThread(words: JobWords, ms: number): boolean {
  Atomics.wait(words, JOB_WORDS.cancelled, 0, ms);
  return true;
}

/** The same for the answer to a question. */
export function waitForAnswer(words: JobWords, answeredCount: number): void {
  Atomics.wait(words, JOB_WORDS.answered, answeredCount, LOOK_MS);
}

export class QueryReader {
  readonly #parts: QueryReaderParts;
  readonly #store: ReplicaStore;
  readonly #spillSpace: SpillSpace;
  readonly #plans = new KeptPlans<Prepared>();
  readonly #divided = new WeakMap<Prepared, DividedQuery>();
  /** The questions of the job at hand. */
  #questions: Questions | undefined;
  #questionCount = 0;
  /** How long the job has worked before the message at hand, and when that came. */
  #workedMs = 0;
  #sinceMs = 0;
  /** Goes on once the rows of all parts have come. */
  #whole: ((gathered: readonly Batch[]) => void) | undefined;

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
    if (message.kind === "drop") {
      this.#store.drop(message.dropped);
      return;
    }
    const whole = this.#whole;
    this.#whole = undefined;
    // The part may have failed before it was told of the others.
    if (message.kind === "whole" && whole === undefined) return;
    this.#sinceMs = this.#parts.clock.monotonicMs();
    try {
      if (message.kind === "run") {
        this.#workedMs = 0;
        this.#run(message);
      } else {
        whole?.(message.gathered);
      }
    } catch (error) {
      if (error === OTHER_PLAN) this.#post({ kind: "refused" });
      else this.#fail(error);
    }
    // The rows that it got may be many.
    if (this.#whole === undefined) this.#questions = undefined;
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
    const { namespace, nowMicros, part, principal, slots, snapshotSeq } = job;
    const division = part === undefined ? undefined : newDivision(part);
    const profile = this.#profileOf(job, prepared);
    const run = newRun(this.#world(job), {
      principal,
      namespace,
      slots,
      atSeq: snapshotSeq,
      nowMicros,
      staged: questions,
      sleeps: sleepsIn(job, ledger, this.#parts),
      ledger,
      division,
      profile,
    });
    const sender = new RowSender(job.words, prepared, this.#parts);
    const drained = (build: OperatorFactory, columnCount: number): void => {
      drainInto(sender, made(build, run), { columnCount, ledger });
    };
    const { build, columnCount, plan } = prepared;
    const measured = (divided?: DividedPlan & { at: number }): JobMeasures =>
      profile && plan && measuresOf(profile, plan, divided);
    if (part === undefined || division === undefined) {
      const reads = defined(build, "a reader is given what reads rows");
      this.#ending(ledger, () => drained(reads, columnCount), measured);
      return;
    }
    const divided = this.#dividedOf(prepared, part);
    const measuredParts = (): JobMeasures => measured({ ...divided.plan, at: divided.at });
    const ownPart = (): void => drained(divided.part, divided.plan.part.columns.length);
    if (!part.isFirst) {
      this.#ending(ledger, ownPart, measuredParts);
      return;
    }
    closingIfFailed(ledger, ownPart);
    this.#whole = (gathered) => {
      division.gathered = gathered;
      this.#ending(
        ledger,
        () => {
          ledger.look();
          drained(divided.whole, columnCount);
        },
        measuredParts,
      );
    };
    this.#workedMs = this.#worked();
    this.#post({ kind: "parted" });
  }

  /** The last that a job does. */
  #ending(ledger: JobLedger, work: () => void, measured: () => JobMeasures): void {
    closingIfFailed(ledger, work);
    ledger.temporary?.close();
    const { rowsRead, sleepMs } = ledger;
    const totals = { rowsRead, sleepMs, workedMs: this.#worked(), measures: measured() };
    this.#post({ kind: "end", totals });
  }

  #worked(): number {
    return this.#workedMs + this.#parts.clock.monotonicMs() - this.#sinceMs;
  }

  /** @throws OTHER_PLAN if the plan of this reader has come out as another one. */
  #profileOf({ measuredShape: shape }: QueryJob, { plan }: Prepared): Profile | undefined {
    if (shape === undefined) return undefined;
    if (plan === undefined || measuredShape(plan) !== shape) throw OTHER_PLAN;
    return new Profile(this.#parts.clock);
  }

  get #currentQuestions(): Questions {
    return defined(this.#questions, "a plan runs in a job");
  }

  #newQuestions({ stagedTableIds, words }: QueryJob, ledger: JobLedger): Questions {
    return new Questions({
      stagedTableIds,
      ask: <K extends Question["kind"]>(question: Asked<K>) =>
        this.#answerTo(question, words, ledger) as Answers[K],
      leave: (reading) => this.#post({ kind: "left", reading }),
    });
  }

  /** @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN */
  #answerTo(question: Question, words: JobWords, ledger: JobLedger): Answer {
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
    this.#post({ kind: "failed", failure, place: cell?.place });
  }

  /** @throws OTHER_PLAN if the plan of this reader has come out as another one. */
  #dividedOf(prepared: Prepared, part: JobPart): DividedQuery {
    const { plan } = prepared;
    const known = this.#divided.get(prepared);
    if (known?.at === part.at && known.shape === part.shape) return known;
    const { at, shape } = part;
    const isSame = plan !== undefined && shapeOf(plan) === shape;
    const divided = isSame ? dividedAt(plan, at) : undefined;
    if (divided === undefined) throw OTHER_PLAN;
    const query: DividedQuery = {
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
    const known = this.#plans.get(plan);
    if (known !== undefined) return known;
    if (source === undefined) throw new Error(`A reader was not told what plan ${plan} is`);
    const { rowCounts } = source;
    const { statement, world } = worldIn(source, {
      questions: () => this.#currentQuestions,
      statistics: {
        rowsOf: ({ tableId }) => rowCounts.get(tableId) ?? 0,
        spanOf: ({ tableId }, columnId) => this.#store.valueSpan(tableId, columnId),
      },
    });
    const prepared = prepare(source.node, { world, statement });
    this.#plans.add(plan, prepared, source.node);
    return prepared;
  }

  #world({ namespaces }: QueryJob): QueryWorld {
    const { clock, random, settings } = this.#parts;
    const byName = new Map(namespaces.map((each): [string, NamespaceEntry] => [each.name, each]));
    return {
      catalog: { namespace: (name) => byName.get(name), tableById: () => undefined },
      clock,
      limits: settings.limits,
      random,
      spillSpace: this.#spillSpace,
      storageQuota: undefined,
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

/** Sends all rows, and closes what they come from. */
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

/** Sends rows, and waits while too many are on their way. */
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

  /** The time of the wait is the client's. @throws {DatabaseError} CANCELLED, SHUTTING_DOWN */
  send(rows: Batch, columnCount: number, ledger: JobLedger): void {
    const { clock, wait } = this.#parts;
    const format = FORMATS[Atomics.load(this.#words, JOB_WORDS.format) - 1];
    this.#sentKib +=
      format === undefined ? this.#sendBatch(rows, columnCount) : this.#sendText(rows, format);
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

/** The rows of a change are stored: the event loop need not make its texts of them. */
function withTextsAsBytes({ columns, rowCount }: Batch): Batch {
  return {
    rowCount,
    columns: columns.map((column) =>
      column.kind === "any" ? (vectorFromTexts(column.values) ?? column) : column,
    ),
  };
}
