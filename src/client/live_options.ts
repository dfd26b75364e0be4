/** Defines the options of a live query, and checks all of them before anything is sent. */
import type { SchemaField, SortTerm } from "../protocol/mod.ts";
import {
  ANYTHING,
  type Call,
  COUNT,
  FILLED_TEXT,
  type FieldRules,
  FLAG,
  HANDLER,
  requireOptions,
  TEXT,
} from "./checks.ts";
import type { ServerError } from "./errors.ts";
import type { Order } from "./live_rows.ts";
import type { Parameter } from "./parameters.ts";
import { orderFrom } from "./row_order.ts";
import type { CellObject, Change } from "./values.ts";

export type LiveStatus = "connecting" | "loading" | "ready" | "offline" | "ended";

export type LiveEvent<Row extends object = CellObject> =
  /**
   * The server accepted the query. If there is no position to resume from, the rows start over.
   */
  | {
      readonly type: "start";
      readonly schema: readonly SchemaField[];
      readonly resumedFrom: number | undefined;
      /** The order defined by the query, if it has ORDER BY and is materialised. */
      readonly sort?: readonly SortTerm[];
    }
  /** Rows of the snapshot or of a replay. Each row replaces the row with the same key. */
  | { readonly type: "rows"; readonly rows: readonly Row[]; readonly isReplay: boolean }
  | { readonly type: "change"; readonly change: Change<Row>; readonly isReplay: boolean }
  | { readonly type: "status"; readonly status: LiveStatus; readonly error?: ServerError };

/** At least one of `onRows` and `onEvent` is required. */
export interface LiveOptions<Row extends object = CellObject> {
  readonly params?: readonly Parameter[];
  readonly namespace?: string;
  /** How many of the newest rows to start with; defaults to all rows. */
  readonly lastRows?: number;
  readonly batchSize?: number;
  /** Resumes after this `_seq`: only later changes are delivered. */
  readonly from?: number;
  /**
   * The key under which the client's storage keeps the query's position. The query resumes from
   * the last position that the same query of the same user reached. The caller must have kept the
   * earlier rows.
   */
  readonly resumeKey?: string;
  /**
   * The order of `rows`: text such as "sent_at DESC, id", or a comparison function; by key if
   * omitted.
   */
  readonly orderBy?: string | ((left: Row, right: Row) => number);
  /**
   * Whether `rows` are kept; defaults to true. `false` saves memory for a query with many rows.
   */
  readonly keepRows?: boolean;
  /** Called with the current rows: first when they are complete, and then after each change. */
  readonly onRows?: (rows: readonly Row[]) => void;
  /** Called with each event of the live query. */
  readonly onEvent?: (event: LiveEvent<Row>) => void;
  /**
   * Called with the reason if the query ends without having been closed. If neither this handler
   * nor `onEvent` is set, the error is thrown in a separate tick.
   */
  readonly onError?: (error: ServerError) => void;
}

const CALL: Call = {
  doing: "follow the query",
  example: "live(sql, { params: [1], onRows: (rows) => show(rows) })",
};

const RULES: FieldRules = {
  // Options checked by the modules that use them, which have their own error messages.
  params: ANYTHING,
  namespace: TEXT,
  lastRows: COUNT,
  batchSize: COUNT,
  from: COUNT,
  resumeKey: FILLED_TEXT,
  orderBy: {
    should: 'a string such as "sent_at DESC, id", or a function that compares two rows',
    holds: (value) => typeof value === "string" || typeof value === "function",
  },
  keepRows: FLAG,
  onRows: HANDLER,
  onEvent: HANDLER,
  onError: HANDLER,
};

/** Requires that the options of a live query are valid. @throws {TypeError} */
export function requireLiveOptions(given: LiveOptions): void {
  requireOptions(CALL, given ?? {}, RULES);
  const { keepRows, onEvent, onRows } = given ?? {};
  if (onEvent === undefined && onRows === undefined) {
    throw new TypeError(
      `Cannot ${CALL.doing}: there is no handler; write ${CALL.example}, or pass onEvent, ` +
        "which receives each change",
    );
  }
  if (keepRows === false && onRows !== undefined) {
    throw new TypeError(
      `Cannot ${CALL.doing}: onRows needs all rows, but keepRows is false; remove keepRows, or ` +
        "use onEvent",
    );
  }
}

/**
 * Returns the row order requested by the options.
 * @throws {TypeError} If the text does not name columns.
 */
export function orderOf<Row extends object>({ orderBy }: LiveOptions<Row>): Order<Row> {
  return typeof orderBy === "string" ? orderFrom(orderBy) : orderBy;
}
