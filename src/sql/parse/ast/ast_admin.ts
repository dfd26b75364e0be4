/**
 * The syntax tree of everything that is neither a query nor a definition: transactions, SHOW, SET,
 * and maintenance. See `ast.ts` for the rules that apply to all nodes.
 */
import type { AstNode, ExprLiteral, Name, QName, SelectStatement, Statement } from "./ast.ts";
import type { OptionEntry, UserName } from "./ast_definitions.ts";

/** Everything else that is no query. */
export type AdminStatement =
  | BeginStatement
  | CommitStatement
  | RollbackStatement
  | ExecuteAsStatement
  | ExplainStatement
  | ExplainSubscribeStatement
  | UseNamespaceStatement
  | SetStatementVariable
  | SetTimezone
  | ShowVariableStatement
  | ShowSimpleStatement
  | ShowTablesStatement
  | ShowColumnsStatement
  | ShowStatsStatement
  | DescribeStatement
  | StorageTableStatement
  | StorageCheckStatement
  | KillStatement
  | SubscribeStatement
  | BackupStatement
  | RestoreStatement;

/** BEGIN and START TRANSACTION. SERIALIZABLE is refused by the parser. */
export interface BeginStatement extends AstNode {
  readonly type: "begin" | "start transaction";
  readonly isolationLevel?: "read committed" | "repeatable read" | "snapshot" | undefined;
  readonly writeable?: "read write" | "read only" | undefined;
}

/** COMMIT and END. */
export interface CommitStatement extends AstNode {
  readonly type: "commit";
}

/** ROLLBACK and ABORT. */
export interface RollbackStatement extends AstNode {
  readonly type: "rollback";
}

/** The inner statement may be of any kind; the binder refuses all but queries and DML. */
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
  /** A query, INSERT, UPDATE or DELETE. */
  readonly statement: Statement;
}

/** `EXPLAIN SUBSCRIBE TO …`. */
export interface ExplainSubscribeStatement extends AstNode {
  readonly type: "explain subscribe";
  readonly subscribe: SubscribeStatement;
}

/** USE n, SET NAMESPACE n, SET search_path TO n. */
export interface UseNamespaceStatement extends AstNode {
  readonly type: "use namespace";
  readonly name: Name;
}

/** `SET [SESSION | LOCAL] name = value`. */
export interface SetStatementVariable extends AstNode {
  readonly type: "set";
  readonly variable: Name;
  readonly scope?: "session" | "local" | undefined;
  readonly set: SetValue;
}

/** A value as text, a bare word, or DEFAULT. */
export type SetValue =
  | { readonly type: "value"; readonly value: ExprLiteral }
  | { readonly type: "identifier"; readonly name: string }
  | { readonly type: "default" };

/** `SET TIME ZONE 'UTC'`. */
export interface SetTimezone extends AstNode {
  readonly type: "set timezone";
  readonly to:
    | { readonly type: "value"; readonly value: string }
    | { readonly type: "default" | "local" };
}

/** `SHOW name`. */
export interface ShowVariableStatement extends AstNode {
  readonly type: "show";
  readonly variable: Name;
}

/** SHOW NAMESPACES, STORAGES, MANIFEST, ALL. */
export interface ShowSimpleStatement extends AstNode {
  readonly type: "show namespaces" | "show storages" | "show manifest" | "show all";
}

export interface ShowTablesStatement extends AstNode {
  readonly type: "show tables";
  readonly namespace?: Name | undefined;
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

/** STORAGE FLUSH and COMPACT: of one table, or of all (of one namespace). */
export interface StorageTableStatement extends AstNode {
  readonly type: "storage flush" | "storage compact";
  /** Absent: ALL. */
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
  readonly target: "job" | "query" | "live query" | "connection";
  readonly id: string;
}

/** `SUBSCRIBE TO t WHERE e` has the query `SELECT * FROM t WHERE e`. */
export interface SubscribeStatement extends AstNode {
  readonly type: "subscribe";
  readonly query: SelectStatement;
  /** The text of `query`, as a client would send it. */
  readonly source: string;
  /** Where `source` would begin in the text of the request, from which it is taken. */
  readonly sourceStart: number;
  readonly options?: readonly OptionEntry[] | undefined;
}

export interface BackupStatement extends AstNode {
  readonly type: "backup";
  readonly target: string;
}

/** `to` is absent, a `_seq` in exact digits, or a timestamp text. */
export interface RestoreStatement extends AstNode {
  readonly type: "restore";
  readonly source: string;
  readonly to?:
    | { readonly type: "seq"; readonly text: string }
    | { readonly type: "timestamp"; readonly value: string }
    | undefined;
}
