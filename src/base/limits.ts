/**
 * Fixed bounds that several layers share, each with its reason. Bounds that an operator may
 * change are configuration keys instead (`config/keys.ts`).
 */
import { assert } from "./assert.ts";

/** Rows in one vector batch: large enough to amortise a call, small enough to stay in L1. */
export const BATCH_ROWS_MAX = 4096;

/** Rows in one row group. Bounds the memory of a merge: each input has one row group open. */
export const ROW_GROUP_ROWS_MAX: number = 16 * BATCH_ROWS_MAX;

/**
 * Bytes of one commit in the log. It is held whole until it is written, and its rows once more in
 * memtables. There the text of a column is one array, which can have 4 GiB with what was before.
 */
export const COMMIT_BYTES_MAX: number = 1024 * 1024 * 1024;

/** Bytes of an encoded primary key, so that a key index entry is small and comparable at once. */
export const KEY_BYTES_MAX = 1024;

/** CHECK constraints of one table: each is evaluated for every written row. */
export const CHECKS_MAX = 256;

/** Columns of a primary key. */
export const KEY_COLUMNS_MAX = 16;

/**
 * Nesting of parentheses, subqueries and JSON: keeps recursive descent far from the stack's end.
 */
export const NESTING_MAX = 128;

/**
 * Objects, arrays and members in a body or message, a few dozen of which mean anything. Each member
 * of another name takes a microsecond to read, so that 8 MB of them held everybody for a second.
 */
export const JSON_PARTS_MAX = 10_000;

/**
 * Commas between the values of a body or message: twice as many as a request may have parameters.
 * To parse 8 MB of numbers took a quarter of a second, in which nobody else is served.
 */
export const JSON_COMMAS_MAX: number = 128 * 1024;

/**
 * Array items, or nodes of a JSON value, parsed from one text. Each becomes an object of its own,
 * and this many take a tenth of a second.
 */
export const PARTS_OF_TEXT_MAX: number = 512 * 1024;

/** How long the first turn of a statement may hold the event loop before others get it. */
export const TURN_MS_MAX = 5;

/**
 * The same for the turns after the first, and for work in the background. A request of somebody
 * else waits for about five turns until it is answered: to be read, run, written, synced and sent.
 */
export const FURTHER_TURN_MS_MAX = 2;

/** Answers of a correlated subquery that a run remembers: beyond, another may cost a reading. */
export const SUBQUERY_ANSWERS_MAX = 65_536;

/** Rows of a recursive query: one that does not end by itself ends here. */
export const RECURSION_ROWS_MAX = 1_000_000;

/**
 * Entries of WITH and views that are read through each other: each is a query within the one that
 * reads it, and plans and operators of queries in queries go as deep.
 */
export const QUERY_TOWER_MAX = 128;

/**
 * Tables, queries, functions and views in one FROM, however they are joined. The work of name
 * lookup and join ordering grows with the square of this number.
 */
export const SOURCES_MAX = 128;

/** FROM items in all queries of a statement, including the queries of its views. */
export const STATEMENT_SOURCES_MAX = 1024;

/** Queries of one statement, nested or side by side. */
export const STATEMENT_QUERIES_MAX = 1024;

/**
 * Items of one list whose items are compiled one by one: outputs, arguments, arms of CASE, GROUP BY
 * and ORDER BY keys, assignments, columns. IN, ARRAY and VALUES have higher limits.
 */
export const LISTED_MAX = 4096;

/**
 * Names, literals, operators and calls of one statement. The rows of VALUES do not count, as they
 * are bound in steps. Binding, planning and compiling this many take a tenth of a second each.
 */
export const STATEMENT_PARTS_MAX = 100_000;

/** Statements in the text of one request. */
export const STATEMENTS_MAX = 10_000;

/**
 * Fields of row values compared by `<`, `<=`, `>` or `>=`: each adds a level of nested conditions.
 */
export const ORDERED_FIELDS_MAX = 256;

/** Window definitions of one query: each sorts all rows. */
export const WINDOWS_MAX = 256;

/** Columns of all queries, tables and joins of a statement together. */
export const STATEMENT_COLUMNS_MAX: number = 64 * 1024;

/** Views in views, and views that one statement expands: nesting doubles what it names twice. */
export const VIEW_DEPTH_MAX = 32;
export const VIEWS_MAX = 256;

// A row group holds whole batches, so that a scan never crosses its boundary mid-batch.
assert(ROW_GROUP_ROWS_MAX % BATCH_ROWS_MAX === 0, "a row group holds whole batches");
