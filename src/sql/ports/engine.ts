/**
 * The interface of the SQL layer for the layers above. It runs requests, returns result entries,
 * and plans live queries. `sql/local_engine.ts` implements {@linkcode SqlEngine}.
 */

import type { Principal } from "../../auth/mod.ts";
import type { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { SchemaField, WireCell, WireRow } from "../../protocol/mod.ts";
import type {
  Batch,
  DataType,
  IcuRules,
  Row,
  Value,
  Vector,
  WireParameter,
} from "../../types/mod.ts";
import type { RowPace } from "../execute/context/pace.ts";
import type { CopyFormat } from "../parse/ast/ast.ts";

/** The format of a response. */
export type ResultFormat = "json" | "ndjson" | "csv";

/** A file part of a multipart request. */
export interface UploadedFile {
  /** The file name that the client has sent. */
  readonly name: string;
  readonly mime: string;
  readonly bytes: Uint8Array;
}

export type SqlParameter = WireParameter;

export interface SqlRequest {
  readonly sql: string;
  /**
   * The UTF-8 of `sql`, if the caller has it, so that a long text is not encoded again. The engine
   * may read these bytes until the response is complete or, if the response is streamed, until the
   * stream ends.
   */
  readonly sqlUtf8?: Uint8Array | undefined;
  readonly params: readonly SqlParameter[];
  /** The namespace in which the request looks up unqualified names; "default" if absent. */
  readonly namespace?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** Whether to stop after the request has been parsed, bound and authorised. */
  readonly check?: boolean | undefined;
  /**
   * The format of the response; JSON if absent. A response in any other format contains the rows of
   * one statement.
   */
  readonly format?: ResultFormat | undefined;
  /** Upload parts by placeholder name; present for multipart requests only. */
  readonly files?: ReadonlyMap<string, UploadedFile> | undefined;
  /**
   * The request body of a request that consists of a single COPY statement. Absent in other
   * requests.
   */
  readonly copy?: CopyTransfer | undefined;
  /**
   * Present if the request may run only once for each idempotency key of a user. `digest`
   * identifies the body.
   */
  readonly idempotency?: { readonly key: string; readonly digest: string } | undefined;
  /** The id of the open transaction in which the statements run. */
  readonly transaction?: string | undefined;
  /**
   * Receives a long response while it is being produced. Without a reader, the response is returned
   * as a whole.
   */
  readonly reader?: AnswerReader | undefined;
  /** The server's address as the caller sees it, for SUBSCRIBE TO. */
  readonly server?: ServerAddress | undefined;
  /** The origin of the request, which the audit log records. */
  readonly origin?: { readonly address: string; readonly requestId: string } | undefined;
}

/** The body of a COPY request. */
export interface CopyTransfer {
  /** The data for COPY FROM. Only COPY FROM reads it, and only once. */
  readonly body: CopyBody;
}

/** The body of a request, as a series of pieces. */
export interface CopyBody {
  /**
   * Returns the next bytes; undefined at the end. Rejects if the client disconnects before the end.
   */
  next(): Promise<Uint8Array | undefined>;
  /** Ends the reading early. Further calls do nothing. */
  cancel(): void;
}

/** The address of the server, computed on demand. */
export interface ServerAddress {
  /** The base URL of the server: scheme, host and port. */
  readonly publicUrl: string;
}

/** The client that reads the response, which may disconnect before its end. */
export interface AnswerReader {
  /**
   * Calls `callback` when the client disconnects, or immediately if the client has already
   * disconnected.
   */
  onLeave(callback: () => void): void;
}

/** One entry of `results` in the response to a request. */
export interface StatementResult {
  /** The columns of `rows`; both are present only for statements that return rows. */
  readonly schema?: readonly SchemaField[];
  /** The cells of each row in schema order, ready for JSON.stringify. */
  readonly rows?: readonly (readonly unknown[])[];
  readonly rowCount: number;
  readonly message?: string;
  readonly asUser: string;
  readonly lastSeq?: number | null;
  /** The text or binary data that a COPY TO has written, in consecutive pieces. */
  readonly copied?: readonly Uint8Array<ArrayBuffer>[];
  /** Messages about effects of the statement that its author may not have intended. */
  readonly notices?: readonly string[];
}

export interface SqlResponse {
  /** The entries of completed statements, in order. */
  readonly results: readonly StatementResult[];
  /** The reason why the request stopped. Its `statementIndex` is set. */
  readonly error?: DatabaseError;
  /** The rest of a response that is too long for memory; only for a request with a reader. */
  readonly stream?: AnswerStream;
  /**
   * The number of statements that return rows. It is present if the request was refused because its
   * format allows only one result with rows.
   */
  readonly rowResultCount?: number;
  /** The format of the rows of a COPY TO. */
  readonly copyFormat?: CopyFormat | undefined;
  /** Set if this is the response to an earlier request with the same key. */
  readonly isReplayed?: true;
}

/** A part of a streamed response body. */
export type AnswerPart =
  /** More rows of the current entry. The first such part begins the entry. */
  | {
      readonly kind: "rows";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly rows: readonly (readonly unknown[])[];
    }
  /**
   * More rows as text in the format of the request. JSON rows have no comma before or after them.
   */
  | {
      readonly kind: "text";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly text: Uint8Array<ArrayBuffer>;
      readonly rowCount: number;
    }
  /** The end of the current entry, without its rows, or a whole entry. */
  | { readonly kind: "entry"; readonly result: StatementResult }
  /** The last part. If it contains an error, the current entry has no separate end. */
  | { readonly kind: "end"; readonly error: DatabaseError | undefined };

/** The rest of a response. A caller that does not read it to its end must cancel it. */
export interface AnswerStream {
  /** Returns the next part. The last part is "end". Rejects only for unexpected failures. */
  next(): Promise<AnswerPart>;
  /** Ends the statements like KILL QUERY. */
  cancel(): void;
}

/** The options for a new transaction that spans requests. */
export interface TransactionRequest {
  /** The namespace of unqualified names in the requests of the transaction; "default" if absent. */
  readonly namespace?: string | undefined;
  readonly isReadOnly: boolean;
  /**
   * The time for which the transaction may stay open; `limits.transaction_timeout_secs` if absent
   * or longer.
   */
  readonly timeoutMs?: number | undefined;
}

/** A transaction that spans requests, as shown to the session that opened it. */
export interface TransactionInfo {
  readonly id: string;
  readonly state: "open" | "failed" | "committed" | "rolled back" | "unknown";
  /** For an open transaction: the time at which it is rolled back, in Unix milliseconds. */
  readonly expiresAtMs?: number;
  /** For an open transaction: the time without a request after which it is rolled back. */
  readonly idleMs?: number;
  /** For a committed transaction: its last `_seq`; null if it changed no row. */
  readonly lastSeq?: number | null;
  /** For a transaction that has ended: the reason, worded to complete "it was …" in a message. */
  readonly why?: string;
}

/** The request to commit or roll back a transaction that spans requests. */
export interface TransactionEnd extends Pick<SqlRequest, "idempotency" | "origin" | "timeoutMs"> {
  readonly id: string;
  readonly statement: "COMMIT" | "ROLLBACK";
}

export interface SqlEngine {
  /**
   * Opens a transaction that spans requests.
   * @throws {DatabaseError} LIMIT_EXCEEDED, SHUTTING_DOWN
   */
  openTransaction(principal: Principal, request: TransactionRequest): TransactionInfo;
  /**
   * Returns the state of a transaction that spans requests.
   * @throws {DatabaseError} TRANSACTION_NOT_FOUND
   */
  transaction(principal: Principal, id: string): TransactionInfo;
  /**
   * Ends a transaction. If the transaction has already ended in the same way, the call succeeds
   * again.
   *
   * @throws {DatabaseError} TRANSACTION_NOT_FOUND, TRANSACTION_FAILED, SERIALIZATION_FAILURE …
   */
  endTransaction(principal: Principal, end: TransactionEnd): Promise<TransactionInfo>;
  /**
   * Runs a request. Expected failures are not thrown, but returned in `error`. If nothing has to be
   * awaited, as in a read by key, the response is returned without a promise.
   */
  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse>;
  /**
   * Plans a live query.
   * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
   */
  planLive(principal: Principal, request: LiveRequest): LivePlan;
  /**
   * Plans a live query of any form. It is followed row by row if its rows are rows of one table,
   * and otherwise as a whole.
   *
   * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
   */
  planFollowed(principal: Principal, request: LiveRequest): FollowedPlan;
  /**
   * Ends the running requests with SHUTTING_DOWN, like KILL QUERY, and refuses all later requests.
   * Returns the number of running requests.
   */
  shutDown(): number;
}

export interface LiveRequest {
  readonly sql: string;
  readonly params: readonly SqlParameter[];
  readonly namespace?: string;
  /**
   * Whether a materialised query has to be maintained from the changes to its
   * tables, or evaluated again. If absent, the engine chooses.
   */
  readonly way?: "maintained" | "evaluated" | undefined;
}

/**
 * A compiled expression. SELECT, snapshots, replay and live filters all use the same compiled code.
 */
export interface CompiledExpression {
  readonly type: DataType;
  /** The index of a batch column, if the expression just reads that column. */
  readonly column?: number;
  /**
   * Returns one value per row of `batch`.
   *
   * @throws {DatabaseError} Errors of the expression on a row.
   */
  evaluate(batch: Batch): Vector;
}

/** A declared column that the query of a subscription names. */
export interface NamedColumn {
  readonly columnId: number;
  readonly type: DataType;
}

/**
 * An equality condition by which the live layer finds a query for a changed row, without evaluating
 * the query's filter.
 */
export interface LiveEquality {
  readonly columnId: number;
  readonly value: string | number;
  /** The other conjuncts of the filter; undefined if the filter has no others. */
  readonly rest: CompiledExpression | undefined;
}

/**
 * Decides how many rows are evaluated at a time, based on the time that earlier rows have taken.
 */
export interface LivePace {
  readonly rows: Pick<RowPace, "note" | "rowsMax">;
  monotonicMs(): number;
}

/** The rows of a live query that a search should return. */
export interface SearchRange {
  /** The lower bound (exclusive): only rows above this seq are found. */
  readonly after: Seq;
  /** The upper bound (inclusive): rows that are current at this seq are found. */
  readonly upTo: Seq;
  /** The maximum number of rows to return. */
  readonly rowsMax: number;
  /** Whether the search needs only the seqs of the rows. */
  readonly isOfSeqs: boolean;
}

/**
 * Finds, in another thread, the rows that the filter of a live query keeps, in ascending order of
 * seq.
 */
export interface RowSearch {
  /** Whether every search runs in the other thread, however short it is; only for tests. */
  readonly takesAll: boolean;
  /**
   * Begins a search.
   *
   * @param onArrived Called after `next` has returned "waiting", once it may return something else.
   * @returns undefined if only the event loop can read the rows.
   * @throws {DatabaseError} @throws {CorruptionError}
   */
  begin(range: SearchRange, onArrived: () => void): FoundRows | undefined;
}

/** The rows that a search returns while it runs. */
export interface FoundRows {
  /**
   * Returns the next rows, as the columns of the plan or `_seq` alone.
   *
   * @returns undefined at the end; "refused" if the event loop has to read the rows after all.
   * @throws {DatabaseError} Errors of the filter on a row.
   */
  next(): Batch | "waiting" | "refused" | undefined;
  close(): void;
}

/**
 * A bound live query: the columns that it reads from each row version, and the code that builds its
 * rows.
 */
export interface LivePlan {
  readonly tableId: number;
  /** The name of the table as shown to users: "namespace.table". */
  readonly tableName: string;
  /**
   * The owner of the rows: an account number, or SHARED_OWNER. The binder derives it from the
   * principal.
   */
  readonly owner: number;
  readonly schemaVersion: number;
  /** The ids of the columns that filter and projections read; batches have this order. */
  readonly columnIds: readonly number[];
  /** The condition that rows have to satisfy; if undefined, all rows are kept. */
  readonly filter: CompiledExpression | undefined;
  /** One expression per field. The fields include the primary key and `_seq`. */
  readonly projections: readonly CompiledExpression[];
  /** The pace at which filter and projections are evaluated; undefined if no row can take long. */
  readonly pace: LivePace | undefined;
  /** The search in another thread; absent if there are no other threads. */
  readonly search?: RowSearch | undefined;
  readonly fields: readonly SchemaField[];
  /** The SQL type of each field, for the conversion to wire cells. */
  readonly fieldTypes: readonly DataType[];
  /** The indexes of the fields that are primary key columns. */
  readonly keyFieldIndexes: readonly number[];
  /** The index of the field that contains `_seq`. */
  readonly seqFieldIndex: number;
  /** Plans with the same fingerprint, owner and table produce the same messages. */
  readonly fingerprint: string;
  /** A conjunct `column = constant` of the filter. A row with any other value cannot match. */
  readonly equality: LiveEquality | undefined;
  /**
   * Returns whether a deletion is the expiry of a row, given the seq of the deleted version and the
   * seq of the deletion. Undefined if rows of the table do not expire.
   */
  readonly isExpiry: ((prev: number, seq: number) => boolean) | undefined;
  /** Whether the query selects `*`, in which case adding a column to the table ends it. */
  readonly hasStar: boolean;
  /**
   * A value that differs between callers whose token claims differ; undefined if the query reads no
   * claim.
   */
  readonly claimsKey: string | undefined;
  /** The columns named in the query, each with the position of its first mention. */
  readonly namedColumns: readonly NamedColumn[];
  /**
   * Whether the subscriber may read the rows. It is checked again when definitions change; if it is
   * false, the subscription ends.
   */
  mayRead(): boolean;
}

/** How a query is followed: row by row, or as a whole. */
export type FollowedPlan =
  | { readonly way: "rows"; readonly plan: LivePlan }
  | { readonly way: "result"; readonly plan: ResultPlan };

/** A table that a followed result reads, and the owner whose rows it reads. */
export interface ResultTable {
  readonly tableId: number;
  readonly owner: number;
  /** The name of the table as shown to users: "namespace.table". */
  readonly name: string;
}

/** A term of ORDER BY in a live query. */
export interface ResultSort {
  /** The index of the field by which rows are sorted. */
  readonly field: number;
  readonly isDescending: boolean;
  readonly areNullsFirst: boolean;
  /** The rules of ICU by which text is ordered; absent for the order of code points. */
  readonly collation?: IcuRules;
}

/** The rows of a query at one seq, in the order of the query. */
export interface ResultRows {
  readonly seq: Seq;
  /** The seq of the last commit that changed a table of the query, at most `seq`. */
  readonly changedSeq: Seq;
  /** Cells in the order of the fields. Integers beyond 2^53 are bigint. */
  readonly rows: readonly (readonly WireCell[])[];
  /**
   * The time until which the rows stay the same without a commit, in Unix milliseconds. Undefined
   * if the query does not read the time.
   */
  readonly untilMs: number | undefined;
}

/** An evaluation of a live query that is in progress. */
export interface ResultEvaluation {
  /** The rows of the evaluation. The promise rejects with a DatabaseError. */
  readonly result: Promise<ResultRows>;
  cancel(): void;
}

/** The rows that a result loses, and the rows that it gains. A changed row is in both lists. */
export interface ResultChanges {
  readonly removed: readonly (readonly WireCell[])[];
  readonly added: readonly (readonly WireCell[])[];
}

/** The tuples of all partitions that a step changes, with values that were computed from them. */
export interface StepTuples {
  readonly tuples: readonly Row[];
  /** One list of values for each expression, by the compiled expressions. */
  readonly computed: Map<object, readonly (readonly Value[])[] | "failed">;
}

/** Combinations of rows that are added to or removed from the joins in a query. */
export interface JoinChanges {
  readonly tuples: readonly Row[];
  /** For each tuple, 1 if the changes add it, or -1 if they remove it. */
  readonly weights: readonly number[];
  /** The tuples of all partitions, from which values are computed once for all of them. */
  readonly step?: StepTuples;
  /** The index of each tuple in the step. */
  readonly places?: readonly number[];
  /** The seq of the state before the changes. */
  readonly after: Seq;
  /** The seq at which the changed joins have these tuples. */
  readonly upTo: Seq;
}

/**
 * Changes by partition; undefined for a partition whose changes take longer to follow than an
 * evaluation.
 */
export type PartitionedChanges = ReadonlyMap<string, JoinChanges | undefined>;

/** A step of a live query from the state at one seq to the state at another. */
export interface ChangeRange {
  readonly after: Seq;
  /** The end of the step, at most the visible seq. */
  readonly upTo: Seq;
  /** Returns whether a partition has followers. */
  readonly isWanted: (partition: string) => boolean;
}

/** An index in memory over a table, which several queries share. */
export interface IndexInMemory {
  /** The approximate memory of an index, in bytes. */
  readonly bytes: number;
  /**
   * Keeps the rows of earlier seqs until the returned function is called, so that a step which
   * reads them may pause.
   */
  hold(): () => void;
}

/** The commits between two seqs that changed a table of a query. */
export interface Commits {
  /** The last seq of each commit, ascending. */
  readonly seqs: readonly Seq[];
  /**
   * Whether some of them changed a table that only conditions read, such as that of the memberships
   * in a policy. Rows may then appear without a newer table row.
   */
  readonly changeConditions: boolean;
}

/** Computes the changes to a query's tables once for all of its results. */
export interface JoinChangeSource {
  /** The indexes in memory that the live query uses. */
  readonly kept: readonly IndexInMemory[];
  /**
   * Computes the changes by partition, in short steps. Returns undefined if following them is
   * impossible, or would take longer than evaluating the queries again.
   */
  between(range: ChangeRange): Generator<undefined, PartitionedChanges | undefined>;
  /**
   * Returns the commits between two seqs that changed a table; undefined if the changes are too
   * many for {@linkcode between}.
   */
  commitsBetween(range: Pick<ChangeRange, "after" | "upTo">): Commits | undefined;
}

/** Keeps a result up to date from the changes to its tables. */
export interface ResultMaintainer {
  /**
   * The source of the changes that this result follows. Results with the same source follow them
   * together.
   */
  readonly source: JoinChangeSource;
  /** The partition of the changes that affects this result. */
  readonly partition: string;
  /**
   * Builds the indexes in memory that do not exist yet.
   *
   * @param admits Whether an index may take a number of bytes.
   * @returns false if an index may not take the memory that it needs.
   */
  prepare(admits: (index: IndexInMemory, bytes: number) => boolean): Promise<boolean>;
  /** Evaluates the query at the newest visible seq, from which changes can then be followed. */
  begin(): ResultEvaluation;
  /** Applies changes to the result. Returns undefined if the result has to be evaluated again. */
  apply(changes: JoinChanges): ResultChanges | undefined;
  /** Computes in steps what the next `apply` of the same changes needs, if that takes time. */
  computeAhead(changes: JoinChanges): Generator<undefined, void> | undefined;
  /** The approximate memory that is kept in addition to the rows. */
  readonly bytes: number;
}

/** A live query whose whole result the server keeps. */
export interface ResultPlan {
  readonly principal: Principal;
  /** The SQL text of one subscriber's request, from which the query can be planned again. */
  readonly sql: string;
  readonly params: readonly SqlParameter[];
  readonly namespace: string;
  readonly tables: readonly ResultTable[];
  /**
   * Whether the rows of the query change without a commit, as the rows of system views and of
   * tables with a time to live do.
   */
  readonly changesByTime: boolean;
  /**
   * Whether the rows depend on the current time. Each evaluation determines the moment at which
   * they may change next.
   */
  readonly readsClock: boolean;
  /** The fields of a result row. Their names are unique. */
  readonly fields: readonly SchemaField[];
  /** The fields that identify a row; undefined if a row is identified only by its values. */
  readonly keyFields: readonly number[] | undefined;
  /**
   * The seq that follows the field values of each row; undefined if the rows have none. It is
   * always the seq of the newest table row from which the result row is made. That is the seq of
   * the row's last change ("last change"), unless the row may also change because a table row is
   * removed ("newest part"). In both cases, the seq may be too old for a row that a policy begins
   * to permit, or that enters a window.
   */
  readonly rowSeq: "last change" | "newest part" | undefined;
  readonly sort: readonly ResultSort[];
  /** Plans with the same fingerprint have the same rows at every seq. */
  readonly fingerprint: string;
  /**
   * A value that differs between callers whose token claims differ; undefined if the query reads no
   * claim.
   */
  readonly claimsKey: string | undefined;
  /** Whether a user may currently read the rows of the live query. */
  readonly mayRead: (principal: Principal) => boolean;
  /** The newest change to a view, if the query reads a view; otherwise 0. */
  readonly viewsChangedSeq: number;
  /**
   * The owners of views in the query whose tables are read with the owner's rights instead of the
   * caller's.
   */
  readonly viewOwners: readonly string[];
  /**
   * Returns a function that tells whether a row left the result between two seqs because a row of
   * its tables expired; undefined if no row expired.
   */
  expiredBetween(after: Seq, upTo: Seq): ((row: WireRow) => boolean) | undefined;
  /**
   * Evaluates the query at the newest visible seq or at an earlier one, at which all tables are
   * read as they were after the last commit at or before that seq. No right to read history is
   * required, because the reader was able to see these rows at that time. The result rejects with
   * HISTORY_TOO_OLD if some of these rows have been discarded.
   *
   * @param at At most the visible seq.
   */
  evaluate(at?: Seq): ResultEvaluation;
  /**
   * Returns an object that keeps the result up to date; undefined if the query has to be evaluated
   * again after each change.
   */
  maintainer(): ResultMaintainer | undefined;
}
