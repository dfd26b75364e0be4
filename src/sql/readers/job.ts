/**
 * The messages between the event loop and a reader in another thread. All are plain data.
 *
 *     event loop ──run──► reader ──rows … rows, end | failed | refused──► event loop
 *                ──drop─►
 *
 * A query that several readers divide: each runs its part, and the first one the rest over the rows
 * of all parts.
 *
 *     event loop ──run──► first reader ──rows … rows, parted──► event loop ──whole──► first reader
 *                ──run──► others       ──rows … rows, end─────► event loop
 *
 * A reader asks in the middle of its job for rows and ids that only the event loop has. It waits
 * for the answer, which comes by a port of its own.
 *
 *     reader ──ask──► event loop ──answer──► reader
 *
 * Numbers that both change while a job runs lie in shared memory, as `JOB_WORDS` says.
 */
import type { Principal } from "../../auth/mod.ts";
import type { LogFields } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import type { SeqEra } from "../../base/seq_times.ts";
import type { NamespaceEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import type { DroppedShares, SharedTable } from "../../storage/mod.ts";
import type { ThreadFailure } from "../../threads/mod.ts";
import type { Batch, DataType, Row, Value } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { CellPlace } from "../bind/cell_error.ts";
import type { ResultFormat } from "../common/row_text.ts";
import type { SleptSoFar } from "../execute/run/sleeps.ts";
import type { StagedRow } from "../execute/run/transaction.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import type { PlacedMeasures } from "../prepare/measured_nodes.ts";

/** The numbers of a job in shared memory, by their place. */
export const JOB_WORDS = {
  /** Why the job has to end: the place in `CANCEL_CAUSES`, from 1; 0 while it may go on. */
  cancelled: 0,
  /** KiB of rows that the event loop has taken. The reader waits for it to grow. */
  takenKib: 1,
  /** Thousands of rows read from tables. */
  kiloRowsRead: 2,
  /** KiB that the statement holds in memory. */
  heldKib: 3,
  /**
   * The format in which rows are sent as text: its place in `FORMATS`, from 1; 0 while they are
   * sent as batches.
   */
  format: 4,
  /** Answers that the event loop has sent to the job. */
  answered: 5,
  count: 6,
} as const;

export type JobWords = Int32Array<SharedArrayBuffer>;

export function newJobWords(): JobWords {
  return new Int32Array(new SharedArrayBuffer(JOB_WORDS.count * Int32Array.BYTES_PER_ELEMENT));
}

/** KiB of rows that may be on their way to the event loop. */
export const WINDOW_KIB = 2048;

export const FORMATS: readonly ResultFormat[] = ["json", "ndjson", "csv"];

export const CANCEL_CAUSES = ["kill", "drop", "shutdown"] as const;

/** The relations that the names of a statement lead to, its views included. */
export interface NamedRelations {
  readonly tables: readonly TableEntry[];
  readonly views: readonly ViewEntry[];
  readonly systemViews: readonly NamedSystemView[];
}

export interface NamedSystemView extends Pick<SystemView, "columns" | "isOpen"> {
  /** The name of the view, with its namespace. */
  readonly name: string;
}

/** The source of a plan. For a change, a reader reads only the rows that the change needs. */
export interface PlanSource {
  readonly node: QueryStatement;
  /** Types of the parameters; lifted literals follow them in the slots. */
  readonly types: readonly DataType[];
  /** The namespace of unqualified names. */
  readonly namespace: string;
  readonly relations: NamedRelations;
  /** Live rows by table, which decide the order of joins. */
  readonly rowCounts: ReadonlyMap<number, number>;
}

/** The part that one reader does of a divided query. */
export interface JobPart {
  /** The place where the plan is divided, as in `PlanDivision`, and its shape. */
  readonly at: number;
  readonly shape: string;
  /** Whether this reader also runs the rest of the plan. */
  readonly isFirst: boolean;
  readonly claims: PartClaims;
}

/**
 * In shared memory: how many row groups are taken, and then for each reader, by its number, 1 once
 * it should take no more of them.
 */
export type ClaimWords = Int32Array<SharedArrayBuffer>;

/** How readers find out which row groups each of them reads. */
export type PartClaims =
  /** Whoever comes first. */
  | { readonly kind: "counter"; readonly words: ClaimWords; readonly number: number }
  /** In turn, so that the same reader always has the same ones. */
  | { readonly kind: "turn"; readonly number: number; readonly of: number };

export interface QueryJob {
  readonly kind: "run";
  /** Names the plan to every reader. */
  readonly plan: number;
  /** Absent if the reader has the plan. */
  readonly source: PlanSource | undefined;
  readonly slots: readonly Value[];
  readonly principal: Principal;
  readonly namespace: string;
  /** The namespaces of its tables, which decide about history. */
  readonly namespaces: readonly NamespaceEntry[];
  readonly snapshotSeq: Seq;
  readonly nowMicros: number;
  /** Present if the query may sleep. */
  readonly slept: SleptSoFar | undefined;
  readonly eras: readonly SeqEra[];
  readonly tables: readonly SharedTable[];
  /** Tables in whose place rows are read that the transaction has staged. */
  readonly stagedTableIds: readonly number[];
  readonly dropped: DroppedShares;
  /** How long it may take, in milliseconds; Infinity is for ever. */
  readonly timeMs: number;
  readonly words: JobWords;
  readonly part: JobPart | undefined;
  /** The shape that the plan of a measured statement must have here, too. */
  readonly measuredShape: string | undefined;
}

/** The rows of all parts, for the first reader. */
export interface WholeMessage {
  readonly kind: "whole";
  readonly gathered: readonly Batch[];
}

export interface DropMessage {
  readonly kind: "drop";
  readonly dropped: DroppedShares;
}

/** Asks for rows or ids that only the event loop has. A reading is one numbered pass over rows. */
export type Question =
  /** Ids of SNOWFLAKE_ID(). */
  | { readonly kind: "ids"; readonly count: number }
  /** The next rows of a system view, as its caller sees them, of the columns at these positions. */
  | {
      readonly kind: "system";
      readonly reading: number;
      readonly name: string;
      readonly positions: readonly number[];
    }
  /** The next rows that the transaction has staged of a table. */
  | { readonly kind: "staged"; readonly reading: number; readonly tableId: number };

/** By the kind of the question. Rows: none if more may follow, undefined at the end. */
export interface Answers {
  readonly ids: readonly number[];
  readonly system: readonly Row[] | undefined;
  readonly staged: readonly KeyedRow[] | undefined;
}

export type KeyedRow = readonly [keyText: string, staged: StagedRow];

export type Answer = Answers[keyof Answers];

export interface AnswerMessage {
  /** The number of the question: a reader may give up a question before the answer comes. */
  readonly number: number;
  readonly answer: Answer;
}

export type ToReader = QueryJob | WholeMessage | DropMessage;

/** The totals of one job. */
export interface JobTotals {
  readonly rowsRead: number;
  /** How long the reader worked, in milliseconds. */
  readonly workedMs: number;
  /** Present for a statement that is measured. */
  readonly measures?: readonly PlacedMeasures[] | undefined;
  /** How long the request has been asked to sleep in all. */
  readonly sleepMs: number;
}

export type FromReader =
  /** The thread has started; the first message of each. */
  | { readonly kind: "ready" }
  | { readonly kind: "rows"; readonly batch: Batch; readonly kib: number }
  /** The same, as UTF-8 in the format that the event loop has asked for. */
  | {
      readonly kind: "text";
      readonly text: Uint8Array;
      readonly rowCount: number;
      readonly kib: number;
    }
  | { readonly kind: "end"; readonly totals: JobTotals }
  /** The reader waits for the answer. */
  | { readonly kind: "ask"; readonly number: number; readonly question: Question }
  /** A reading of rows is left before its end. */
  | { readonly kind: "left"; readonly reading: number }
  /** The first reader waits for the rows of all parts. */
  | { readonly kind: "parted" }
  | {
      readonly kind: "failed";
      readonly failure: ThreadFailure;
      /** The column whose value is at fault, where that is known and its position is not. */
      readonly place?: CellPlace | undefined;
    }
  /** The plan is another one here. */
  | { readonly kind: "refused" }
  | {
      readonly kind: "log";
      readonly level: "error" | "warn" | "info" | "debug";
      readonly text: string;
      readonly fields: LogFields;
    };
