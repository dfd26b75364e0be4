/**
 * Verifies that the rows of a live query always reflect its events in order, and that its position
 * is stored for the next start.
 */
import { expect, test } from "bun:test";
import {
  type Client,
  createClient,
  type LiveOptions,
  type LiveQuery,
  type PositionStorage,
  type SchemaField,
} from "../../src/client/mod.ts";
import { FakeServer, loginBody, ok } from "./scripted_server.ts";

const ID: SchemaField = { name: "id", data_type: "BigInt", index: 0, flags: ["pk"] };
const TEXT: SchemaField = { name: "text", data_type: "Text", index: 1 };
const AT: SchemaField = { name: "at", data_type: "Timestamp", index: 2 };
const PRICE: SchemaField = {
  name: "price",
  data_type: { Decimal: { precision: 20, scale: 2 } },
  index: 3,
};
const SEQ: SchemaField = { name: "_seq", data_type: "BigInt", index: 4 };
const SCHEMA = [ID, TEXT, AT, PRICE, SEQ];

type Row = Record<string, unknown>;

interface Followed {
  server: FakeServer;
  client: Client;
  live: LiveQuery;
  /** The ids of the rows passed to each call of `onRows`. */
  told: unknown[][];
}

async function follow(
  options: Partial<LiveOptions> = {},
  clientOptions: { storage?: PositionStorage; values?: "wire" } = {},
): Promise<Followed> {
  const server = new FakeServer();
  const client = createClient({ url: "http://db.test", environment: server, ...clientOptions });
  await client.session.login("ada", "x");
  const told: unknown[][] = [];
  const live = client.live("SELECT * FROM a.t", {
    ...(options.keepRows === false ? { onEvent: () => undefined } : {}),
    ...(options.keepRows === false ? {} : { onRows: (rows) => told.push(ids(rows)) }),
    ...options,
  });
  server.socket.welcome();
  return { server, client, live, told };
}

function ids(rows: readonly object[]): unknown[] {
  return rows.map((each) => (each as Row)["id"]);
}

const id = "live-1";

function ack(schema: readonly SchemaField[] = SCHEMA): object {
  return { type: "subscription_ack", subscription_id: id, total_rows: 0, schema };
}

function batch(rows: Row[], lastSeq: number, hasMore = false): object {
  const batch_control = { batch_num: 0, has_more: hasMore, last_seq_id: lastSeq };
  return { type: "initial_data_batch", subscription_id: id, rows, batch_control };
}

function change(type: string, rows: Row[], olds?: Row[]): object {
  const old_values = olds === undefined ? {} : { old_values: olds };
  return { type: "change", subscription_id: id, change_type: type, rows, ...old_values, ts: 1 };
}

function row(number: number, seq: number, fields: Row = {}): Row {
  return { id: number, text: null, at: null, price: null, _seq: seq, ...fields };
}

test("onRows receives the rows once the snapshot is complete, and then after each change", async () => {
  const { live, server, told } = await follow();
  expect(live.rows).toEqual([]);
  server.socket.tell(ack(), batch([row(2, 10), row(1, 11)], 11, true));
  expect([ids(live.rows), told]).toEqual([[1, 2], []]);
  server.socket.tell(batch([row(3, 12)], 12));
  server.socket.tell(change("insert", [row(0, 13)]));
  const before = live.rows;
  expect(live.rows).toBe(before);
  server.socket.tell(change("update", [row(2, 14, { text: "b" })], [{ id: 2, _seq: 10 }]));
  expect(live.rows).not.toBe(before);
  expect(live.rows[2]).toMatchObject({ id: 2, text: "b" });
  server.socket.tell(change("delete", [], [row(1, 15, { _deleted: true })]));
  // The deleted row was already deleted before, or never existed.
  server.socket.tell(change("insert", [row(1, 15)]), change("delete", [], [row(9, 16)]));
  expect(told).toEqual([
    [1, 2, 3],
    [0, 1, 2, 3],
    [0, 1, 2, 3],
    [0, 2, 3],
    [0, 2, 3],
  ]);
});

test("rows are up to date when onEvent is called", async () => {
  const seen: unknown[] = [];
  const { live, server } = await follow({
    onEvent: ({ type }) => seen.push([type, ids(live?.rows ?? [])]),
  });
  server.socket.tell(ack(), batch([row(1, 1)], 1), change("insert", [row(2, 2)]));
  expect(seen).toEqual([
    ["start", []],
    ["status", []],
    ["rows", [1]],
    ["status", [1]],
    ["change", [1, 2]],
  ]);
});

test("rows are placed by the collation of the ack", async () => {
  const { live, server } = await follow();
  const collation = {
    locale: "sv",
    sensitivity: "variant",
    ignore_punctuation: false,
    deterministic: true,
  };
  const sort = [{ column: "text", direction: "asc", nulls: "last", collation }];
  const texts = ["ö", "z", "ä", "Z", "a"];
  const rows = texts.map((text, i) => row(i, i + 1, { text }));
  server.socket.tell({ ...ack(), sort }, batch(rows, 5));
  expect(ids(live.rows)).toEqual([4, 1, 3, 2, 0]);
  server.socket.tell(change("insert", [row(9, 6, { text: "å" })]));
  expect(ids(live.rows)).toEqual([4, 1, 3, 9, 2, 0]);
});

test("rows continue after a lost connection, and start again if history is gone", async () => {
  const { live, server, told } = await follow();
  server.socket.tell(ack(), batch([row(1, 1), row(2, 2)], 2));
  server.socket.handlers.onClose(1006);
  expect([live.status, ids(live.rows)]).toEqual(["offline", [1, 2]]);
  server.fire();
  server.socket.welcome();
  server.socket.tell(ack(), change("delete", [], [row(1, 3)]), batch([row(3, 4)], 4));
  const error = { type: "error", subscription_id: id, message: "gone", ended: true };
  server.socket.tell({ ...error, code: "RESUME_EXPIRED" }, ack(), batch([row(7, 5)], 5));
  expect(told).toEqual([[1, 2], [2, 3], [7]]);
});

test("the rows of another user arrive without any earlier rows", async () => {
  const { live, server, client, told } = await follow();
  server.socket.tell(ack(), batch([row(1, 1)], 1));
  server.answer = () => ok(loginBody("t", "bob"));
  await client.session.login("bob", "x");
  expect([live.rows, told]).toEqual([[], [[1], []]]);
});

const ROWS = [
  row(1, 1, { text: "b", at: 2000, price: "10.00" }),
  row(2, 2, { text: null, at: 1000, price: "9.50" }),
  row(3, 3, { text: "a", at: "9007199254740993000", price: "90071992547409.93" }),
  row(4, 4, { text: "b", at: "9007199254740993001", price: "90071992547409.92" }),
];

test.each<[LiveOptions["orderBy"], number[]]>([
  ["text", [3, 1, 4, 2]],
  ["text DESC", [2, 1, 4, 3]],
  ["text desc nulls last, id DESC", [4, 1, 3, 2]],
  ["TEXT NULLS FIRST", [2, 3, 1, 4]],
  ['"at" DESC', [4, 3, 1, 2]],
  ["price", [2, 1, 4, 3]],
  ["_seq DESC", [4, 3, 2, 1]],
  [(left, right) => Number(right["_seq"]) - Number(left["_seq"]), [4, 3, 2, 1]],
])("rows are in the order of %p", async (orderBy, expected) => {
  const { live, server } = await follow(orderBy === undefined ? {} : { orderBy });
  server.socket.tell(ack(), batch(ROWS.toReversed(), 4));
  expect(ids(live.rows)).toEqual(expected);
  const first = ROWS.find((each) => each["id"] === expected[0]);
  server.socket.tell(change("delete", [], [{ ...first, _seq: 9 }]));
  expect(ids(live.rows)).toEqual(expected.slice(1));
});

test("an order by a column that the query does not return ends the query with an error", async () => {
  const errors: string[] = [];
  const { live, server } = await follow({
    orderBy: "sent_at",
    onError: ({ message }) => errors.push(message),
  });
  server.socket.tell(ack());
  expect(live.status).toBe("ended");
  expect(errors).toEqual([
    'Cannot sort the rows: orderBy names "sent_at", but the query has no such column',
  ]);
});

test("keys of two columns, large numbers and texts distinguish rows", async () => {
  const keys: SchemaField[] = [
    { name: "room", data_type: "Text", index: 0, flags: ["pk"] },
    { name: "id", data_type: "BigInt", index: 1, flags: ["pk"] },
    SEQ,
  ];
  const { live, server } = await follow();
  const rows = [
    { room: "b", id: 10, _seq: 1 },
    { room: "a", id: "9007199254740993", _seq: 2 },
    { room: "a", id: "9007199254740992", _seq: 3 },
    { room: "a", id: 2, _seq: 4 },
  ];
  server.socket.tell(ack(keys), batch(rows, 4), change("update", [{ room: "a", id: 2, _seq: 5 }]));
  expect(live.rows.map(({ id: number, room }) => String(room) + String(number))).toEqual([
    "a2",
    "a9007199254740992",
    "a9007199254740993",
    "b10",
  ]);
});

test("rows without a key are all distinct, and a deletion removes the oldest equal row", async () => {
  const { live, server } = await follow();
  const schema = [{ ...ID, flags: [] }, TEXT, SEQ];
  const rows = [1, 2, 3].map((seq) => ({ id: 7, text: "a", _seq: seq }));
  server.socket.tell(ack(schema), batch(rows, 3));
  server.socket.tell(change("delete", [], [{ id: 7, text: "a", _seq: 4, _deleted: true }]));
  expect(live.rows.map(({ _seq: seq }) => seq)).toEqual([2, 3]);
});

test("keepRows: false keeps no rows", async () => {
  const { live, server } = await follow({ keepRows: false });
  server.socket.tell(ack(), batch([row(1, 1)], 1), change("insert", [row(2, 2)]));
  expect(live.rows).toEqual([]);
});

test("an error without a handler is thrown in a separate tick, except after a logout", async () => {
  const refused = { type: "error", subscription_id: id, code: "NOT_FOUND", ended: true };
  for (const [given, count] of [
    [{}, 1],
    [{ onError: () => undefined }, 0],
    [{ onEvent: () => undefined }, 0],
  ] as const) {
    const { server } = await follow(given);
    server.timers.clear();
    server.socket.tell({ ...refused, message: "There is no table a.t" });
    expect(server.timers.size).toBe(count);
    if (count === 1) expect(() => server.fire()).toThrow("There is no table a.t");
  }
  const { client, server } = await follow();
  await client.session.logout();
  expect(server.timers.size).toBe(0);
});

test("events and rows contain JavaScript values, or the values of the wire format", async () => {
  const sent = row(1, 1, { at: 1_500_001 });
  const old = { id: 1, _seq: 1, at: 1_500_001 };
  for (const values of [undefined, "wire"] as const) {
    const at = values === undefined ? new Date(1500) : 1_500_001;
    const seen: unknown[] = [];
    const { live, server } = await follow(
      { onEvent: (event) => seen.push(event) },
      values === undefined ? {} : { values },
    );
    server.socket.tell(ack(), batch([sent], 1));
    server.socket.tell(change("update", [row(1, 2)], [old]));
    server.socket.tell(change("delete", [], [row(1, 3, { at: 1_500_001 })]));
    expect(seen).toContainEqual(
      expect.objectContaining({ rows: [expect.objectContaining({ at })] }),
    );
    const olds = { old_values: [{ ...old, at }] };
    expect(seen).toContainEqual(expect.objectContaining({ change: expect.objectContaining(olds) }));
    expect(live.rows).toEqual([]);
  }
});

class Memory implements PositionStorage {
  readonly kept = new Map<string, string>();
  getItem(key: string): string | null {
    return this.kept.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.kept.set(key, value);
  }
  removeItem(key: string): void {
    this.kept.delete(key);
  }
}

/** Returns the position from which a query with the given storage key resumes. */
async function positionOf(
  storage: PositionStorage,
  options: Partial<LiveOptions> & { user?: string; sql?: string } = {},
): Promise<number | undefined> {
  const { sql = "SELECT * FROM a.t", user = "ada", ...given } = options;
  const server = new FakeServer();
  server.answer = () => ok(loginBody("t", user));
  const client = createClient({ url: "http://db.test", environment: server, storage });
  await client.session.login(user, "x");
  client.live(sql, { resumeKey: "mine", onEvent: () => undefined, ...given });
  const message = server.socket.welcome();
  const asked = message?.type === "subscribe" ? message.subscription.options?.from_seq_id : 0;
  return asked === undefined || asked === null ? undefined : Number(asked);
}

test("from resumes after a position, and starts again if the position has expired", async () => {
  const { server, live } = await follow({ from: 40 });
  const spec = server.socket.received.at(-1);
  expect(spec).toMatchObject({ subscription: { options: { from_seq_id: 40 } } });
  const error = { type: "error", subscription_id: id, message: "gone", ended: true };
  server.socket.tell({ ...error, code: "RESUME_EXPIRED" });
  expect(JSON.stringify(server.socket.received.at(-1))).not.toContain("from_seq_id");
  server.socket.tell(ack(), batch([row(1, 50)], 60));
  expect(live.position).toBe(60);
});

test("resumeKey keeps the position of each message, for the same query of the same user", async () => {
  const storage = new Memory();
  const { server } = await follow({ resumeKey: "mine" }, { storage });
  const steps: [object, number][] = [
    [batch([row(1, 5)], 5, true), 5],
    [batch([], 7), 7],
    [change("insert", [row(2, 8)]), 8],
    [{ type: "pong", id: "heartbeat", positions: { [id]: 20 } }, 20],
  ];
  server.socket.tell(ack());
  for (const [message, position] of steps) {
    server.socket.tell(message);
    expect(await positionOf(storage)).toBe(position);
  }
  expect(await positionOf(storage, { from: 3 })).toBe(20);
  expect(await positionOf(storage, { user: "bob" })).toBeUndefined();
  expect(await positionOf(storage, { user: "bob", from: 3 })).toBe(3);
  expect(await positionOf(storage, { sql: "SELECT id FROM a.t" })).toBeUndefined();
  expect(await positionOf(storage, { params: [1] })).toBeUndefined();
  expect(await positionOf(storage, { namespace: "a" })).toBeUndefined();
  expect(await positionOf(storage, { resumeKey: "other" })).toBeUndefined();
  for (const broken of ["", "7", "a b", "null"]) {
    storage.kept.set("mine", broken);
    expect(await positionOf(storage)).toBeUndefined();
  }
});

test("a full storage is reported, and the query continues", async () => {
  const storage = new Memory();
  const { live, server } = await follow({ resumeKey: "mine" }, { storage });
  storage.setItem = () => {
    throw new Error("the storage is full");
  };
  server.socket.tell(ack(), batch([row(1, 5)], 5), change("insert", [row(2, 6)]));
  expect([live.status, ids(live.rows)]).toEqual(["ready", [1, 2]]);
  expect(() => server.fire()).toThrow("the storage is full");
  storage.getItem = () => {
    throw new Error("the storage is closed");
  };
  expect(await positionOf(storage, { from: 3 })).toBe(3);
});
