/**
 * Defines the objects that a statement needs to run: the caller, the transaction and the database.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Seq } from "../../base/seq.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { BoundRecursion, CursorRow } from "../bind/bound.ts";
import type { CopyInput } from "../execute/context/execution_context.ts";
import type { Profile } from "../execute/context/profile.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { MaterialisedRows } from "../execute/materialised/materialised_rows.ts";
import type { UploadDeps } from "../files/uploads.ts";
import type { CopySettings } from "../parse/ast/ast.ts";
import type { UploadedFile } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import type { QueryReaders } from "../readers/query_readers.ts";
import type { QuerySource } from "../readers/reader.ts";
import type { AnswerChannel } from "./answer_stream.ts";
import type { RequestSettings } from "./request_settings.ts";

export interface RunOptions {
  readonly principal: Principal;
  readonly namespace: string;
  readonly transaction: Transaction | undefined;
  /** The values of the parameters, followed by the values of lifted literals. */
  readonly parameters: readonly Value[];
  readonly files: ReadonlyMap<string, UploadedFile> | undefined;
  /**
   * The data for a COPY FROM. They can be read only once, so the statement cannot be run again.
   */
  readonly copyInput?: CopyInput | undefined;
  /** The output options of a COPY TO. */
  readonly copyTo?: CopySettings | undefined;
  /** Collects the measurements of EXPLAIN ANALYZE. */
  readonly profile?: Profile | undefined;
  /**
   * Returns the seq at which an attempt reads. If it is absent, the newest visible seq applies.
   */
  atSeq?(): Seq;
  /** The time of the statement. If it is absent, the current time applies. */
  readonly nowMicros?: number;
  /** Receives the notices that programs called by the statement raise. */
  readonly onNotice?: ((message: string) => void) | undefined;
  /**
   * Returns the input from which a reader compiles the statement; absent if the statement has to
   * run on the event loop.
   */
  source?(): QuerySource | undefined;
  /** Binds the statement again if a definition has changed. @throws {DatabaseError} */
  renewed?(): Prepared;
  /**
   * Returns the key of a cursor's current row; absent if the statement can see no cursor.
   * @throws {DatabaseError}
   */
  currentKey?(row: CursorRow): Row;
  /** The trigger whose function runs the statement; absent for any other statement. */
  readonly trigger?: TriggerFrame | undefined;
}

/** The trigger for which a statement runs. */
export interface TriggerFrame {
  /** The nesting depth of triggers at which the statement runs. */
  readonly depth: number;
  /** The transition tables: the rows that the statement reads by the names in REFERENCING. */
  readonly transition: ReadonlyMap<BoundRecursion, MaterialisedRows> | undefined;
}

export interface RunnerOptions {
  readonly ledger: RequestLedger;
  readonly settings: RequestSettings;
  /**
   * Whether the client may receive rows while the statement runs, if there are too many to keep in
   * memory. Otherwise, all rows are in the result.
   */
  readonly isStreamed: boolean;
  /**
   * Returns the channel through which rows are streamed. Called once a query has taken longer than
   * a time slice.
   */
  channelFor(): AnswerChannel;
}

/** The parts of the SQL environment that statements on rows need. */
export interface StatementDeps
  extends ExecutionDeps,
    UploadDeps,
    BindingDeps,
    Pick<SqlEnvironment, "activity" | "history" | "memoryGate" | "settings" | "writeGates"> {
  /** The reader threads; absent if every query runs on the event loop. */
  readonly readers: QueryReaders | undefined;
}
