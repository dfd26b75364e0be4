/**
 * Defines the fixed limits that several layers share, each with its reason. Limits that an operator
 * may change are configuration keys instead (`config/keys.ts`).
 */
import { assert } from "./assert.ts";

/**
 * The number of rows in one vector batch. The number is large enough to amortise a call, and small
 * enough for a vector to fit into the L1 cache.
 */
export const BATCH_ROWS_MAX = 4096;

/**
 * The number of rows in one row group. It limits the memory of a merge, which keeps one row group
 * of each source open.
 */
export const ROW_GROUP_ROWS_MAX: number = 16 * BATCH_ROWS_MAX;

/**
 * The maximum number of bytes of one commit in the log. The whole commit is in memory until it is
 * written, and its rows are also in memtables, in which the text of a column, including that of
 * earlier rows, is a single array of at most 4 GiB.
 */
export const COMMIT_BYTES_MAX: number = 1024 * 1024 * 1024;

/**
 * The maximum size of an encoded primary key in bytes, so that entries of a key index stay small
 * and can be compared quickly.
 */
export const KEY_BYTES_MAX = 1024;

/**
 * The maximum number of CHECK constraints on one table. Each constraint is evaluated for every
 * written row.
 */
export const CHECKS_MAX = 256;

/**
 * The maximum number of secondary indexes on one table. Each index makes every written row more
 * expensive.
 */
export const INDEXES_MAX = 64;

/** The maximum number of columns in a primary key or an index. */
export const KEY_COLUMNS_MAX = 16;

/**
 * The maximum nesting depth of parentheses, subqueries and JSON. The limit keeps recursive
 * functions far from the end of the stack.
 */
export const NESTING_MAX = 128;

/**
 * The maximum number of objects, arrays and members in a body or a message. Legitimate bodies and
 * messages contain a few dozen of them. Each member with a new name takes a microsecond to read, so
 * 8 MB of them would block all clients for a second.
 */
export const JSON_PARTS_MAX = 10_000;

/**
 * The maximum number of commas between the values of a body or a message, which is twice the
 * maximum number of parameters. Parsing 8 MB of numbers blocks all clients for a quarter of a
 * second.
 */
export const JSON_COMMAS_MAX: number = 128 * 1024;

/**
 * The maximum number of array items, or of nodes of a JSON value, that are parsed from one string.
 * Each of them becomes a separate object, and this many take a tenth of a second.
 */
export const PARTS_OF_TEXT_MAX: number = 512 * 1024;

/**
 * The maximum time, in milliseconds, for which the first part of a statement may occupy the event
 * loop.
 */
export const FIRST_SLICE_MS_MAX = 5;

/**
 * The maximum time, in milliseconds, for which each later part of a statement, or of background
 * work, may occupy the event loop. Until another client's request is complete, it waits for about
 * five of these parts: to be read, run, written, synced and sent.
 */
export const FURTHER_SLICE_MS_MAX = 2;

/**
 * The maximum number of results of a correlated subquery that are cached while a statement runs.
 * Results beyond that may be computed again.
 */
export const SUBQUERY_ANSWERS_MAX = 65_536;

/**
 * The maximum number of rows of a recursive query. A query that would not terminate fails when it
 * reaches this limit.
 */
export const RECURSION_ROWS_MAX = 1_000_000;

/**
 * The maximum depth to which WITH queries and views may refer to each other. Each WITH query or
 * view is a query within the query that reads it, and plans and operators are nested just as
 * deeply.
 */
export const QUERY_TOWER_MAX = 128;

/**
 * The maximum number of tables, queries, functions and views in one FROM, however they are joined.
 * The work of looking up names and ordering joins grows with the square of this number.
 */
export const SOURCES_MAX = 128;

/**
 * The maximum number of FROM items in all queries of a statement, including the queries of its
 * views.
 */
export const STATEMENT_SOURCES_MAX: number = 8 * 1024;

/** The maximum number of queries in one statement, nested or side by side. */
export const STATEMENT_QUERIES_MAX: number = 8 * 1024;

/**
 * The maximum number of items in a list whose items are compiled one by one: outputs, arguments,
 * branches of CASE, GROUP BY and ORDER BY keys, assignments, and columns. IN, ARRAY and VALUES have
 * higher limits.
 */
export const LISTED_MAX = 4096;

/**
 * The maximum number of names, literals, operators and calls in one statement. The rows of VALUES
 * are not counted, because they are bound in steps. Binding, planning and compiling this many of
 * them take a tenth of a second each.
 */
export const STATEMENT_PARTS_MAX = 100_000;

/** The maximum number of statements in the text of one request. */
export const STATEMENTS_MAX = 10_000;

/**
 * The maximum number of fields in row values that are compared with `<`, `<=`, `>` or `>=`. Each
 * field adds a level to the nested conditions.
 */
export const ORDERED_FIELDS_MAX = 256;

/** The maximum number of window definitions in one query. Each of them sorts all rows. */
export const WINDOWS_MAX = 256;

/** The maximum total number of columns in all queries, tables and joins of a statement. */
export const STATEMENT_COLUMNS_MAX: number = 64 * 1024;

/**
 * The maximum nesting depth of views, because the text doubles with each level that refers to a
 * view twice.
 */
export const VIEW_DEPTH_MAX = 32;
export const VIEWS_MAX = 256;

/** The maximum nesting depth of calls of programs. */
export const PROGRAM_CALLS_MAX = 100;

/** The maximum time of one call of a program within a query, in milliseconds. */
export const PROGRAM_MS_MAX = 500;

/**
 * The maximum time of all calls of programs within a query during one turn of the event loop, in
 * milliseconds.
 */
export const PROGRAMS_MS_MAX = 2000;

/** The maximum length of the texts of functions that a definition stores in place of calls. */
export const WRITTEN_TEXT_MAX: number = 256 * 1024;

// A row group consists of whole batches, so that no batch of a scan crosses its boundary.
assert(ROW_GROUP_ROWS_MAX % BATCH_ROWS_MAX === 0, "a row group must hold whole batches");
