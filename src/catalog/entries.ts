/**
 * Defines the entries of the catalog as plain values. An entry is never changed in place: every
 * definition statement creates a new entry and increments the catalog version, so a reader may keep
 * an entry for the duration of a statement.
 */
import type {
  CollationRules,
  DataType,
  DomainRules,
  DomainType,
  EnumLabel,
  RowField,
  TermKind,
  Value,
} from "../types/mod.ts";
import type {
  IndexedPartition,
  PartitionCheck,
  PartitionDefault,
  PartitionEntry,
  PartitionIndex,
  TablePartitioning,
} from "./partition_entries.ts";
import type { PolicyEntry } from "./policy_entries.ts";
import type { TriggerEntry } from "./trigger_entries.ts";

/**
 * The kind of a table, which determines who owns its rows: each row of a USER or STREAM table
 * belongs to a user, whereas the rows of a SHARED table belong to nobody. A STREAM table with an
 * access level is stored as kind "shared" with the option `ttlSeconds`.
 */
export type TableKind = "user" | "shared" | "stream";

export type AccessLevel = "PUBLIC" | "PRIVATE" | "RESTRICTED" | "DBA";

export interface NamespaceEntry {
  readonly name: string;
  /** The id of the user who owns the namespace; undefined if nobody does. */
  readonly owner: string | undefined;
  /** The seq at which the namespace last got a new owner; absent if it never has. */
  readonly ownerSeq?: number;
  readonly options: Readonly<Record<string, string | number | boolean>>;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdAtMs: number;
}

export interface ColumnEntry {
  readonly columnId: number;
  readonly name: string;
  /**
   * The type of the column's values. If the column has a domain, this is the domain's base type.
   */
  readonly type: DataType;
  /** The domain of the column; absent if it has none. */
  readonly domain?: DomainType;
  readonly notNull: boolean;
  /** The column's DEFAULT as SQL text; absent if it has none. */
  readonly defaultSql?: string;
  /** Whether the column is GENERATED ALWAYS, so that explicit values are refused. */
  readonly generatedAlways: boolean;
  /**
   * The kind of an identity column, which gets its numbers from a sequence; absent for any other
   * column. The column's `defaultSql` calls nextval.
   */
  readonly identity?: "always" | "by default";
  /**
   * Whether the column is the hidden key of a table without a primary key (see `declared_keys.ts`).
   */
  readonly isHidden?: true;
  /** The expression in GENERATED ALWAYS AS (…) STORED, as SQL text with column names. */
  readonly generatedSql?: string;
  /** The value of the column in rows that were written before the column was added. */
  readonly missing: Value;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export interface CheckEntry {
  readonly name: string;
  /**
   * The condition of a CHECK constraint as SQL text with column names. Renaming a column updates
   * it.
   */
  readonly sql: string;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

/**
 * The state of an index, equivalent to `IndexState` in `storage/`. Only a "ready" index may be
 * read.
 */
export type IndexEntryState = "building" | "checking" | "ready";

/** A condition on the columns of a table. */
export interface IndexCondition {
  /** The condition as SQL text with unqualified column names. Renaming a column updates it. */
  readonly sql: string;
  /** The ids of the columns that the condition reads. */
  readonly reads: readonly number[];
}

/** An immutable expression over the columns of a table. */
export interface IndexExpression extends IndexCondition {
  /**
   * The id of the expression. It comes from the same counter as column ids, so no column has the
   * same id.
   */
  readonly columnId: number;
  readonly type: DataType;
  /**
   * The kind of the terms into which an inverted index splits the expression's values; absent in
   * any other index. All parts of an inverted index are expressions.
   */
  readonly terms?: TermKind;
}

/**
 * A secondary index, or a UNIQUE constraint, which is implemented as an index. A sorted index is
 * in ascending order of all its columns, with NULL last, and can also be read backwards. An
 * inverted index, by contrast, lists the rows that contain each term.
 */
export interface IndexEntry {
  /**
   * The id of the index. It comes from the same counter as column ids, and is never reused within
   * the table.
   */
  readonly indexId: number;
  /** The name of the index, unique among the indexes, constraints and keys in the namespace. */
  readonly name: string;
  /**
   * The ids of the key parts, in key order. Each is the id of a column or of an entry in
   * `expressions`.
   */
  readonly columnIds: readonly number[];
  /** The parts of the key that are expressions; absent if all parts are columns. */
  readonly expressions?: readonly IndexExpression[];
  readonly isUnique: boolean;
  /** True if a unique index treats NULLs as equal (NULLS NOT DISTINCT). */
  readonly equalNulls?: true;
  /**
   * True if the index belongs to an EXCLUDE constraint: no two rows may have overlapping ranges in
   * the last column while all their other values are equal.
   */
  readonly isExclusion?: true;
  /** Whether the index was defined as a UNIQUE or EXCLUDE constraint. */
  readonly isConstraint: boolean;
  /** True if the index is the primary key of a table that was created without one. */
  readonly isPrimary?: true;
  /**
   * The ids of the columns that this primary key made NOT NULL; kept until the index has been
   * built.
   */
  readonly madeNotNull?: readonly number[];
  /**
   * The condition that determines which rows the index contains; absent if it contains all rows.
   */
  readonly where?: IndexCondition;
  /**
   * The partition whose rows alone the index contains. `where` then combines the partition's bound
   * with the condition of the index. Absent for an index that also contains rows of other
   * partitions.
   */
  readonly within?: IndexedPartition;
  /**
   * True if only partitions have the index: entries of `partitionIndexes` refer to it, but it is
   * neither an index nor a constraint of the table.
   */
  readonly isOfPartitions?: true;
  readonly state: IndexEntryState;
  /**
   * True if a transaction committed the definition of the index before the index was built; absent
   * once the index is ready. If such an index is unique, nobody can write to the table until it
   * has been built.
   */
  readonly isCommitted?: true;
  /**
   * The seq of the definition from which duplicates are refused; absent if the index was created
   * together with the table. Once an exclusion constraint is ready, no two rows that are both live
   * at this seq or later overlap.
   */
  readonly enforcedSeq?: number;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export type OnDeleteAction = "cascade" | "no action" | "restrict" | "set default" | "set null";

/** A foreign key constraint. */
export interface ForeignKeyEntry {
  readonly name: string;
  /** The ids of the referencing columns. */
  readonly columnIds: readonly number[];
  /**
   * The id of the referenced table. The foreign key refers to this table's primary key or to one
   * of its unique indexes that is ready.
   */
  readonly tableId: number;
  /** The ids of the referenced columns, in the order of `columnIds`. */
  readonly referencedIds: readonly number[];
  readonly onDelete: OnDeleteAction;
  /** The action when the referenced key of a row changes (ON UPDATE). */
  readonly onUpdate: OnDeleteAction;
  /** Whether the constraint is MATCH FULL: either all columns are NULL, or none is. */
  readonly isFull: boolean;
  readonly isDeferrable: boolean;
  /**
   * Whether the constraint is checked at the end of the transaction by default. SET CONSTRAINTS
   * may override this.
   */
  readonly isDeferred: boolean;
  /** Whether rows written before the constraint was added are known to satisfy it. */
  readonly isValidated: boolean;
  /** The seq from which the constraint applies. */
  readonly sinceSeq: number;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

export interface TableOptions {
  /** The flush policy as text, e.g. "rows:1000,interval:60". */
  readonly flushPolicy?: string;
  readonly accessLevel?: AccessLevel;
  readonly storageId?: string;
  readonly ttlSeconds?: number;
  readonly deletedRetentionHours?: number;
  readonly compression?: "auto" | "none" | "zstd";
}

/**
 * A directory outside the data directory that can hold the segments of tables. Most of its
 * properties are documented at `ListedStorage` in `storage/`.
 */
export interface StorageEntry {
  readonly storageId: string;
  readonly name: string;
  readonly description?: string;
  /** The absolute path of the storage's directory. It never changes. */
  readonly root: string;
  /**
   * The key that identifies the directory. Its marker file contains the same key. Empty until the
   * marker file has been written.
   */
  readonly key: string;
  readonly sharedTemplate: string;
  readonly userTemplate: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

export interface TableEntry {
  readonly tableId: number;
  readonly namespace: string;
  readonly name: string;
  readonly kind: TableKind;
  /** The columns in declaration order, without dropped columns. */
  readonly columns: readonly ColumnEntry[];
  /** The ids of the primary key columns, in key order. */
  readonly primaryKey: readonly number[];
  /**
   * The name that CONSTRAINT gave to the primary key. If absent, `keyNameOf` returns the default
   * name.
   */
  readonly keyName?: string;
  /** The comment on the primary key; absent if there is none. */
  readonly keyComment?: string | undefined;
  readonly checks: readonly CheckEntry[];
  readonly foreignKeys?: readonly ForeignKeyEntry[];
  /** The policies of the table in the order in which they were defined; absent if it has none. */
  readonly policies?: readonly PolicyEntry[];
  /**
   * The table's secondary indexes and UNIQUE constraints, in the order in which they were defined;
   * absent if it has none.
   */
  readonly indexes?: readonly IndexEntry[];
  /** The partitioning of the table; absent if it is not partitioned. */
  readonly partitioned?: TablePartitioning;
  /** The indexes of single partitions; absent if there are none. */
  readonly partitionIndexes?: readonly PartitionIndex[];
  /** The conditions that single partitions impose on their rows; absent if there are none. */
  readonly partitionChecks?: readonly PartitionCheck[];
  /** The DEFAULTs that differ in single partitions; absent if there are none. */
  readonly partitionDefaults?: readonly PartitionDefault[];
  /**
   * The table's triggers, ordered by name, which is the order in which they fire; absent if it has
   * none.
   */
  readonly triggers?: readonly TriggerEntry[];
  readonly options: TableOptions;
  /**
   * The directory of the table's segments within its storage; absent if they are in the data
   * directory. It is chosen when the table is created.
   */
  readonly storageDirectory?: string;
  /**
   * The seq up to which rows had expired when the TTL of a STREAM table was last changed; absent
   * if it never was. These rows stay expired.
   */
  readonly expiredSeq?: number;
  /**
   * True if the table is dropped at the end of the transaction that created it. Such a table
   * exists only in the draft of that transaction.
   */
  readonly isTemporary?: true;
  /**
   * The additional properties of a materialized view, whose rows change only on REFRESH; absent
   * for any other table.
   */
  readonly materialized?: Materialized;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly schemaVersion: number;
  /** The next column id to assign. The ids of dropped columns are never reused. */
  readonly nextColumnId: number;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** The properties that a materialized view has in addition to those of a SHARED table. */
export interface Materialized {
  /** The `viewId` of the entry that contains the materialized view's query. */
  readonly queryId: number;
  /**
   * Whether the materialized view contains a result of its query. Until it does, it cannot be
   * read.
   */
  readonly isPopulated: boolean;
}

/**
 * A view: a named query. Its SQL contains the names that tables and columns had when the view was
 * created. Columns added to these tables later do not belong to the view.
 */
export interface ViewEntry {
  /** The id of the view, unique among tables and views. */
  readonly viewId: number;
  readonly namespace: string;
  readonly name: string;
  /** The view's query, as its author wrote it. */
  readonly sql: string;
  /** The namespace in which the view's SQL looks up unqualified names. */
  readonly searchNamespace: string;
  readonly columnNames: readonly string[];
  readonly tables: readonly ViewTable[];
  readonly views: readonly ViewOfView[];
  /**
   * The owner's rights with which the view runs; absent if the view runs with the rights of its
   * reader.
   */
  readonly ownRights?: ViewRights | undefined;
  /** The WITH CHECK OPTION of the view; absent if it has none. */
  readonly checkOption?: "cascaded" | "local" | undefined;
  /**
   * True if the view is dropped at the end of the transaction that created it. Such a view exists
   * only in the draft of that transaction.
   */
  readonly isTemporary?: true | undefined;
  /** The DEFAULTs of the view's columns, in place of those of its table; absent if it has none. */
  readonly defaults?: readonly ViewDefault[] | undefined;
  /** The view's triggers in the order of their names; absent if it has none. */
  readonly triggers?: readonly TriggerEntry[] | undefined;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** The seq of the view's newest definition; absent in entries that earlier versions wrote. */
  readonly changedSeq?: number;
  /** The additional properties of a function; absent for a view. */
  readonly routine?: Routine | undefined;
  /**
   * The id of the table that contains the result of a materialized view; absent unless the entry
   * is the query of one. Such an entry has the name returned by `materializedQueryName`, which no
   * view can have.
   */
  readonly resultId?: number | undefined;
  /**
   * The properties of a partition; absent for any other entry. The SQL of a partition's entry is
   * derived from its bounds and its table.
   */
  readonly partition?: PartitionEntry | undefined;
}

/**
 * A partition of a table. It is stored as a view, because reading it means reading some of the
 * table's rows.
 */
export interface PartitionViewEntry extends ViewEntry {
  readonly partition: PartitionEntry;
}

/**
 * A function or procedure, whose body is either a query with parameters or a program. It is stored
 * among the views under a name that includes its parameter types, such as "f(integer, text)",
 * which no view can have.
 */
export interface FunctionEntry extends ViewEntry {
  readonly routine: Routine;
}

/** The additional properties of a function or procedure, which a view does not have. */
export interface Routine {
  /** The name of the function, without its parameter types. */
  readonly name: string;
  /** All parameters in the order of the definition, including output parameters. */
  readonly parameters: readonly RoutineParameter[];
  /** The type after RETURNS; absent if the function's output parameters determine the result. */
  readonly returns?: RoutineType | undefined;
  /** The name of the type after RETURNS, as its author wrote it. */
  readonly returnsName?: string | undefined;
  /** Whether the function returns a set of rows. */
  readonly isSet: boolean;
  /**
   * Whether the function is STRICT: a NULL argument makes the result NULL or, if the function
   * returns a set, empty.
   */
  readonly isStrict: boolean;
  /**
   * The volatility that the definition declares. The planning of a call depends only on the
   * function's query, however.
   */
  readonly volatility: "immutable" | "stable" | "volatile";
  /** The user-defined types to which the function's SQL refers. */
  readonly types: readonly DataType[];
  /** The language of the body, if it has statements; absent if the body is a single SQL query. */
  readonly program?: "plpgsql" | "sql" | undefined;
  /** True for a procedure, which can only be called with CALL. */
  readonly isProcedure?: true | undefined;
  /** Set for an aggregate. The SQL of such an entry is its CREATE AGGREGATE statement. */
  readonly aggregate?: RoutineAggregate | undefined;
}

/** How an aggregate computes its result. */
export interface RoutineAggregate {
  readonly plain: RoutineSteps;
  /** How the aggregate is computed over moving frames; absent if no attribute defines it. */
  readonly moving?: RoutineSteps | undefined;
}

/** The functions from which an aggregate computes its state and its result. */
export interface RoutineSteps {
  readonly stateType: RoutineType;
  /** Returns the state after a row has been added. */
  readonly transition: RoutineName;
  /** Returns the state after a row has been removed. */
  readonly inverse?: RoutineName | undefined;
  /** Returns the result. If absent, the result is the state. */
  readonly final?: RoutineName | undefined;
  /** Whether the final function has parameters for the arguments, too. They are all NULL. */
  readonly isFinalExtended?: true | undefined;
  /** The text of the initial state. If absent, the state is NULL at first. */
  readonly initial?: string | undefined;
}

/** The name of a function that an aggregate calls. */
export interface RoutineName {
  readonly schema?: string | undefined;
  readonly name: string;
}

export interface RoutineParameter {
  /** The mode of the parameter. "table" marks a column of RETURNS TABLE. */
  readonly mode: "in" | "out" | "inout" | "variadic" | "table";
  readonly name?: string | undefined;
  readonly type: RoutineType;
  /** The name of the parameter's type, for lists and messages. */
  readonly typeName: string;
  /** The parameter's default value as SQL text; absent if it has none. */
  readonly defaultSql?: string | undefined;
}

/**
 * A data type, or the name of a pseudo-type. If it is polymorphic, the arguments of each call
 * determine the actual type.
 */
export type RoutineType = DataType | PolymorphicType;

/**
 * The names of the pseudo-types. "void" is the return type of a function without a result;
 * "trigger" is the return type of a trigger function. Only a parameter of an aggregate has the type
 * "any".
 */
export type PolymorphicType =
  | "any"
  | "anyarray"
  | "anycompatible"
  | "anycompatiblearray"
  | "anycompatiblemultirange"
  | "anycompatiblerange"
  | "anyelement"
  | "anymultirange"
  | "anyrange"
  | "record"
  | "trigger"
  | "void";

/** The rights of a view that runs with the rights of its owner. */
export interface ViewRights {
  /** The user who created the view or last changed its definition or options. */
  readonly owner: string;
  /** The access level, which determines the roles that may read the view. */
  readonly accessLevel: ViewLevel;
}

/** The access levels of views. Policies do not apply to views. */
export type ViewLevel = Exclude<AccessLevel, "RESTRICTED">;

/** The DEFAULT of a column of a view, as SQL text. */
interface ViewDefault {
  readonly column: string;
  readonly sql: string;
}

/** A table to which the SQL of a view refers. */
export interface ViewTable {
  readonly tableId: number;
  /**
   * The name by which the view's SQL refers to the table; absent if the table still has that name.
   */
  readonly renamedFrom?: string;
  /** All columns that the table had when the view was created, in column order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** The ids of this table's columns that the view reads. */
  readonly used: readonly number[];
}

/**
 * Another view to which a view's SQL refers, with the columns that it had when the referring view
 * was created.
 */
interface ViewOfView {
  readonly viewId: number;
  /**
   * The name by which the SQL refers to the other view; absent if that view still has this name.
   */
  readonly renamedFrom?: string;
  readonly columnNames: readonly string[];
}

/**
 * A sequence. Its numbers are stored as decimal strings, because JSON numbers cannot represent all
 * 64-bit integers.
 */
export interface SequenceEntry {
  /** The id of the sequence, unique among tables, views, topics and sequences. */
  readonly sequenceId: number;
  readonly namespace: string;
  readonly name: string;
  readonly type: "smallint" | "int" | "bigint";
  readonly increment: string;
  readonly minimum: string;
  readonly maximum: string;
  readonly start: string;
  readonly cycles: boolean;
  /** The minimum number of values reserved at a time (CACHE). */
  readonly cache: number;
  /** The column that owns the sequence. Dropping the column also drops the sequence. */
  readonly ownedBy?: SequenceOwner;
  /** True if the sequence is dropped at the end of the transaction that created it. */
  readonly isTemporary?: true;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/**
 * An enum type, a row type, a domain or a collation. Enum values are stored on disk as the
 * positions of their labels.
 */
export interface TypeEntry {
  /** The id of the type, unique among tables, views, topics, sequences and types. */
  readonly typeId: number;
  readonly namespace: string;
  readonly name: string;
  /** The labels of an enum type, in order. */
  readonly labels: readonly EnumLabel[];
  /** The default and the constraints of a domain; absent unless the entry is a domain. */
  readonly domain?: DomainRules;
  /** The fields of a row type; absent unless the entry is a row type. */
  readonly fields?: readonly RowField[];
  /** The bounds of a range type; absent unless the entry is a range type. */
  readonly range?: RangeRules;
  /** The id of the range type; absent unless the entry is a multirange type. */
  readonly multirangeOf?: number;
  /**
   * The rules of a collation; absent unless the entry is a collation. Collations and types share
   * one set of names.
   */
  readonly collation?: CollationRules;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
  readonly createdBy: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** The properties of a range type. */
export interface RangeRules {
  /** The type of the bounds. */
  readonly bound: DataType;
  /** The id of the domain that was given as the type of the bounds; absent if it was no domain. */
  readonly domainId?: number;
  /** The id of the multirange type. */
  readonly multirangeId: number;
}

export interface SequenceOwner {
  readonly tableId: number;
  readonly columnId: number;
}

/**
 * An uploaded file: the location of its bytes, and the row whose FILE value refers to the file.
 */
export interface FileEntry {
  readonly fileId: string;
  readonly tableId: number;
  readonly owner: number;
  readonly columnId: number;
  /**
   * The primary key of the row that refers to the file, in a format defined by the layer that
   * lists the file.
   */
  readonly keyJson: string;
  readonly sub: string;
  readonly storedName: string;
  readonly name: string;
  readonly mime: string;
  readonly size: number;
  readonly sha256: string;
  readonly createdAtMs: number;
}

/** Selects a part of the list of uploaded files. */
export type FilesOf = { readonly tableId: number } | { readonly owner: number };
