/**
 * Defines the fixed limits shared by several layers, each with its reason. Limits that an operator
 * may change are configuration keys instead (`config/keys.ts`).
 */
import { assert } from "./assert.ts";

/**
 * The maximum number of rows in a vector batch. It is large enough to amortise a call, and small
 * enough for a vector to fit into the L1 cache.
 */
export const BATCH_ROWS_MAX = 4096;

/**
 * The maximum number of rows in a row group. It limits the memory of a merge, which keeps one row
 * group of each source open.
 */
export const ROW_GROUP_ROWS_MAX: number = 16 * BATCH_ROWS_MAX;

/**
 * The maximum size of a commit in the log, in bytes. The entire commit is in memory until it is
 * written, and its rows are also in memtables. A memtable stores all text of a column in a single
 * array of at most 4 GiB.
 */
export const COMMIT_BYTES_MAX: number = 1024 * 1024 * 1024;

/**
 * The maximum size of an encoded primary key in bytes, so that key index entries stay small and
 * can be compared quickly.
 */
export const KEY_BYTES_MAX = 1024;

/**
 * The maximum number of CHECK constraints on a table. Each constraint is evaluated for every row
 * written.
 */
export const CHECKS_MAX = 256;

/**
 * The maximum number of secondary indexes on a table. Each index makes every write more expensive.
 */
export const INDEXES_MAX = 64;

/** The maximum number of columns in a primary key or an index. */
export const KEY_COLUMNS_MAX = 16;

/**
 * The maximum nesting depth of parentheses, subqueries and JSON. The limit keeps recursive
 * functions far from overflowing the stack.
 */
export const NESTING_MAX = 128;

/**
 * The maximum number of objects, arrays and object members in a request body or message.
 * Legitimate ones contain a few dozen. Each member with a new name takes a microsecond to read, so
 * 8 MB of them would block all clients for a second.
 */
export const JSON_PARTS_MAX = 10_000;

/**
 * The maximum number of commas between the values in a request body or message. It is twice the
 * maximum number of parameters. Parsing 8 MB of numbers blocks all clients for a quarter of a
 * second.
 */
export const JSON_COMMAS_MAX: number = 128 * 1024;

/**
 * The maximum number of array elements, or of nodes in a JSON value, parsed from a single string.
 * Each becomes a separate object, and creating this many takes a tenth of a second.
 */
export const PARTS_OF_TEXT_MAX: number = 512 * 1024;

/**
 * The maximum time that the first part of a statement may occupy the event loop, in milliseconds.
 */
export const FIRST_SLICE_MS_MAX = 5;

/**
 * The maximum time that each later part of a statement, or of background work, may occupy the
 * event loop, in milliseconds. Another client's request waits for about five such parts in total:
 * before it is read, run, written, synced and sent.
 */
export const FURTHER_SLICE_MS_MAX = 1;

/**
 * The maximum number of correlated subquery results cached while a statement runs. Further results
 * may have to be computed again.
 */
export const SUBQUERY_ANSWERS_MAX = 65_536;

/**
 * The maximum number of rows that a recursive query may produce. A query that would not terminate
 * fails when it reaches this limit.
 */
export const RECURSION_ROWS_MAX = 1_000_000;

/**
 * The maximum depth to which WITH queries and views may build on each other. Each WITH query or
 * view is a query within the query that reads it, and plans and operators are nested just as
 * deeply.
 */
export const QUERY_TOWER_MAX = 128;

/**
 * The maximum number of tables, queries, functions and views in a FROM clause, however they are
 * joined. Looking up names and ordering joins takes time proportional to the square of this
 * number.
 */
export const SOURCES_MAX = 128;

/**
 * The maximum number of FROM items in all queries of a statement, including the queries of its
 * views.
 */
export const STATEMENT_SOURCES_MAX: number = 8 * 1024;

/** The maximum number of queries in one statement, whether nested or side by side. */
export const STATEMENT_QUERIES_MAX: number = 8 * 1024;

/**
 * The maximum number of items in a list whose items are compiled one by one: outputs, arguments,
 * branches of CASE, GROUP BY and ORDER BY keys, assignments, and columns. IN, ARRAY and VALUES have
 * higher limits.
 */
export const LISTED_MAX = 4096;

/**
 * The maximum number of names, literals, operators and calls in a statement. The rows of VALUES
 * are not counted, because they are bound in several time slices. At this limit, binding, planning
 * and compiling take a tenth of a second each.
 */
export const STATEMENT_PARTS_MAX = 100_000;

/** The maximum number of statements in a single request. */
export const STATEMENTS_MAX = 10_000;

/**
 * The maximum number of fields in row values compared with `<`, `<=`, `>` or `>=`. Each field adds
 * a level to the nested conditions.
 */
export const ORDERED_FIELDS_MAX = 256;

/** The maximum number of window definitions in a query. Each of them sorts all rows. */
export const WINDOWS_MAX = 256;

/** The maximum total number of columns in all queries, tables and joins of a statement. */
export const STATEMENT_COLUMNS_MAX: number = 64 * 1024;

/**
 * The maximum nesting depth of views. The limit is low because the SQL doubles in size with each
 * level that refers to a view twice.
 */
export const VIEW_DEPTH_MAX = 32;
export const VIEWS_MAX = 256;

/** The maximum nesting depth of calls to functions and procedures whose body has statements. */
export const PROGRAM_CALLS_MAX = 100;

/**
 * The maximum time that a single call to a function whose body has statements may take within a
 * query, in milliseconds.
 */
export const PROGRAM_MS_MAX = 500;

/**
 * The maximum time that all calls to functions whose bodies have statements may take together
 * within a query during one turn of the event loop, in milliseconds.
 */
export const PROGRAMS_MS_MAX = 2000;

/** The maximum total length of the function bodies that replace calls in a stored definition. */
export const WRITTEN_TEXT_MAX: number = 256 * 1024;

// A row group consists of whole batches, so that no batch of a scan straddles two row groups.
assert(
  ROW_GROUP_ROWS_MAX % BATCH_ROWS_MAX === 0,
  "row group size is not a multiple of the batch size",
);
