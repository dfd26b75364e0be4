/**
 * SQL, as the layers above see it: requests in, result entries out; and the plan of a live query.
 * `sql/local_engine.ts` implements {@linkcode SqlEngine}.
 */

import type { Principal } from "../../auth/mod.ts";
import type { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import type { Batch, DataType, Vector, WireParameter } from "../../types/mod.ts";
import type { RowPace } from "../execute/run/pace.ts";
import type { ResultFormat } from "./row_text.ts";

/** A file part of a multipart request. */
export interface UploadedFile {
  /** Original file name. */
  readonly name: string;
  readonly mime: string;
  readonly bytes: Uint8Array;
}

export type Parameter = WireParameter;

export interface SqlRequest {
  readonly sql: string;
  /**
   * Of `sql`, where the caller has it at hand: then a long text is not encoded again. Read until
   * the answer is there; of one with a stream, to the end of that.
   */
  readonly sqlUtf8?: Uint8Array | undefined;
  readonly params: readonly Parameter[];
  /** Namespace of unqualified names; "default" when absent. */
  readonly namespace?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** Parse, bind and authorise only. */
  readonly check?: boolean | undefined;
  /** How the answer is written; absent: as JSON. Any other format has the rows of one statement. */
  readonly format?: ResultFormat | undefined;
  /** Upload parts by placeholder name; present for multipart requests only. */
  readonly files?: ReadonlyMap<string, UploadedFile> | undefined;
  /** Runs the request once for each key of its user; `digest` stands for the body. */
  readonly idempotency?: { readonly key: string; readonly digest: string } | undefined;
  /** Whoever takes a long answer as it comes; without one an answer is whole. */
  readonly reader?: AnswerReader | undefined;
  /** Where the server is for the caller, for SUBSCRIBE TO's answer. */
  readonly server?: ServerAddress | undefined;
  /** Where the request came from, for the audit log. */
  readonly origin?: { readonly address: string; readonly requestId: string } | undefined;
}

/** Found when it is asked for. */
export interface ServerAddress {
  /** Scheme, host and port. */
  readonly publicUrl: string;
}

/** The client of a request, who may leave before its end. */
export interface AnswerReader {
  /** Calls back when the client is gone; at once if it is already. */
  onLeave(callback: () => void): void;
}

/** One entry of `results`. */
export interface StatementResult {
  /** With `rows`, for statements that yield rows. */
  readonly schema?: readonly SchemaField[];
  /** Wire cells in schema order; JSON.stringify writes them as they must be. */
  readonly rows?: readonly (readonly unknown[])[];
  readonly rowCount: number;
  readonly message?: string;
  readonly asUser: string;
  readonly lastSeq?: number | null;
  /** Effects of the statement that its author may not have intended. */
  readonly notices?: readonly string[];
}

export interface SqlResponse {
  /** Statements that completed, in order. */
  readonly results: readonly StatementResult[];
  /** Why the request stopped; its `statementIndex` is set. */
  readonly error?: DatabaseError;
  /** What follows, of an answer that is too long to be held; only for a request with a reader. */
  readonly stream?: AnswerStream;
  /**
   * Set if a request that allows one result was not run: how many of its statements return rows.
   */
  readonly rowResultCount?: number;
  /** The answer of an earlier request with the same key. */
  readonly isReplayed?: true;
}

/** A piece of an answer that is given as it comes. */
export type AnswerPart =
  /** Further rows of the entry at hand; the first ones begin it. */
  | {
      readonly kind: "rows";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly rows: readonly (readonly unknown[])[];
    }
  /** The same, as text in the format of the request; rows of JSON without a comma around them. */
  | {
      readonly kind: "text";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly text: Uint8Array;
      readonly rowCount: number;
    }
  /** An entry ends: the one at hand, without its rows, or a whole one. */
  | { readonly kind: "entry"; readonly result: StatementResult }
  /** The last part. With an error, the entry at hand has no end of its own. */
  | { readonly kind: "end"; readonly error: DatabaseError | undefined };

/** The rest of an answer. Who does not read it to its end cancels it. */
export interface AnswerStream {
  /** The next part; "end" once, as the last. Rejects only with what is no expected failure. */
  next(): Promise<AnswerPart>;
  /** The statements end as if they were killed. */
  cancel(): void;
}

export interface SqlEngine {
  /**
   * Never throws an expected failure: those are in `error`. Answers at once when nothing had to be
   * waited for, as in a read by key.
   */
  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse>;
  /**
   * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
   */
  planLive(principal: Principal, request: LiveRequest): LivePlan;
  /**
   * Ends the requests under way as KILL QUERY does, with SHUTTING_DOWN, and each that is still to
   * come. Returns how many were under way.
   */
  shutDown(): number;
}

export interface LiveRequest {
  readonly sql: string;
  readonly params: readonly Parameter[];
  readonly namespace?: string;
}

/** An expression ready to run. The same code serves SELECT, snapshot, replay and live filter. */
export interface CompiledExpression {
  readonly type: DataType;
  /** Which column of the batch it is, where it is no more than that. */
  readonly column?: number;
  /** One value a row of `batch`. @throws {DatabaseError} What the expression raises on a row. */
  evaluate(batch: Batch): Vector;
}

/** A declared column that a live query names. */
export interface NamedColumn {
  readonly columnId: number;
  readonly type: DataType;
}

/** A condition by which the live layer finds a query, so that it need not be evaluated. */
export interface LiveEquality {
  readonly columnId: number;
  readonly value: string | number;
  /** The other conjuncts of the filter; undefined where there are none. */
  readonly rest: CompiledExpression | undefined;
}

/** How many rows to evaluate at a time, and the clock that times them. */
export interface LivePace {
  readonly rows: Pick<RowPace, "note" | "rowsMax">;
  monotonicMs(): number;
}

/** The rows of a live query that are sought. */
export interface SearchRange {
  /** Exclusive. */
  readonly after: Seq;
  /** Inclusive: rows that are current at this seq. */
  readonly upTo: Seq;
  /** How many at most. */
  readonly rowsMax: number;
  /** Whether only the seq of each row is wanted. */
  readonly isOfSeqs: boolean;
}

/** Finds rows of a live query in another thread: those that its filter keeps, in ascending seq. */
export interface RowSearch {
  /** Whether all rows are sought there, however few it passes by; for tests. */
  readonly takesAll: boolean;
  /**
   * Begins.
   *
   * @param onArrived Called after `next` has said "waiting", once it may say something else.
   * @returns undefined if only the event loop can read them.
   * @throws {DatabaseError} @throws {CorruptionError}
   */
  begin(range: SearchRange, onArrived: () => void): FoundRows | undefined;
}

/** Rows of a search, as they come. */
export interface FoundRows {
  /**
   * The next rows, as the columns of the plan, or `_seq` alone.
   *
   * @returns undefined at the end; "refused" if the event loop has to read them after all.
   * @throws {DatabaseError} What the filter raises on a row.
   */
  next(): Batch | "waiting" | "refused" | undefined;
  close(): void;
}

/** A live query, bound: what to read of each version and what to make of it. */
export interface LivePlan {
  readonly tableId: number;
  /** Table name as shown: "ns.table". */
  readonly tableName: string;
  /** Whose rows: an account number, or SHARED_OWNER. Decided by the binder from the principal. */
  readonly owner: number;
  readonly schemaVersion: number;
  /** Columns that filter and projections read, as storage knows them; the batch has this order. */
  readonly columnIds: readonly number[];
  /** Keeps a row where it is true; undefined keeps all. */
  readonly filter: CompiledExpression | undefined;
  /** One for each field. Primary key and `_seq` are among them. */
  readonly projections: readonly CompiledExpression[];
  /** How filter and projections are to be evaluated; undefined where no row takes long. */
  readonly pace: LivePace | undefined;
  /** Absent where there are no other threads. */
  readonly search?: RowSearch | undefined;
  readonly fields: readonly SchemaField[];
  /** The SQL type of each field, for making cells. */
  readonly fieldTypes: readonly DataType[];
  /** Which fields are primary key columns. */
  readonly keyFieldIndexes: readonly number[];
  /** Which field is `_seq`. */
  readonly seqFieldIndex: number;
  /** Plans with the same fingerprint, owner and table give the same messages. */
  readonly fingerprint: string;
  /** A conjunct `column = constant` of the filter: rows with another value cannot match. */
  readonly equality: LiveEquality | undefined;
  /** The query projects `*`, so a new column ends it. */
  readonly hasStar: boolean;
  /** Columns named anywhere in the query, each where it is first named. */
  readonly namedColumns: readonly NamedColumn[];
  /** Rights, asked again when definitions change: false ends the subscription. */
  mayRead(): boolean;
}
