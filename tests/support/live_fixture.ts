/**
 * Provides the parts that tests of the live layer share: a table of chat messages, a planner that
 * knows a few fixed queries, and a socket that records the messages sent to it.
 */

import type { Principal } from "../../src/auth/mod.ts";
import { defined } from "../../src/base/assert.ts";
import { Bugs } from "../../src/base/bugs.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import {
  type DefinitionHistory,
  type LiveLimits,
  type LiveSink,
  type LiveSubscription,
  LocalLiveEngine,
  type SharedMessage,
} from "../../src/live/mod.ts";
import type {
  ChangeMessage,
  DataMessage,
  ErrorMessage,
  InitialDataBatch,
  SchemaField,
  SubscribeOptions,
} from "../../src/protocol/mod.ts";
import type {
  CompiledExpression,
  FollowedPlan,
  LivePace,
  LivePlan,
  LiveRequest,
  RowSearch,
  SqlEngine,
} from "../../src/sql/mod.ts";
import {
  DELETED_COLUMN_ID,
  SEQ_COLUMN_ID,
  type Store,
  type TableDefinition,
} from "../../src/storage/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  type DataType,
  DOUBLE,
  dataTypeWord,
  INT,
  type Row,
  TEXT,
  type Value,
  valueAt,
  vectorFromValues,
} from "../../src/types/mod.ts";
import { ManualClock } from "./manual_clock.ts";
import { ModelStore } from "./model_store.ts";
import { SeededRandom } from "./seeded_random.ts";

export const MESSAGES = 7;

const ID = 1;
const ROOM = 2;
const N = 3;
const BODY = 4;

const COLUMN_TYPES: ReadonlyMap<number, DataType> = new Map([
  [ID, BIGINT],
  [ROOM, TEXT],
  [N, INT],
  [BODY, TEXT],
  [SEQ_COLUMN_ID, BIGINT],
  [DELETED_COLUMN_ID, BOOLEAN],
]);

const COLUMN_NAMES: ReadonlyMap<number, string> = new Map([
  [ID, "id"],
  [ROOM, "room"],
  [N, "n"],
  [BODY, "body"],
  [SEQ_COLUMN_ID, "_seq"],
  [DELETED_COLUMN_ID, "_deleted"],
]);

/**
 * Returns the definition of `chat.messages (id BIGINT PRIMARY KEY, room TEXT, n INT, body TEXT)`.
 */
export function messagesTable(tableId: number = MESSAGES): TableDefinition {
  return {
    tableId,
    name: "chat.messages",
    columns: [ID, ROOM, N, BODY].map((columnId) => ({
      columnId,
      name: defined(COLUMN_NAMES.get(columnId), "a column must have a name"),
      type: defined(COLUMN_TYPES.get(columnId), "a column must have a type"),
      missing: null,
    })),
    keyColumnIds: [ID],
    flush: { rowsMax: 1_000_000, ageMsMax: 1_000_000 },
    historyMs: 1_000_000,
  };
}

export function message(
  id: number,
  room: string | null,
  n: number | null = 0,
  body: string | null = "",
): Row {
  return [id, room, n, body];
}

type Cells = (columnId: number) => Value;

interface Known {
  readonly reads: readonly number[];
  readonly filter?: (cells: Cells) => Value;
  readonly fields: readonly (number | Computed)[];
  readonly equality?: LivePlan["equality"];
  readonly hasStar?: boolean;
}

interface Computed {
  readonly name: string;
  readonly type: DataType;
  readonly value: (cells: Cells) => Value;
}

const ALL = [ID, ROOM, N, BODY, SEQ_COLUMN_ID];

function ratio(cells: Cells): Value {
  const n = cells(N);
  if (n === null) return null;
  if (n === 0) throw new DatabaseError("DIVISION_BY_ZERO", "Cannot divide by zero");
  return 12 / Number(n);
}

/** The queries that the planner knows, keyed by their SQL. */
const KNOWN: Readonly<Record<string, Known>> = {
  "SELECT * FROM chat.messages": { reads: ALL, fields: ALL, hasStar: true },
  "SELECT *, _deleted FROM chat.messages": {
    reads: [...ALL, DELETED_COLUMN_ID],
    fields: [...ALL, DELETED_COLUMN_ID],
    hasStar: true,
  },
  "SELECT * FROM chat.messages WHERE room = 'lobby'": {
    reads: ALL,
    fields: ALL,
    hasStar: true,
    filter: (cells) => (cells(ROOM) === null ? null : cells(ROOM) === "lobby"),
    equality: { columnId: ROOM, value: "lobby", rest: undefined },
  },
  "SELECT * FROM chat.messages WHERE room = $1": {
    reads: ALL,
    fields: ALL,
    hasStar: true,
  },
  "SELECT n * 2 AS twice FROM chat.messages WHERE n > 5": {
    reads: [N, ID, SEQ_COLUMN_ID],
    fields: [
      {
        name: "twice",
        type: INT,
        value: (cells) => (cells(N) === null ? null : Number(cells(N)) * 2),
      },
      ID,
      SEQ_COLUMN_ID,
    ],
    filter: (cells) => (cells(N) === null ? null : Number(cells(N)) > 5),
  },
  "SELECT id, 12 / n AS ratio FROM chat.messages WHERE n <> 0": {
    reads: [ID, N, SEQ_COLUMN_ID],
    fields: [ID, { name: "ratio", type: DOUBLE, value: ratio }, SEQ_COLUMN_ID],
    filter: (cells) => (cells(N) === null ? null : cells(N) !== 0),
  },
  "SELECT id FROM chat.messages WHERE 12 / n > 1": {
    reads: [ID, N, SEQ_COLUMN_ID],
    fields: [ID, SEQ_COLUMN_ID],
    filter: (cells) => {
      const quotient = ratio(cells);
      return quotient === null ? null : Number(quotient) > 1;
    },
  },
  "SELECT id, body FROM chat.messages": {
    reads: [BODY, ID, SEQ_COLUMN_ID],
    fields: [ID, BODY, SEQ_COLUMN_ID],
  },
};

export function queryTexts(): string[] {
  return Object.keys(KNOWN);
}

/**
 * Whether a row of `chat.messages` is in the result of a query, as evaluated by the test itself.
 */
export function isInResult(sql: string, row: Row, parameter?: string): boolean {
  const known = defined(KNOWN[sql], "the query must be known");
  if (sql.endsWith("$1")) return row[1] === parameter;
  return known.filter === undefined || known.filter((id) => row[id - 1] ?? null) === true;
}

/** A planner for the known queries. Any other SQL is a syntax error. */
export class KnownQueries implements Pick<SqlEngine, "planFollowed" | "planLive"> {
  /** If set, planning fails with this error. */
  refusal: DatabaseError | undefined;
  mayRead = true;
  schemaVersion = 1;
  /** Represents the policies that apply. Queries under different policies share nothing. */
  policyVersion = 1;
  tableId: number = MESSAGES;
  plannedCount = 0;
  extraField: SchemaField | undefined;
  /** The pace of all queries that are planned from now on. */
  pace: LivePace | undefined;
  /** Creates the row search of all queries that are planned from now on. */
  searchFor: ((plan: LivePlan) => RowSearch) | undefined;

  planFollowed(principal: Principal, request: LiveRequest): FollowedPlan {
    return { way: "rows", plan: this.planLive(principal, request) };
  }

  planLive(principal: Principal, { sql, params }: LiveRequest): LivePlan {
    this.plannedCount += 1;
    if (this.refusal !== undefined) throw this.refusal;
    const written = KNOWN[sql];
    if (written === undefined) {
      throw new DatabaseError("INVALID_SQL", `Cannot parse "${sql}": expected SELECT`, {
        position: 0,
        hint: "write SELECT",
      });
    }
    const parameter = params[0] ?? null;
    const known = typeof parameter === "string" ? withRoom(written, parameter) : written;
    const plan = this.#plan(principal, sql, { ...known, parameter });
    return { ...plan, search: this.searchFor?.(plan) };
  }

  #plan(principal: Principal, sql: string, known: Known & { parameter: unknown }): LivePlan {
    const filter = known.filter;
    const fields = known.fields.map((field) => (typeof field === "number" ? stored(field) : field));
    return {
      tableId: this.tableId,
      tableName: "chat.messages",
      owner: defined(principal.owner, "a subscriber must have an owner number"),
      schemaVersion: this.schemaVersion,
      columnIds: known.reads,
      filter: filter === undefined ? undefined : compiled(BOOLEAN, known.reads, filter),
      projections: fields.map(({ type, value }) => compiled(type, known.reads, value)),
      pace: this.pace,
      fields: fields.map(({ name, type }, index) => ({
        name,
        data_type: dataTypeWord(type),
        index,
        ...(name === "id" ? { flags: ["pk", "nn", "uq"] as const } : {}),
        ...(name === "_seq" ? { flags: ["nn"] as const } : {}),
      })),
      fieldTypes: fields.map(({ type }) => type),
      keyFieldIndexes: [fields.findIndex(({ name }) => name === "id")],
      seqFieldIndex: fields.findIndex(({ name }) => name === "_seq"),
      fingerprint: JSON.stringify([sql, known.parameter, this.policyVersion]),
      equality: known.equality,
      hasStar: known.hasStar ?? false,
      isExpiry: undefined,
      claimsKey: undefined,
      namedColumns: known.reads
        .filter((columnId) => columnId > 0)
        .map((columnId) => ({ columnId, type: stored(columnId).type })),
      mayRead: () => this.mayRead,
    };
  }
}

function withRoom(known: Known, room: string): Known {
  return {
    ...known,
    filter: (cells) => (cells(ROOM) === null ? null : cells(ROOM) === room),
    equality: { columnId: ROOM, value: room, rest: undefined },
  };
}

function stored(columnId: number): Computed {
  return {
    name: defined(COLUMN_NAMES.get(columnId), "a column must have a name"),
    type: defined(COLUMN_TYPES.get(columnId), "a column must have a type"),
    value: (cells) => cells(columnId),
  };
}

function compiled(
  type: DataType,
  reads: readonly number[],
  value: (cells: Cells) => Value,
): CompiledExpression {
  return {
    type,
    evaluate: ({ rowCount, columns }) => {
      const values = Array.from({ length: rowCount }, (_, row) =>
        value((columnId) => {
          const column = columns[reads.indexOf(columnId)];
          return column === undefined ? null : valueAt(column, row);
        }),
      );
      return vectorFromValues(type, values);
    },
  };
}

/** A socket that copies each message on arrival, which reveals later changes to the message. */
export class RecordingSink implements LiveSink {
  readonly messages: (DataMessage | ErrorMessage)[] = [];
  readonly shared: SharedMessage[] = [];
  readonly queuedBytes = 0;
  connectionId = "c";
  /**
   * The number of further messages that the socket accepts. The message that fills the socket is
   * accepted, too.
   */
  room: number = Infinity;
  onSend: ((message: SharedMessage) => void) | undefined;

  send(sent: SharedMessage): boolean {
    this.onSend?.(sent);
    this.messages.push(structuredClone(sent.message));
    this.shared.push(sent);
    this.room -= 1;
    return this.room > 0;
  }

  end(ended: ErrorMessage): void {
    this.messages.push(ended);
  }

  batches(): InitialDataBatch[] {
    return this.messages.filter((sent) => sent.type === "initial_data_batch");
  }

  changes(): ChangeMessage[] {
    return this.messages.filter((sent) => sent.type === "change");
  }

  errors(): ErrorMessage[] {
    return this.messages.filter((sent) => sent.type === "error");
  }

  /** Returns the messages received so far, and removes them from the socket. */
  drain(): (DataMessage | ErrorMessage)[] {
    return this.messages.splice(0);
  }
}

export function subscriber(userId: string, owner: number): Principal {
  return {
    userId,
    role: "user",
    owner,
    actorId: userId,
    actorRole: "user",
    isImpersonated: false,
    sessionId: `session of ${userId}`,
  };
}

export const ANN: Principal = subscriber("ann", 1);
export const BOB: Principal = subscriber("bob", 2);

/**
 * The definition history of a catalog without tables, for tests whose tables exist only in the
 * store.
 */
export const NO_DEFINITIONS: DefinitionHistory = {
  tableAt: () => undefined,
  tableById: () => undefined,
  tableDroppedSeq: () => 0,
  rowRightsSeq: () => 0,
  accounts: { droppedSeq: () => 0 },
};

export const LIMITS: LiveLimits = {
  subscriptionsPerUser: 100,
  subscriptionsPerConnection: 1000,
  batchSizeDefault: 1000,
  batchSizeMax: 10_000,
  frameBytesMax: 8 << 20,
  loadingTimeoutMs: 600_000,
  replayChangesMax: 10_000,
  stateBytesMax: 64 << 20,
};

export interface LiveFixture<S extends Store = ModelStore> {
  readonly clock: ManualClock;
  readonly store: S;
  readonly sql: KnownQueries;
  readonly engine: LocalLiveEngine;
  open(
    sql: string,
    options?: SubscribeOptions | null,
    more?: { id?: string; as?: Principal; sink?: RecordingSink; params?: readonly unknown[] },
  ): { sink: RecordingSink; subscription: LiveSubscription };
}

/** Returns an engine over the model store, which contains `chat.messages`. */
export function liveFixture(limits: Partial<LiveLimits> = {}, log: Log = silentLog): LiveFixture {
  const clock = new ManualClock();
  const store = new ModelStore(clock);
  store.defineTable(messagesTable());
  return fixtureOver(store, clock, limits, log);
}

export function fixtureOver<S extends Store>(
  store: S,
  clock: ManualClock,
  limits: Partial<LiveLimits> = {},
  log: Log = silentLog,
): LiveFixture<S> {
  const sql = new KnownQueries();
  const bugs = new Bugs(log);
  const engine = new LocalLiveEngine({
    store,
    sql,
    definitions: NO_DEFINITIONS,
    clock,
    random: new SeededRandom(1),
    log,
    onBug: (error, what, fields) => bugs.contain(error, what, fields),
    limits: { ...LIMITS, ...limits },
  });
  let connectionCount = 0;
  return {
    clock,
    store,
    sql,
    engine,
    open(text, options, { id = "m1", as = ANN, sink = new RecordingSink(), params } = {}) {
      connectionCount += 1;
      const spec = {
        id,
        sql: text,
        ...(options === undefined ? {} : { options }),
        ...(params === undefined ? {} : { params }),
      };
      sink.connectionId = `c${connectionCount}`;
      const subscription = engine.subscribe({ principal: as, spec, sink });
      return { sink, subscription };
    },
  };
}

/** Lets the scheduler run until it has no work left. */
export async function settle(): Promise<void> {
  for (let tick = 0; tick < 8; tick += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}
