/**
 * Defines the interface that the SQL layer offers to the layers above. It runs requests and plans
 * live queries. `sql/local_engine.ts` implements {@linkcode SqlEngine}.
 */

import type { Principal } from "../../auth/mod.ts";
import type { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import type { SchemaField, WireCell, WireRow } from "../../protocol/mod.ts";
import type { Batch, DataType, IcuRules, Row, Vector, WireParameter } from "../../types/mod.ts";
import type { RowPace } from "../execute/context/pace.ts";
import type { CopyFormat } from "../parse/ast/ast.ts";

/** The format of a response. */
export type ResultFormat = "json" | "ndjson" | "csv";

/** A file part of a multipart request. */
export interface UploadedFile {
  /** The file name that the client sent. */
  readonly name: string;
  readonly mime: string;
  readonly bytes: Uint8Array;
}

export type SqlParameter = WireParameter;

export interface SqlRequest {
  readonly sql: string;
  /**
   * `sql` as UTF-8, if the caller has it, so that long SQL is not encoded again. The engine may
   * read these bytes until the response is complete or, if it is streamed, until the stream ends.
   */
  readonly sqlUtf8?: Uint8Array | undefined;
  readonly params: readonly SqlParameter[];
  /** The namespace in which the request looks up unqualified names; "default" if absent. */
  readonly namespace?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** Whether to stop after the request has been parsed, bound and authorised. */
  readonly check?: boolean | undefined;
  /**
   * The format of the response; JSON if absent. A response in any other format contains the rows
   * of a single statement.
   */
  readonly format?: ResultFormat | undefined;
  /** Upload parts, keyed by placeholder name; present only for multipart requests. */
  readonly files?: ReadonlyMap<string, UploadedFile> | undefined;
  /**
   * The body of a request that consists of a single COPY statement; absent for all other requests.
   */
  readonly copy?: CopyTransfer | undefined;
  /**
   * Present if the request may run only once per idempotency key and user. `digest` identifies the
   * body.
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
  /** The client address and the id of the request, for the audit log. */
  readonly origin?: { readonly address: string; readonly requestId: string } | undefined;
}

/** The data that a COPY request transfers. */
export interface CopyTransfer {
  /** The data of the request. COPY FROM reads them once, and no other statement reads them. */
  readonly body: CopyBody;
}

/** The body of a request, as a stream of bytes. */
export interface CopyBody {
  /**
   * Returns the next bytes of the body, or undefined at the end. Rejects if the client disconnects
   * before the end.
   */
  next(): Promise<Uint8Array | undefined>;
  /** Stops reading the body before its end. Further calls have no effect. */
  cancel(): void;
}

/** The address of the server, computed on demand. */
export interface ServerAddress {
  /** The base URL of the server: scheme, host and port. */
  readonly publicUrl: string;
}

/** The client reading the response. It may disconnect before the end. */
export interface AnswerReader {
  /**
   * Calls `callback` when the client disconnects, or immediately if the client has already
   * disconnected.
   */
  onLeave(callback: () => void): void;
}

/** An entry of `results` in the response to a request. */
export interface StatementResult {
  /** The columns of `rows`. Both are present only for statements that return rows. */
  readonly schema?: readonly SchemaField[];
  /** The cells of each row in schema order, ready for JSON.stringify. */
  readonly rows?: readonly (readonly unknown[])[];
  readonly rowCount: number;
  readonly message?: string;
  readonly asUser: string;
  readonly lastSeq?: number | null;
  /** The text or binary data that COPY TO returns, in consecutive chunks. */
  readonly copied?: readonly Uint8Array<ArrayBuffer>[];
  /** Messages about effects of the statement that its author may not have intended. */
  readonly notices?: readonly string[];
}

export interface SqlResponse {
  /** The results of the completed statements, in order. */
  readonly results: readonly StatementResult[];
  /** The error at which the request stopped. Its `statementIndex` is set. */
  readonly error?: DatabaseError;
  /**
   * The rest of a response that does not fit in memory; present only for a request with an
   * `AnswerReader`.
   */
  readonly stream?: AnswerStream;
  /**
   * The number of statements that return rows; present if the request was refused because its
   * response format allows only one result with rows.
   */
  readonly rowResultCount?: number;
  /** The format of the data that COPY TO returns. */
  readonly copyFormat?: CopyFormat | undefined;
  /** Set if this is the stored response to an earlier request with the same idempotency key. */
  readonly isReplayed?: true;
}

/** A part of a streamed response body. */
export type AnswerPart =
  /** More rows of the current entry of `results`. The first such part begins the entry. */
  | {
      readonly kind: "rows";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly rows: readonly (readonly unknown[])[];
    }
  /**
   * More rows as text in the format of the request. JSON rows have no leading or trailing comma.
   */
  | {
      readonly kind: "text";
      readonly schema: readonly SchemaField[];
      readonly asUser: string;
      readonly text: Uint8Array<ArrayBuffer>;
      readonly rowCount: number;
    }
  /** Either the end of the current entry of `results`, without its rows, or an entire entry. */
  | { readonly kind: "entry"; readonly result: StatementResult }
  /**
   * The last part of a streamed response. If it contains an error, the current entry of `results`
   * ends without a part of its own.
   */
  | { readonly kind: "end"; readonly error: DatabaseError | undefined };

/** The rest of a response. A caller that does not read the stream to its end must cancel it. */
export interface AnswerStream {
  /**
   * Returns the next part of the response. The last part has the kind "end". Rejects only for
   * unexpected failures.
   */
  next(): Promise<AnswerPart>;
  /** Stops the running statements, as KILL QUERY does. */
  cancel(): void;
}

/** The options for a new transaction that spans requests. */
export interface TransactionRequest {
  /**
   * The namespace in which the transaction's requests look up unqualified names; "default" if
   * absent.
   */
  readonly namespace?: string | undefined;
  readonly isReadOnly: boolean;
  /**
   * How long the transaction may stay open. `limits.transaction_timeout_secs` applies if this
   * value is absent or larger.
   */
  readonly timeoutMs?: number | undefined;
}

/** A transaction that spans requests, as shown to the session that opened it. */
export interface TransactionInfo {
  readonly id: string;
  readonly state: "open" | "failed" | "committed" | "rolled back" | "unknown";
  /** The time at which an open transaction will be rolled back, in Unix milliseconds. */
  readonly expiresAtMs?: number;
  /**
   * The longest time for which an open transaction may be without a request before it is rolled
   * back.
   */
  readonly idleMs?: number;
  /** The last `_seq` of a committed transaction; null if it changed no rows. */
  readonly lastSeq?: number | null;
  /** The reason why the transaction has ended, worded to complete "it was …" in a message. */
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
   * Ends a transaction. Ending it again in the same way also succeeds.
   *
   * @throws {DatabaseError} TRANSACTION_NOT_FOUND, TRANSACTION_FAILED, SERIALIZATION_FAILURE …
   */
  endTransaction(principal: Principal, end: TransactionEnd): Promise<TransactionInfo>;
  /**
   * Runs a request. Expected failures are not thrown, but returned in `error`. If nothing has to
   * be awaited, as in a lookup by key, the response is returned directly rather than as a promise.
   */
  execute(principal: Principal, request: SqlRequest): SqlResponse | Promise<SqlResponse>;
  /**
   * Plans a live query.
   * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
   */
  planLive(principal: Principal, request: LiveRequest): LivePlan;
  /**
   * Plans a live query of any form. A query whose rows are rows of a single table is followed row
   * by row, and any other query as a whole.
   *
   * @throws {DatabaseError} INVALID_SQL, UNSUPPORTED_FEATURE, TABLE_NOT_FOUND, PERMISSION_DENIED …
   */
  planFollowed(principal: Principal, request: LiveRequest): FollowedPlan;
  /**
   * Ends the running requests with SHUTTING_DOWN, as KILL QUERY would, and refuses all later
   * requests. Returns the number of running requests.
   */
  shutDown(): number;
}

export interface LiveRequest {
  readonly sql: string;
  readonly params: readonly SqlParameter[];
  readonly namespace?: string;
  /**
   * Forces a materialised query to be maintained from changes, or to be evaluated again. If
   * absent, the engine chooses.
   */
  readonly way?: "maintained" | "evaluated" | undefined;
}

/**
 * A compiled expression. SELECT, snapshots, replay and live filters all use the same compiled
 * code.
 */
export interface CompiledExpression {
  readonly type: DataType;
  /** The index of a batch column, if the expression merely reads that column. */
  readonly column?: number;
  /**
   * Returns one value per row of `batch`.
   *
   * @throws {DatabaseError} if the expression fails on a row
   */
  evaluate(batch: Batch): Vector;
}

/** A declared column named in the query of a subscription. */
export interface NamedColumn {
  readonly columnId: number;
  readonly type: DataType;
}

/**
 * An equality condition in the filter of a live query. The live layer uses it to find the queries
 * that a changed row concerns, without evaluating their filters.
 */
export interface LiveEquality {
  readonly columnId: number;
  readonly value: string | number;
  /** The conjuncts of the filter other than the equality; undefined if there are none. */
  readonly rest: CompiledExpression | undefined;
}

/** Decides how many rows to evaluate at a time, based on how long earlier rows took. */
export interface LivePace {
  readonly rows: Pick<RowPace, "note" | "rowsMax">;
  monotonicMs(): number;
}

/** Selects the rows of a live query that a search should return. */
export interface SearchRange {
  /** The lower bound (exclusive): only rows above this seq are found. */
  readonly after: Seq;
  /** The upper bound (inclusive): rows that are current at this seq are found. */
  readonly upTo: Seq;
  /** The maximum number of rows to return. */
  readonly rowsMax: number;
  /** Whether the search should return only the seqs of the rows. */
  readonly isOfSeqs: boolean;
}

/**
 * Finds the rows that satisfy a live query's filter. The search runs in another thread and returns
 * the rows in ascending order of seq.
 */
export interface RowSearch {
  /** Whether even the shortest search runs in another thread; true only in tests. */
  readonly takesAll: boolean;
  /**
   * Begins a search.
   *
   * @param onArrived Called after `next` has returned "waiting", once it may return something
   *   else.
   * @returns undefined if only the event loop can read the rows.
   * @throws {DatabaseError}
   * @throws {CorruptionError}
   */
  begin(range: SearchRange, onArrived: () => void): FoundRows | undefined;
}

/** The rows that a running search has found so far. */
export interface FoundRows {
  /**
   * Returns the next rows of the search, with the columns of the plan or with `_seq` alone.
   *
   * @returns undefined at the end; "refused" if the event loop has to read the rows after all.
   * @throws {DatabaseError} if the filter fails on a row
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
  /** The table's name as shown to users: "namespace.table". */
  readonly tableName: string;
  /**
   * The owner of the rows: an account number, or SHARED_OWNER. The binder derives it from the
   * principal.
   */
  readonly owner: number;
  readonly schemaVersion: number;
  /**
   * The ids of the columns that the filter and the projections read. Batches have their columns in
   * this order.
   */
  readonly columnIds: readonly number[];
  /** The condition that rows have to satisfy. If it is undefined, all rows are kept. */
  readonly filter: CompiledExpression | undefined;
  /** An expression for each field. The fields include the primary key and `_seq`. */
  readonly projections: readonly CompiledExpression[];
  /**
   * Limits how many rows the filter and projections evaluate at a time; undefined if no row can
   * take long to evaluate.
   */
  readonly pace: LivePace | undefined;
  /**
   * Searches for rows of the live query in another thread; absent if there are no other threads.
   */
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
  /**
   * A conjunct `column = constant` of the filter. A row with a different value in this column
   * cannot match.
   */
  readonly equality: LiveEquality | undefined;
  /**
   * Returns whether a deletion means that the row has expired, given the seq of the deleted
   * version and the seq of the deletion. Undefined if rows of the table do not expire.
   */
  readonly isExpiry: ((prev: number, seq: number) => boolean) | undefined;
  /**
   * Whether the query selects `*`. If so, the subscription ends when a column is added to the
   * table.
   */
  readonly hasStar: boolean;
  /**
   * A key that differs between callers with different token claims; undefined if the query reads
   * no claims.
   */
  readonly claimsKey: string | undefined;
  /** The columns named in the query, each with the position of its first mention. */
  readonly namedColumns: readonly NamedColumn[];
  /**
   * Returns whether the subscriber may read the rows. This is checked again when definitions
   * change. If the result is false, the subscription ends.
   */
  mayRead(): boolean;
}

/** The plan of a followed query: row by row, or as a whole. */
export type FollowedPlan =
  | { readonly way: "rows"; readonly plan: LivePlan }
  | {
      readonly way: "result";
      readonly plan: ResultPlan;
      /** The construct that prevents the query from being followed row by row. */
      readonly part: string;
    };

/** A table that a followed query reads, and the owner whose rows the query reads. */
export interface ResultTable {
  readonly tableId: number;
  readonly owner: number;
  /** The table's name as shown to users: "namespace.table". */
  readonly name: string;
}

/** A term of ORDER BY in a live query. */
export interface ResultSort {
  /** The index of the field by which rows are sorted. */
  readonly field: number;
  readonly isDescending: boolean;
  readonly areNullsFirst: boolean;
  /** The ICU rules for sorting text; absent for code point order. */
  readonly collation?: IcuRules;
}

/** The rows of a query at one seq, in the order of the query. */
export interface ResultRows {
  readonly seq: Seq;
  /** The seq of the last commit that changed a table of the query, at or before `seq`. */
  readonly changedSeq: Seq;
  /** Cells in the order of the fields. Integers beyond 2^53 are bigint. */
  readonly rows: readonly (readonly WireCell[])[];
  /**
   * The time until which the rows stay the same if there is no commit, in Unix milliseconds.
   * Undefined if the query does not read the current time.
   */
  readonly untilMs: number | undefined;
}

/** A running evaluation of a live query. */
export interface ResultEvaluation {
  /** Resolves to the rows of the evaluation. The promise rejects with a DatabaseError. */
  readonly result: Promise<ResultRows>;
  cancel(): void;
}

/** The rows that the result of a live query loses and gains. A changed row is in both lists. */
export interface ResultChanges {
  readonly removed: readonly (readonly WireCell[])[];
  readonly added: readonly (readonly WireCell[])[];
}

/**
 * The join tuples that one step of a live query changes, for all partitions, and the values
 * computed from them.
 */
export interface StepTuples {
  readonly tuples: readonly Row[];
  /** The values of compiled expressions, with one row of values for each tuple. */
  readonly computed: Map<object, readonly Row[] | "failed">;
}

/** Combinations of rows that changes add to a query's joins or remove from them. */
export interface JoinChanges {
  readonly tuples: readonly Row[];
  /** The weight of each tuple: 1 if the tuple is added, or -1 if it is removed. */
  readonly weights: readonly number[];
  /** The tuples of all partitions. Expressions on them are evaluated once for all partitions. */
  readonly step?: StepTuples;
  /** The index of each tuple in `step`. */
  readonly places?: readonly number[];
  /** The seq of the state of the query before the changes. */
  readonly after: Seq;
  /** The seq of the state of the query after the changes. */
  readonly upTo: Seq;
}

/**
 * The changes to a query's joins, keyed by partition. The value is undefined for a partition in
 * which evaluating the query again takes less time than following its changes.
 */
export type PartitionedChanges = ReadonlyMap<string, JoinChanges | undefined>;

/** One step of a live query, from its state at one seq to its state at a later seq. */
export interface ChangeRange {
  readonly after: Seq;
  /** The seq at which the step ends, at most the visible seq. */
  readonly upTo: Seq;
  /** Returns whether any result follows a partition. */
  readonly isWanted: (partition: string) => boolean;
}

/** An in-memory index on a table, which several queries share. */
export interface IndexInMemory {
  /** The approximate memory of the index, in bytes. */
  readonly bytes: number;
  /**
   * Keeps the rows as they were at earlier seqs until the returned function is called, so that a
   * step that reads these rows may pause.
   */
  hold(): () => void;
}

/** The commits between two seqs that changed any table of a query. */
export interface Commits {
  /** The last seq of each commit, in ascending order. */
  readonly seqs: readonly Seq[];
  /**
   * Whether any of these commits changed a table that only conditions read, such as a table of
   * memberships in a policy. Rows may then appear in the result although none of the table rows
   * behind them are newer.
   */
  readonly changeConditions: boolean;
}

/** Computes the changes to a query's tables once for all of its results. */
export interface JoinChangeSource {
  /** The in-memory indexes that the live query uses. */
  readonly kept: readonly IndexInMemory[];
  /**
   * Computes the changes to a query's joins, keyed by partition, in short steps. Returns undefined
   * if the changes cannot be followed, or if evaluating the queries again would be faster.
   */
  between(range: ChangeRange): Generator<undefined, PartitionedChanges | undefined>;
  /**
   * Returns the commits between two seqs that changed a table of the query; undefined if there are
   * too many changes for {@linkcode between}.
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
  /** The partition whose changes this result follows. */
  readonly partition: string;
  /**
   * Builds the in-memory indexes that do not exist yet.
   *
   * @param admits Returns whether an index may take the given number of bytes.
   * @returns false if an index may not take the memory that it needs.
   */
  prepare(admits: (index: IndexInMemory, bytes: number) => boolean): Promise<boolean>;
  /** Evaluates the query at the newest visible seq, from which changes can then be followed. */
  begin(): ResultEvaluation;
  /** Applies changes to the result. Returns undefined if the result has to be evaluated again. */
  apply(changes: JoinChanges): ResultChanges | undefined;
  /**
   * Performs in steps the computations that the next `apply` of the same changes needs. Returns
   * undefined if `apply` alone takes little time.
   */
  computeAhead(changes: JoinChanges): Generator<undefined, void> | undefined;
  /** The approximate memory of the maintenance state, in bytes, in addition to the result rows. */
  readonly bytes: number;
}

/** A live query for which the server keeps the entire result. */
export interface ResultPlan {
  readonly principal: Principal;
  /** The SQL of one subscriber's request, from which the query can be planned again. */
  readonly sql: string;
  readonly params: readonly SqlParameter[];
  readonly namespace: string;
  readonly tables: readonly ResultTable[];
  /**
   * Whether the rows of the query may change without a commit, like the rows of system views and
   * of tables with a time to live.
   */
  readonly changesByTime: boolean;
  /**
   * Whether the rows depend on the current time. If so, each evaluation determines when they may
   * change next.
   */
  readonly readsClock: boolean;
  /** The fields of a result row. Their names are unique. */
  readonly fields: readonly SchemaField[];
  /**
   * The indexes of the fields that identify a row; undefined if only all of its values together
   * identify it.
   */
  readonly keyFields: readonly number[] | undefined;
  /**
   * The meaning of the seq that follows the field values of each row; undefined if the rows have
   * no seq. It is always the seq of the newest table row from which the result row was made. "last
   * change" means that it is also the seq of the row's last change. "newest part" means that the
   * row may change without a newer seq, because a table row is removed. In both cases, the seq may
   * be too old for a row that a policy begins to permit, or that enters a window.
   */
  readonly rowSeq: "last change" | "newest part" | undefined;
  readonly sort: readonly ResultSort[];
  /** Plans with the same fingerprint have the same rows at every seq. */
  readonly fingerprint: string;
  /**
   * A key that differs between callers with different token claims; undefined if the query reads
   * no claims.
   */
  readonly claimsKey: string | undefined;
  /** Whether a user may currently read the rows of the live query. */
  readonly mayRead: (principal: Principal) => boolean;
  /** The seq of the newest change to a view, if the query reads any view; 0 otherwise. */
  readonly viewsChangedSeq: number;
  /**
   * The owners of the views in the query that read their tables with the rights of the view's
   * owner rather than those of the caller.
   */
  readonly viewOwners: readonly string[];
  /**
   * Returns a function that tells whether a row left the result between two seqs because a table
   * row expired. Returns undefined if no row expired.
   */
  expiredBetween(after: Seq, upTo: Seq): ((row: WireRow) => boolean) | undefined;
  /**
   * Evaluates the query at the newest visible seq, or at the earlier seq `at`. In the latter case,
   * all tables are read as they were after the last commit up to `at`. No right to read history is
   * required, because the subscriber was able to see these rows at that time. The evaluation
   * rejects with HISTORY_TOO_OLD if some of these rows have been discarded.
   *
   * @param at At most the visible seq.
   */
  evaluate(at?: Seq): ResultEvaluation;
  /**
   * Returns an object that keeps the result up to date. Returns undefined if the query has to be
   * evaluated again after each change.
   */
  maintainer(): ResultMaintainer | undefined;
}
