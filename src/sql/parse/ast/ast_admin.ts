/**
 * Defines the syntax tree of all statements that are neither queries nor definitions: transactions,
 * SHOW, SET and maintenance. See `ast.ts` for the rules that apply to all nodes.
 */

import type {
  AstNode,
  DataTypeDef,
  Expr,
  ExprLiteral,
  Name,
  QName,
  QueryStatement,
  SelectFromStatement,
  SelectStatement,
  Statement,
} from "./ast.ts";
import type { CreateTableAsStatement, OptionEntry, UserName } from "./ast_definitions.ts";
import type { FunctionName } from "./ast_functions.ts";

/** A statement that is neither a query nor a definition. */
export type AdminStatement =
  | BeginStatement
  | CommitStatement
  | RollbackStatement
  | SavepointStatement
  | SelectForStatement
  | SetConstraintsStatement
  | TruncateStatement
  | PrepareStatement
  | ExecutePreparedStatement
  | DeallocateStatement
  | CloseCursorStatement
  | DeclareCursorStatement
  | FetchStatement
  | ExecuteAsStatement
  | ExplainStatement
  | ExplainSubscribeStatement
  | UseNamespaceStatement
  | SetStatementVariable
  | SetTimezone
  | ResetAllStatement
  | SetTransactionStatement
  | ShowVariableStatement
  | ShowSimpleStatement
  | ShowTablesStatement
  | ShowTopicsStatement
  | ShowPoliciesStatement
  | ShowColumnsStatement
  | ShowStatsStatement
  | DescribeStatement
  | DescribeFunctionStatement
  | DescribeTopicStatement
  | StorageTableStatement
  | StorageCheckStatement
  | KillStatement
  | SubscribeStatement
  | BackupStatement
  | ExportStatement
  | RestoreStatement;

/** The statements BEGIN and START TRANSACTION. The parser rejects SERIALIZABLE. */
export interface BeginStatement extends AstNode {
  readonly type: "begin" | "start transaction";
  readonly isolationLevel?: "read committed" | "repeatable read" | "snapshot" | undefined;
  readonly writeable?: "read write" | "read only" | undefined;
}

/** COMMIT and END. */
export interface CommitStatement extends AstNode {
  readonly type: "commit";
}

/** The statement `PREPARE name [(type, …)] AS statement`. */
export interface PrepareStatement extends AstNode {
  readonly type: "prepare";
  readonly name: Name;
  readonly types: readonly DataTypeDef[];
  readonly statement: QueryStatement;
  /**
   * The number of parameters: the highest parameter number in the statement, or the number of
   * declared types if that is greater.
   */
  readonly parameterCount: number;
}

/** The statement `EXECUTE name [(constant, …)]`, alone or after `CREATE TABLE … AS`. */
export interface ExecutePreparedStatement extends AstNode {
  readonly type: "execute prepared";
  readonly name: Name;
  readonly args: readonly Expr[];
  /**
   * The table into which CREATE TABLE … AS EXECUTE writes the rows of the query; absent for
   * EXECUTE alone.
   */
  readonly table?: Omit<CreateTableAsStatement, "_location" | "query" | "type"> | undefined;
}

export interface DeclareCursorStatement extends AstNode {
  readonly type: "declare cursor";
  readonly name: Name;
  /** Whether SCROLL (true) or NO SCROLL (false) was written; absent if neither was. */
  readonly isScroll?: boolean | undefined;
  /** True if WITH HOLD was written. */
  readonly isHeld?: true | undefined;
  readonly query: SelectStatement | SelectForStatement;
}

export interface FetchStatement extends AstNode {
  readonly type: "fetch" | "move";
  readonly direction: FetchDirection;
  readonly name: Name;
}

/** The direction of a FETCH or MOVE. The count is infinite for ALL. */
export interface FetchDirection {
  readonly kind: "absolute" | "backward" | "forward" | "relative";
  readonly count: number;
}

export interface CloseCursorStatement extends AstNode {
  readonly type: "close cursor";
  /** The name of the cursor; absent for ALL. */
  readonly name?: Name | undefined;
}

/** The statement `DEALLOCATE [PREPARE] name | ALL`. */
export interface DeallocateStatement extends AstNode {
  readonly type: "deallocate";
  /** The name of the prepared statement; absent for ALL. */
  readonly name?: Name | undefined;
}

/** ROLLBACK and ABORT. */
export interface RollbackStatement extends AstNode {
  readonly type: "rollback";
}

/** The statement `TRUNCATE [TABLE] t, … [RESTART IDENTITY] [CASCADE]`. */
export interface TruncateStatement extends AstNode {
  readonly type: "truncate";
  readonly tables: readonly QName[];
  readonly restart?: true | undefined;
  readonly cascade?: true | undefined;
}

/** The strength of a row lock, which determines the locks with which it conflicts. */
export type LockStrength = "update" | "no key update" | "share" | "key share";

/**
 * A query that locks rows: `SELECT … FOR UPDATE [OF t, …] [NOWAIT | SKIP LOCKED]` (extension). It
 * is always a whole statement, never a part of another statement.
 */
export interface SelectForStatement extends AstNode {
  readonly type: "select for";
  readonly query: SelectFromStatement;
  readonly strength: LockStrength;
  /** The tables whose rows are locked; an empty list means all tables of the query. */
  readonly of: readonly Name[];
  readonly wait?: "nowait" | "skip locked" | undefined;
}

/** The statement SET CONSTRAINTS. It applies to all constraints if `names` is absent. */
export interface SetConstraintsStatement extends AstNode {
  readonly type: "set constraints";
  readonly names?: readonly Name[] | undefined;
  readonly isDeferred: boolean;
}

/** One of SAVEPOINT n, RELEASE [SAVEPOINT] n, and ROLLBACK TO [SAVEPOINT] n. */
export interface SavepointStatement extends AstNode {
  readonly type: "savepoint" | "release savepoint" | "rollback to";
  readonly name: Name;
}

/**
 * The statement EXECUTE AS. The parser accepts any inner statement, but the binder rejects
 * everything except queries and DML.
 */
export interface ExecuteAsStatement extends AstNode {
  readonly type: "execute as";
  readonly user: UserName;
  readonly statement: Statement;
}

export interface ExplainStatement extends AstNode {
  readonly type: "explain";
  readonly analyze: boolean;
  readonly verbose: boolean;
  readonly format: "text" | "json";
  /**
   * The user in `EXPLAIN EXECUTE AS USER …`; absent if the statement is explained for the caller.
   */
  readonly user?: UserName;
  /** The explained statement: a query, INSERT, UPDATE or DELETE. */
  readonly statement: Statement;
}

/** The statement `EXPLAIN SUBSCRIBE TO …`. */
export interface ExplainSubscribeStatement extends AstNode {
  readonly type: "explain subscribe";
  readonly subscribe: SubscribeStatement;
}

/** One of USE n, SET NAMESPACE n, and SET search_path TO n. */
export interface UseNamespaceStatement extends AstNode {
  readonly type: "use namespace";
  readonly name: Name;
}

/** The statement `SET [SESSION | LOCAL] name = value`. */
export interface SetStatementVariable extends AstNode {
  readonly type: "set";
  readonly variable: Name;
  readonly scope?: "session" | "local" | undefined;
  readonly set: SetValue;
}

/** The value of a setting: a literal, an unquoted word, or DEFAULT. */
export type SetValue =
  | { readonly type: "value"; readonly value: ExprLiteral }
  | { readonly type: "identifier"; readonly name: string }
  | { readonly type: "default" };

/**
 * The statements SET TRANSACTION, which applies to the open transaction, and SET SESSION
 * CHARACTERISTICS AS TRANSACTION, which applies to later transactions. The parser rejects READ
 * ONLY.
 */
export interface SetTransactionStatement extends AstNode {
  readonly type: "set transaction";
  readonly isOfSession: boolean;
  readonly isolationLevel?: BeginStatement["isolationLevel"];
  readonly writeable?: "read write" | undefined;
}

/**
 * The statements RESET ALL and DISCARD ALL. RESET of a single setting is represented as SET … TO
 * DEFAULT.
 */
export interface ResetAllStatement extends AstNode {
  readonly type: "reset all";
}

export interface SetTimezone extends AstNode {
  readonly type: "set timezone";
  readonly to:
    | { readonly type: "value"; readonly value: string }
    | { readonly type: "default" | "local" };
}

/** The statement `SHOW name`. */
export interface ShowVariableStatement extends AstNode {
  readonly type: "show";
  readonly variable: Name;
}

/** A SHOW statement without operands, such as SHOW NAMESPACES. */
export interface ShowSimpleStatement extends AstNode {
  readonly type:
    | "show namespaces"
    | "show storages"
    | "show functions"
    | "show webhooks"
    | "show tokens"
    | "show invitations"
    | "show manifest"
    | "show export"
    | "show all";
}

export interface ShowTablesStatement extends AstNode {
  readonly type: "show tables";
  readonly namespace?: Name | undefined;
}

export interface ShowTopicsStatement extends AstNode {
  readonly type: "show topics";
  readonly namespace?: Name | undefined;
}

/** The statement `SHOW POLICIES [ON t]`. */
export interface ShowPoliciesStatement extends AstNode {
  readonly type: "show policies";
  readonly table?: QName | undefined;
}

export interface ShowColumnsStatement extends AstNode {
  readonly type: "show columns";
  readonly table: QName;
}

export interface ShowStatsStatement extends AstNode {
  readonly type: "show stats";
  readonly table: QName;
}

export interface DescribeStatement extends AstNode {
  readonly type: "describe";
  readonly table: QName;
  readonly history?: true | undefined;
}

/** The statement DESCRIBE FUNCTION. */
export interface DescribeFunctionStatement extends AstNode {
  readonly type: "describe function";
  readonly function: FunctionName;
}

/** The statement `DESCRIBE TOPIC t`. */
export interface DescribeTopicStatement extends AstNode {
  readonly type: "describe topic";
  readonly topic: QName;
}

/**
 * The statements STORAGE FLUSH and STORAGE COMPACT, for a single table, for all tables, or for all
 * tables of a namespace.
 */
export interface StorageTableStatement extends AstNode {
  readonly type: "storage flush" | "storage compact";
  /** The table of STORAGE FLUSH or COMPACT; absent for ALL. */
  readonly table?: QName | undefined;
  readonly namespace?: Name | undefined;
}

export interface StorageCheckStatement extends AstNode {
  readonly type: "storage check";
  readonly name: Name;
  readonly extended?: true | undefined;
}

export interface KillStatement extends AstNode {
  readonly type: "kill";
  readonly target: "job" | "query" | "live query" | "connection" | "consumer" | "transaction";
  readonly id: string;
}

/**
 * The statement SUBSCRIBE TO. For `SUBSCRIBE TO t WHERE e`, the query is `SELECT * FROM t WHERE
 * e`.
 */
export interface SubscribeStatement extends AstNode {
  readonly type: "subscribe";
  readonly query: SelectStatement;
  /** The SQL of `query`, as a client would send it. */
  readonly source: string;
  /** The offset in the SQL of the request that corresponds to the start of `source`. */
  readonly sourceStart: number;
  readonly options?: readonly OptionEntry[] | undefined;
}

/** The statement EXPORT USER DATA. */
export interface ExportStatement extends AstNode {
  readonly type: "export user data";
}

export interface BackupStatement extends AstNode {
  readonly type: "backup";
  readonly target: string;
}

/**
 * The statement RESTORE DATABASE. `to` is a `_seq` with all its digits, or a timestamp as text. If
 * it is absent, everything is restored.
 */
export interface RestoreStatement extends AstNode {
  readonly type: "restore";
  readonly source: string;
  readonly to?:
    | { readonly type: "seq"; readonly text: string }
    | { readonly type: "timestamp"; readonly value: string }
    | undefined;
}
