/**
 * Defines the messages between the event loop and a reader in another thread. All of them are
 * plain data.
 *
 *     event loop ──run──► reader ──rows … rows, end | failed | refused──► event loop
 *                ──drop─►
 *
 * In a query divided among several readers, each reader runs its part, and the first reader then
 * runs the rest of the plan on the rows of all parts.
 *
 *     event loop ──run──► first reader ──rows … rows, parted──► event loop ──whole──► first reader
 *                ──run──► others       ──rows … rows, end─────► event loop
 *
 * For a change whose evaluations contain queries, the reader runs these evaluations after it has
 * sent the rows.
 *
 *     event loop ──run──────► reader ──rows … rows, parted──► event loop
 *                ──evaluate─►        ──rows─────────────────►             (as often as needed)
 *                ──finish───►        ──end──────────────────►
 *
 * For a statement with data-modifying WITH parts, the reader reads the rows of one part after
 * another, and receives the rows that earlier parts have returned.
 *
 *     event loop ──run──────► reader ──parted──────────────► event loop
 *                ──returned─►                                              (after each part)
 *                ──read─────►        ──rows … rows, parted─►
 *                ──evaluate─►        ──rows────────────────►               (as often as needed)
 *                ──finish───►        ──end─────────────────►
 *
 * During a job, a reader may ask for rows and ids that only the event loop has. It waits for the
 * answer, which arrives on a separate port.
 *
 *     reader ──ask──► event loop ──answer──► reader
 *
 * Numbers that either side changes while a job runs are in shared memory (`JOB_WORDS`).
 */
import type { Principal } from "../../auth/mod.ts";
import type { LogFields } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { SeqEra } from "../../base/seq_times.ts";
import type { DefinedType, NamespaceEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import type { DroppedShares, SharedTable } from "../../storage/mod.ts";
import type { ThreadFailure } from "../../threads/mod.ts";
import type { Batch, DataType, Row, Value } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { CellPlace } from "../bind/cell_error.ts";
import type { EvaluationName } from "../execute/change/evaluation.ts";
import type { SleptSoFar } from "../execute/context/sleeps.ts";
import type { StagedRow } from "../execute/context/transaction.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import type { ResultFormat } from "../ports/engine.ts";
import type { PlacedMeasures } from "../prepare/measured_nodes.ts";
import type { ObjectAnswer, ObjectCall } from "./object_questions.ts";
import type { SequenceCall } from "./sequence_questions.ts";

/** The indexes of a job's numbers in shared memory. */
export const JOB_WORDS = {
  /**
   * The reason why the job has to end, as an index in `CANCEL_CAUSES` plus 1. The value is 0 as
   * long as the job may continue.
   */
  cancelled: 0,
  /**
   * The total size of the rows that the event loop has taken, in KiB. A reader with too many rows
   * in transit waits until this number grows.
   */
  takenKib: 1,
  /** The number of rows that the job has read from tables, in thousands. */
  kiloRowsRead: 2,
  /** The memory that the statement uses, in KiB. */
  heldKib: 3,
  /**
   * The format in which rows are sent as text, as an index in `FORMATS` plus 1. The value is 0 as
   * long as rows are sent as batches.
   */
  format: 4,
  /** The number of answers that the event loop has sent to the job. */
  answered: 5,
  count: 6,
} as const;

export type JobWords = Int32Array<SharedArrayBuffer>;

export function newJobWords(): JobWords {
  return new Int32Array(new SharedArrayBuffer(JOB_WORDS.count * Int32Array.BYTES_PER_ELEMENT));
}

/** The maximum size of rows in transit to the event loop, in KiB. */
export const WINDOW_KIB = 2048;

export const FORMATS: readonly ResultFormat[] = ["json", "ndjson", "csv"];

export const CANCEL_CAUSES = ["kill", "drop", "shutdown", "transaction"] as const;

/** The relations to which the names in a statement refer, including the names in its views. */
export interface NamedRelations {
  /**
   * The names of the policies that apply to the caller or to the owner of a view, keyed by
   * `policyKey`. Tables without policies have no entry.
   */
  readonly policies: ReadonlyMap<string, readonly string[]>;
  readonly tables: readonly TableEntry[];
  readonly views: readonly ViewEntry[];
  readonly systemViews: readonly NamedSystemView[];
  /** The defined types that the texts of views and functions name, keyed by qualified name. */
  readonly types: ReadonlyMap<string, DefinedType>;
}

export interface NamedSystemView extends Pick<SystemView, "columns" | "isOpen"> {
  /** The qualified name of the view. */
  readonly name: string;
}

/**
 * The input from which a reader compiles a plan. If the statement is a change, the reader only
 * reads the rows that the change needs.
 */
export interface PlanSource {
  readonly node: QueryStatement;
  /**
   * The types of the slots: the types of the parameters, followed by the types of lifted literals.
   */
  readonly types: readonly DataType[];
  /** The namespace in which the job looks up unqualified names. */
  readonly namespace: string;
  readonly relations: NamedRelations;
  /** The number of live rows in each table, on which the join order depends. */
  readonly rowCounts: ReadonlyMap<number, number>;
}

/** The part of a divided query that a reader runs. */
export interface JobPart {
  /**
   * The node at which the plan is divided, as in `PlanDivision`. It is sent together with the
   * shape of the plan.
   */
  readonly at: number;
  readonly shape: string;
  /** Whether this reader also runs the rest of the plan after all parts have ended. */
  readonly isFirst: boolean;
  readonly claims: PartClaims;
}

/**
 * Words in shared memory by which readers divide row groups. The first word counts the row groups
 * already claimed. One word for each reader follows, in the order of their numbers; the value 1
 * means that the reader should claim no more row groups.
 */
export type ClaimWords = Int32Array<SharedArrayBuffer>;

/** The method by which readers agree on the row groups that each of them reads. */
export type PartClaims =
  /** Each row group goes to the first reader that claims it. */
  | { readonly kind: "counter"; readonly words: ClaimWords; readonly number: number }
  /**
   * Readers take turns in a fixed order, so that the same reader always reads the same row groups.
   */
  | { readonly kind: "turn"; readonly number: number; readonly of: number };

export interface QueryJob {
  readonly kind: "run";
  /** The number of the plan to run, which is the same in every reader. */
  readonly plan: number;
  /** The source of the plan; absent if the reader already has the plan. */
  readonly source: PlanSource | undefined;
  readonly slots: readonly Value[];
  readonly principal: Principal;
  readonly namespace: string;
  /** The namespaces of the tables, on which the caller's right to read history depends. */
  readonly namespaces: readonly NamespaceEntry[];
  readonly snapshotSeq: Seq;
  /**
   * The seqs at which the statement reads earlier states of tables, in the order of the indexes of
   * these reads.
   */
  readonly pastSeqs: readonly Seq[];
  readonly nowMicros: number;
  /** The sleeps of the query so far; present only if the query may call pg_sleep. */
  readonly slept: SleptSoFar | undefined;
  readonly eras: readonly SeqEra[];
  readonly tables: readonly SharedTable[];
  /**
   * The ids of the tables in which the transaction has staged rows. Staged rows replace stored
   * rows.
   */
  readonly stagedTableIds: readonly number[];
  readonly dropped: DroppedShares;
  /** The time limit for the job in milliseconds; Infinity if there is none. */
  readonly timeMs: number;
  readonly words: JobWords;
  readonly part: JobPart | undefined;
  /**
   * The shape that the plan must also have in the reader; present only if EXPLAIN ANALYZE measures
   * the statement.
   */
  readonly measuredShape: string | undefined;
}

/** Sends the rows of all parts of a divided query to the first reader. */
export interface WholeMessage {
  readonly kind: "whole";
  readonly gathered: readonly Batch[];
}

/** Sends a reader the rows that one part of a statement has returned. */
export interface ReturnedMessage {
  readonly kind: "returned";
  readonly part: number;
  readonly rows: readonly Batch[];
}

/** Requests the rows that one part of a statement reads. */
export interface ReadMessage {
  readonly kind: "read";
  readonly part: number;
}

/** Requests the rows of one evaluation of a change. */
export interface EvaluateMessage {
  readonly kind: "evaluate";
  /**
   * The number of the part to which the evaluation belongs; absent if the statement has no parts.
   */
  readonly part: number | undefined;
  readonly name: EvaluationName;
  readonly given: Batch;
}

/** Tells the reader that no more evaluations of a change will follow. */
export interface FinishMessage {
  readonly kind: "finish";
}

/** A message that continues a job that has already begun. */
export type FurtherMessage =
  | WholeMessage
  | ReturnedMessage
  | ReadMessage
  | EvaluateMessage
  | FinishMessage;

export interface DropMessage {
  readonly kind: "drop";
  readonly dropped: DroppedShares;
}

/** Makes the reader release unpacked segment parts, because memory is scarce. */
export interface GiveBackMessage {
  readonly kind: "give back";
}

/**
 * A question from a reader: a request for rows, ids or numbers that only the event loop has. A
 * reading is a numbered pass over rows.
 */
export type Question =
  /** Asks for ids that SNOWFLAKE_ID() returns. */
  | { readonly kind: "ids"; readonly count: number }
  /** A call to nextval, currval, lastval or setval in a reader. */
  | { readonly kind: "sequence"; readonly call: SequenceCall }
  /** A lookup of an object by its name or OID. */
  | { readonly kind: "object"; readonly call: ObjectCall }
  /** A call to current_setting or, if `set` is present, to set_config. */
  | {
      readonly kind: "setting";
      readonly name: string;
      readonly set?: { readonly value: string | undefined; readonly isLocal: boolean };
    }
  /**
   * Asks for the next rows of a system view that the caller may see. The rows contain the columns
   * at the given positions.
   */
  | {
      readonly kind: "system";
      readonly reading: number;
      readonly name: string;
      readonly positions: readonly number[];
    }
  /** Asks for the next staged rows of a table. */
  | { readonly kind: "staged"; readonly reading: number; readonly tableId: number };

/**
 * The types of the answers, keyed by kind of question. In an answer with rows, an empty list means
 * that more rows may follow, and undefined means the end.
 */
export interface Answers {
  readonly ids: readonly number[];
  readonly sequence: readonly Value[];
  readonly object: ObjectAnswer;
  readonly setting: string | undefined;
  readonly system: readonly Row[] | undefined;
  readonly staged: readonly KeyedRow[] | undefined;
}

export type KeyedRow = readonly [keyText: string, staged: StagedRow];

export type ReaderAnswer = Answers[keyof Answers];

export interface AnswerMessage {
  /**
   * The number of the question to answer. The reader may have abandoned the question in the
   * meantime.
   */
  readonly number: number;
  readonly answer: ReaderAnswer;
}

export type ToReader = QueryJob | FurtherMessage | DropMessage | GiveBackMessage;

/** The memory that a reader retains between statements, in bytes. */
export interface ReaderMemory {
  /** The size of the reader's heap, including unreachable objects and free space. */
  readonly heapBytes: number;
  /** The size of the unpacked segment parts that the reader keeps, in bytes. */
  readonly cacheBytes: number;
}

/** Totals that a reader reports at the end of a job. */
export interface JobTotals {
  readonly memory: ReaderMemory;
  readonly rowsRead: number;
  /** The time for which the reader has worked on the job, in milliseconds. */
  readonly workedMs: number;
  /** The measurements of EXPLAIN ANALYZE; present only for a statement that it measures. */
  readonly measures?: readonly PlacedMeasures[] | undefined;
  /** The total time for which the request has asked to sleep, in milliseconds. */
  readonly sleepMs: number;
}

export type FromReader =
  /** The thread has started. This is the first message of each thread. */
  | { readonly kind: "ready" }
  | { readonly kind: "rows"; readonly batch: Batch; readonly kib: number }
  /** Rows as UTF-8 text, in the format requested by the event loop. */
  | {
      readonly kind: "text";
      readonly text: Uint8Array<ArrayBuffer>;
      readonly rowCount: number;
      readonly kib: number;
    }
  | { readonly kind: "end"; readonly totals: JobTotals }
  /** A question from a reader to the event loop. The reader waits for the answer. */
  | { readonly kind: "ask"; readonly number: number; readonly question: Question }
  /** The reader has stopped a pass over rows before its end. */
  | { readonly kind: "left"; readonly reading: number }
  /** All rows have been sent, and the job waits for another message. */
  | { readonly kind: "parted" }
  | {
      readonly kind: "failed";
      readonly failure: ThreadFailure;
      /** The cell with the invalid value, if it is known but the position in the SQL is not. */
      readonly place?: CellPlace | undefined;
    }
  /** The reader has compiled the statement to a different plan, and refuses to run it. */
  | { readonly kind: "refused" }
  | {
      readonly kind: "log";
      readonly level: "error" | "warn" | "info" | "debug";
      readonly text: string;
      readonly fields: LogFields;
    };
