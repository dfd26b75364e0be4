/**
 * Tests `/v1/ws` on the real process: login, snapshots in batches, changes, resume and formats.
 * Each frame is compared with the expected one, as JSON and as MessagePack.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { InitialDataBatch, ServerMessage } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;
const SEQ = expect.any(Number);

beforeAll(async () => {
  server = await startReadyServer({
    config: { websocket: { auth_timeout_secs: 1, max_frame_bytes: 65_536 } },
  });
  await server.rows("CREATE NAMESPACE chat");
});

afterAll(async () => {
  await server.stop();
});

let tableCount = 0;

/** Creates a new table of messages, so that tests do not see each other's rows. */
async function newTable(kind = "SHARED"): Promise<string> {
  tableCount += 1;
  const table = `chat.t${tableCount}`;
  await server.rows(`CREATE ${kind} TABLE ${table} (id BIGINT PRIMARY KEY, room TEXT, text TEXT)`);
  return table;
}

type Speech = "json" | "msgpack";

/** The serialization used by the current group of tests. */
let speech: Speech = "json";

async function connect(query = "?compress=false"): Promise<SocketClient> {
  const packs = speech === "msgpack";
  const asked = packs ? "?serialization=msgpack" : query;
  const socket = await SocketClient.connect(server.url, {
    token: server.token,
    query: asked,
    packs,
  });
  await socket.expect("auth_success");
  return socket;
}

interface Spec {
  sql: string;
  id?: string;
  options?: Record<string, unknown> | null;
  params?: readonly unknown[];
  namespace_id?: string;
}

function subscribe(socket: SocketClient, { id = "m1", ...spec }: Spec): void {
  socket.send({ type: "subscribe", subscription: { id, ...spec } });
}

/** Subscribes and reads the snapshot to its end. */
async function follow(socket: SocketClient, spec: Spec): Promise<InitialDataBatch> {
  subscribe(socket, spec);
  await socket.expect("subscription_ack");
  for (;;) {
    const batch = await socket.expect("initial_data_batch");
    if (!batch.batch_control.has_more) return batch;
    socket.send({ type: "next_batch", subscription_id: batch.subscription_id });
  }
}

describe("a socket logs in by header or by message", () => {
  test("a login by header succeeds without a message", async () => {
    const socket = await SocketClient.connect(server.url, { token: server.token });
    expect(await socket.next()).toEqual({
      type: "auth_success",
      user: "ada",
      role: "dba",
      protocol: { serialization: "json", compression: "gzip" },
    });
    expect(socket.frames[0]).toMatchObject({ isText: true, isGzip: false });
    socket.close();
  });

  test("a second login renews the connection, which then belongs to the session of the newer token", async () => {
    const [first, second] = [await server.login("ada"), await server.login("ada")];
    const logOut = ({ access_token: token }: typeof first): Promise<Response> =>
      server.post("/v1/api/auth/logout", {}, { Authorization: `Bearer ${token}` });
    const socket = await SocketClient.connect(server.url, { query: "?compress=false" });
    await socket.authenticate(first.access_token);
    const table = await newTable();
    await follow(socket, { sql: `SELECT id FROM ${table}` });
    expect(await socket.authenticate(second.access_token)).toMatchObject({ user: "ada" });
    await logOut(first);
    await server.rows(`INSERT INTO ${table} VALUES (1, 'a', 'b')`);
    expect(await socket.expect("change")).toMatchObject({ rows: [{ id: 1 }] });
    await logOut(second);
    expect(await socket.expect("error")).toMatchObject({ code: "TOKEN_REVOKED", ended: true });
    expect(await socket.closed()).toMatchObject({ code: 1008 });
  });

  test("a second login with another user's token, or with none, closes with 1008", async () => {
    for (const token of [await server.createUser("renewer"), "anything"]) {
      const socket = await SocketClient.connect(server.url);
      await socket.authenticate(server.token);
      socket.send({ type: "authenticate", method: "jwt", token });
      const error = { code: "INVALID_CREDENTIALS" };
      expect(await socket.expect("auth_error")).toMatchObject(error);
      expect(await socket.closed()).toMatchObject({ code: 1008 });
    }
  });

  test("a login by message is answered if requested, and the response shows the settings in effect", async () => {
    const socket = await SocketClient.connect(server.url, { query: "?compress=FALSE" });
    const protocol = { serialization: "msgpack", compression: "gzip" };
    socket.send({ type: "authenticate", method: "jwt", token: server.token, protocol });
    expect(await socket.next()).toMatchObject({
      type: "auth_success",
      protocol: { serialization: "msgpack", compression: "none" },
    });
    socket.close();
  });

  test("a missing login closes with 1008", async () => {
    const socket = await SocketClient.connect(server.url);
    socket.send({ type: "ping", id: "p" });
    expect(await socket.expect("pong")).toEqual({ type: "pong", id: "p", positions: {} });
    expect(await socket.expect("auth_error")).toMatchObject({ code: "AUTH_TIMEOUT" });
    expect(await socket.closed()).toMatchObject({ code: 1008 });
  });
});

describe.each(["json", "msgpack"] as const)(
  "over %s, a subscription delivers rows and changes",
  (spoken) => {
    beforeAll(() => {
      speech = spoken;
    });

    afterAll(() => {
      speech = "json";
    });

    describe("a subscription begins with a snapshot", () => {
      test("a snapshot arrives in batches, followed by changes", async () => {
        const table = await newTable();
        await server.rows(
          `INSERT INTO ${table} VALUES (5, 'lobby', 'a'), (6, 'lobby', NULL), (7, 'lobby', 'hello'), (9, 'x', 'y')`,
        );
        const socket = await connect();
        const sql = `SELECT id, text, _seq FROM ${table} WHERE room = 'lobby'`;
        subscribe(socket, { sql, options: { batch_size: 2 } });
        expect(await socket.next()).toEqual({
          type: "subscription_ack",
          subscription_id: "m1",
          total_rows: 0,
          batch_control: { batch_num: 0, has_more: true, status: "loading", last_seq_id: null },
          schema: [
            { name: "id", data_type: "BigInt", index: 0, flags: ["pk", "nn", "uq"] },
            { name: "text", data_type: "Text", index: 1 },
            { name: "_seq", data_type: "BigInt", index: 2, flags: ["nn"] },
          ],
        });
        expect(await socket.next()).toEqual({
          type: "initial_data_batch",
          subscription_id: "m1",
          rows: [
            { id: 5, text: "a", _seq: SEQ },
            { id: 6, text: null, _seq: SEQ },
          ],
          batch_control: { batch_num: 0, has_more: true, status: "loading", last_seq_id: SEQ },
        });
        // This row is written during the snapshot. It is not part of the snapshot, but it is not
        // lost, either.
        await server.rows(`INSERT INTO ${table} VALUES (8, 'lobby', 'hi')`);
        socket.send({ type: "next_batch" });
        expect(await socket.next()).toEqual({
          type: "initial_data_batch",
          subscription_id: "m1",
          rows: [{ id: 7, text: "hello", _seq: SEQ }],
          batch_control: { batch_num: 1, has_more: false, status: "ready", last_seq_id: SEQ },
        });
        expect(await socket.next()).toEqual({
          type: "change",
          subscription_id: "m1",
          change_type: "insert",
          rows: [{ id: 8, text: "hi", _seq: SEQ }],
          ts: SEQ,
          commit_seq: SEQ,
        });
        socket.close();
      });

      test("a snapshot without rows is one empty batch", async () => {
        const socket = await connect();
        const batch = await follow(socket, { sql: `SELECT * FROM ${await newTable()}` });
        expect(batch).toMatchObject({ rows: [], batch_control: { batch_num: 0, status: "ready" } });
        socket.close();
      });

      test("a snapshot may contain only the newest rows, or none", async () => {
        const table = await newTable();
        const values = Array.from({ length: 20 }, (_, id) => `(${id}, 'r', 't')`).join(", ");
        await server.rows(`INSERT INTO ${table} VALUES ${values}`);
        const socket = await connect();
        const sql = `SELECT id FROM ${table}`;
        const newest = await follow(socket, { id: "a", sql, options: { last_rows: 3 } });
        expect(newest.rows.map(({ id }) => id)).toEqual([17, 18, 19]);
        const none = await follow(socket, { id: "b", sql, options: { last_rows: 0 } });
        expect(none.rows).toEqual([]);
        subscribe(socket, { id: "c", sql, options: null });
        expect(await socket.expect("subscription_ack")).toMatchObject({
          batch_control: { status: "ready", has_more: false, last_seq_id: SEQ },
        });
        socket.close();
      });

      test("a snapshot contains rows from segments and from memory, each once, in order", async () => {
        const table = await newTable();
        for (let round = 0; round < 4; round += 1) {
          const values = Array.from({ length: 500 }, (_, n) => `(${round * 500 + n}, 'r', 't')`);
          await server.rows(`INSERT INTO ${table} VALUES ${values.join(", ")}`);
          if (round < 3) await server.rows(`STORAGE FLUSH TABLE ${table}`);
          await server.rows(`UPDATE ${table} SET text = 'u' WHERE id % 7 = ${round}`);
        }
        const socket = await connect();
        const options = { batch_size: 300 };
        subscribe(socket, { sql: `SELECT id, _seq FROM ${table}`, options });
        await socket.expect("subscription_ack");
        const rows: { id: number; _seq: number }[] = [];
        for (let hasMore = true; hasMore; ) {
          const batch = await socket.expect("initial_data_batch");
          rows.push(...(batch.rows as unknown as { id: number; _seq: number }[]));
          hasMore = batch.batch_control.has_more;
          if (hasMore) socket.send({ type: "next_batch" });
        }
        expect(rows.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 2000 }, (_, id) => id),
        );
        const seqs = rows.map(({ _seq: seq }) => seq);
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
        socket.close();
      });
    });

    describe("a subscription delivers the changes to its rows", () => {
      test("a change is an insert, update or delete depending on whether the row matched before and matches now", async () => {
        const table = await newTable();
        const socket = await connect();
        await follow(socket, { sql: `SELECT id, text, _seq FROM ${table} WHERE room = 'lobby'` });
        const write = (sql: string): Promise<unknown> => server.rows(sql.replaceAll("t!", table));
        const common = { type: "change", subscription_id: "m1", ts: SEQ, commit_seq: SEQ };

        await write("INSERT INTO t! VALUES (1, 'other', 'a')");
        await write("UPDATE t! SET room = 'lobby' WHERE id = 1");
        expect(await socket.next()).toEqual({
          ...common,
          change_type: "insert",
          rows: [{ id: 1, text: "a", _seq: SEQ }],
        } as unknown as ServerMessage);

        await write("UPDATE t! SET text = NULL WHERE id = 1");
        expect(await socket.next()).toEqual({
          ...common,
          change_type: "update",
          rows: [{ id: 1, text: null, _seq: SEQ }],
          old_values: [{ id: 1, text: "a", _seq: SEQ }],
        } as unknown as ServerMessage);

        // An update that changes nothing creates no version, and changes to columns that are not
        // selected are not sent.
        await write("UPDATE t! SET text = NULL WHERE id = 1");
        await write("UPDATE t! SET room = 'away' WHERE id = 1");
        expect(await socket.next()).toEqual({
          ...common,
          change_type: "delete",
          rows: [],
          old_values: [{ id: 1, text: null, _seq: SEQ, _deleted: true }],
        } as unknown as ServerMessage);

        await write("DELETE FROM t! WHERE id = 1");
        await write("INSERT INTO t! VALUES (2, 'lobby', 'b')");
        expect(await socket.next()).toMatchObject({ change_type: "insert", rows: [{ id: 2 }] });
        await write("DELETE FROM t! WHERE id = 2");
        expect(await socket.next()).toMatchObject({
          change_type: "delete",
          old_values: [{ id: 2 }],
        });
        socket.close();
      });

      test("a change contains only live rows, even if the filter names _deleted", async () => {
        const table = await newTable();
        await server.rows(`INSERT INTO ${table} (id) VALUES (1), (2)`);
        const [[first] = []] = await server.rows(`SELECT _seq FROM ${table} WHERE id = 1`);
        const there = { sql: `SELECT id FROM ${table} WHERE _deleted = false` };
        const gone = { sql: `SELECT id FROM ${table} WHERE _deleted` };
        const socket = await connect();
        expect((await follow(socket, { ...there, id: "there" })).rows).toHaveLength(2);
        expect((await follow(socket, { ...gone, id: "gone" })).rows).toEqual([]);
        await server.rows(`DELETE FROM ${table} WHERE id = 1`);
        await server.rows(`INSERT INTO ${table} (id) VALUES (3)`);
        for (const change of [{ old_values: [{ id: 1, _deleted: true }] }, { rows: [{ id: 3 }] }]) {
          expect(await socket.next()).toMatchObject({ subscription_id: "there", ...change });
        }
        for (const replay of ["all", "latest"]) {
          const options = { from_seq_id: first, replay };
          subscribe(socket, { ...gone, id: "gone", options });
          expect(await socket.next()).toMatchObject({ type: "subscription_ack" });
          expect(await socket.next()).toMatchObject({
            rows: [],
            batch_control: { status: "ready" },
          });
        }
        expect((await follow(socket, { ...there, id: "there" })).rows).toMatchObject([
          { id: 2 },
          { id: 3 },
        ]);
        socket.close();
      });

      test("the changes of one commit arrive together, in order", async () => {
        const table = await newTable();
        const socket = await connect();
        await follow(socket, { sql: `SELECT id, _seq FROM ${table}` });
        await server.rows(
          `BEGIN; INSERT INTO ${table} VALUES (1,'r','a'),(2,'r','b'); DELETE FROM ${table} WHERE id = 1; COMMIT`,
        );
        await server.rows(`INSERT INTO ${table} VALUES (3,'r','c')`);
        const seen: number[] = [];
        const commits = new Set<number | undefined>();
        while (!seen.includes(3)) {
          const change = await socket.expect("change");
          seen.push(...change.rows.map(({ id }) => Number(id)));
          commits.add(change.commit_seq);
        }
        expect(seen.at(-1)).toBe(3);
        expect(commits.size).toBe(2);
        socket.close();
      });

      test("a change reaches queries with parameters, an unqualified name, or a renamed column", async () => {
        const table = await newTable();
        const socket = await connect();
        await follow(socket, {
          sql: `SELECT id AS key, upper(text) AS shout FROM ${table.slice(5)} WHERE room = $1`,
          params: ["lobby"],
          namespace_id: "chat",
        });
        await server.rows(`INSERT INTO ${table} VALUES (1, 'lobby', 'psst'), (2, 'x', 'y')`);
        const change = await socket.expect("change");
        expect(change.rows).toEqual([expect.objectContaining({ key: 1, shout: "PSST" })]);
        expect(change.rows).toHaveLength(1);
        socket.close();
      });

      test("changes stop after unsubscribe, and after another subscription with the same id", async () => {
        const table = await newTable();
        const socket = await connect();
        const sql = `SELECT id FROM ${table}`;
        await follow(socket, { id: "a", sql });
        await follow(socket, { id: "b", sql });
        socket.send({ type: "unsubscribe", subscription_id: "a" });
        await follow(socket, { id: "b", sql: `${sql} WHERE id > 100` });
        await server.rows(`INSERT INTO ${table} VALUES (1, 'r', 't')`);
        await server.rows(`INSERT INTO ${table} VALUES (101, 'r', 't')`);
        expect(await socket.expect("change")).toMatchObject({
          subscription_id: "b",
          rows: [{ id: 101 }],
        });
        socket.close();
      });
    });

    describe("a subscription can be resumed", () => {
      test("a resume replays every later change and deletion, each once", async () => {
        const table = await newTable();
        const first = await connect();
        const sql = `SELECT id, text, _seq FROM ${table}`;
        await server.rows(`INSERT INTO ${table} VALUES (1,'r','a'), (2,'r','b'), (3,'r','c')`);
        const { batch_control: control } = await follow(first, { sql });
        first.close();
        await server.rows(`UPDATE ${table} SET text = 'A' WHERE id = 1`);
        await server.rows(`DELETE FROM ${table} WHERE id = 2`);
        await server.rows(`INSERT INTO ${table} VALUES (4,'r','d')`);
        await server.rows(`UPDATE ${table} SET text = 'AA' WHERE id = 1`);

        const second = await connect();
        subscribe(second, { sql, options: { from_seq_id: String(control.last_seq_id) } });
        await second.expect("subscription_ack");
        const rows = new Map<unknown, unknown>([
          [2, "b"],
          [3, "c"],
        ]);
        const seqs: number[] = [];
        for (let isReady = false; !isReady; ) {
          const message = await second.next();
          if (message.type !== "initial_data_batch" && message.type !== "change") {
            throw new Error(`Expected rows, got ${JSON.stringify(message)}`);
          }
          for (const row of message.rows) rows.set(row["id"], row["text"]);
          const gone = message.type === "change" && message.change_type === "delete";
          for (const row of gone ? (message.old_values ?? []) : []) rows.delete(row["id"]);
          const carried = gone ? (message.old_values ?? []) : message.rows;
          seqs.push(...carried.map((row) => Number(row["_seq"])));
          isReady = message.type === "initial_data_batch" && !message.batch_control.has_more;
        }
        expect(rows).toEqual(
          new Map<unknown, unknown>([
            [3, "c"],
            [1, "AA"],
            [4, "d"],
          ]),
        );
        expect(seqs).toEqual(seqs.toSorted((a, b) => a - b));
        expect(new Set(seqs).size).toBe(seqs.length);
        expect(Math.min(...seqs)).toBeGreaterThan(Number(control.last_seq_id));
        second.close();
      });

      test("a resume survives a kill of the server", async () => {
        const table = await newTable();
        const socket = await connect();
        const sql = `SELECT id, _seq FROM ${table}`;
        await server.rows(`INSERT INTO ${table} VALUES (1,'r','a')`);
        const { batch_control: control } = await follow(socket, { sql });
        await server.rows(`INSERT INTO ${table} VALUES (2,'r','b')`);
        await socket.expect("change");
        await server.rows(`DELETE FROM ${table} WHERE id = 1`);
        await server.restart("SIGKILL");
        const again = await connect();
        subscribe(again, { sql, options: { from_seq_id: control.last_seq_id } });
        await again.expect("subscription_ack");
        const seen: string[] = [];
        for (let isReady = false; !isReady; ) {
          const message = await again.next();
          if (message.type === "initial_data_batch") {
            seen.push(...message.rows.map(({ id }) => `row ${String(id)}`));
            isReady = !message.batch_control.has_more;
          } else if (message.type === "change") {
            seen.push(...(message.old_values ?? []).map(({ id }) => `delete ${String(id)}`));
          }
        }
        expect(seen.toSorted()).toEqual(["delete 1", "row 2"]);
        again.close();
      });

      test("a resume from 0 replays the whole history", async () => {
        const table = await newTable();
        await server.rows(`INSERT INTO ${table} VALUES (1,'r','a')`);
        const socket = await connect();
        const options = { from_seq_id: 0 };
        const batch = await follow(socket, { sql: `SELECT id FROM ${table}`, options });
        expect(batch.rows.map(({ id }) => id)).toEqual([1]);
        socket.close();
      });
    });

    describe("a query that cannot be followed is refused", () => {
      test.each([
        ["SELECT id FROM chat.t1, chat.t1 b", "INVALID_SQL"],
        ["SELECT id, COUNT(*) FROM chat.t1", "INVALID_SQL"],
        ["SELECT COUNT(*) FROM chat.t1 WHERE RANDOM() < 1", "UNSUPPORTED"],
        ["SELECT id FROM chat.t1 WHERE id IN (SELECT RANDOM())", "UNSUPPORTED"],
        ["SELECT id FROM chat.t1 FOR SYSTEM_TIME AS OF '2026-01-31' LIMIT 5", "INVALID_SQL"],
        ["EXPLAIN SELECT id FROM chat.t1", "INVALID_SQL"],
        ["SELECT id FROM chat.t1; SELECT id FROM chat.t1", "INVALID_SQL"],
        ["INSERT INTO chat.t1 VALUES (1, 'a', 'b')", "INVALID_SQL"],
        ["SELECT id FROM chat.t1 FOR UPDATE", "INVALID_SQL"],
        ["SELECT id FROM chat.t1 WHERE RANDOM() < 1", "UNSUPPORTED"],
        ["SELECT id FROM chat.t1 WHERE NOW() > NOW()", "UNSUPPORTED"],
        ["SELECT nope FROM chat.t1", "INVALID_SQL"],
        ["SELECT id FROM chat.nope", "NOT_FOUND"],
        ["SELECT id FROM nope.t1", "NOT_FOUND"],
      ])("%s", async (sql, code) => {
        const socket = await connect();
        subscribe(socket, { id: "x", sql });
        expect(await socket.expect("error")).toMatchObject({
          subscription_id: "x",
          code,
          ended: true,
        });
        socket.close();
      });

      test.each(["", 5, { name: "chat" }])("a namespace_id of %j is refused", async (namespace) => {
        const socket = await connect();
        const subscription = { id: "x", sql: "SELECT id FROM t1", namespace_id: namespace };
        socket.send({ type: "subscribe", subscription });
        expect(await socket.expect("error")).toMatchObject({
          subscription_id: "x",
          code: "INVALID_OPTIONS",
          ended: true,
        });
        socket.close();
      });

      test("a subscription ends when its table is dropped or altered", async () => {
        const [dropped, changed, untouched] = [
          await newTable(),
          await newTable(),
          await newTable(),
        ];
        const socket = await connect();
        await follow(socket, { id: "dropped", sql: `SELECT * FROM ${dropped}` });
        await follow(socket, { id: "changed", sql: `SELECT * FROM ${changed}` });
        await follow(socket, { id: "untouched", sql: `SELECT id FROM ${untouched}` });
        await server.rows(`DROP TABLE ${dropped}`);
        expect(await socket.expect("error")).toMatchObject({
          subscription_id: "dropped",
          code: "NOT_FOUND",
          ended: true,
        });
        await server.rows(`ALTER TABLE ${changed} ADD COLUMN more INT`);
        expect(await socket.expect("error")).toMatchObject({
          subscription_id: "changed",
          code: "SCHEMA_CHANGED",
          ended: true,
        });
        await server.rows(`ALTER TABLE ${untouched} ADD COLUMN more INT`);
        await server.rows(`INSERT INTO ${untouched} (id) VALUES (1)`);
        expect(await socket.expect("change")).toMatchObject({ subscription_id: "untouched" });
        socket.close();
      });
    });

    test("a pong reports for each subscription the position up to which everything has been sent", async () => {
      const table = await newTable();
      const socket = await connect();
      await follow(socket, { id: "quiet", sql: `SELECT id FROM ${table} WHERE id < 0` });
      await server.rows(`INSERT INTO ${table} VALUES (1, 'r', 't')`);
      const [row] = await server.rows(`SELECT _seq FROM ${table}`);
      socket.send({ type: "ping", id: "p1" });
      const pong = await socket.expect("pong");
      expect(pong.id).toBe("p1");
      expect(pong.positions["quiet"]).toBeGreaterThanOrEqual(Number(row?.[0]));
      socket.close();
    });
  },
);

describe("the rows in a subscription have the requested format", () => {
  test("MessagePack arrives in binary frames, large ones compressed, and control messages as text", async () => {
    const table = await newTable();
    const values = Array.from({ length: 100 }, (_, id) => `(${id}, 'room', 'text')`).join(", ");
    await server.rows(`INSERT INTO ${table} VALUES ${values}`);
    const socket = await SocketClient.connect(server.url, { query: "?serialization=msgpack" });
    await socket.authenticate(server.token);
    const batch = await follow(socket, { sql: `SELECT id, text FROM ${table}` });
    expect(batch.rows).toHaveLength(100);
    expect(socket.frames.map(({ isText, isGzip }) => [isText, isGzip])).toEqual([
      [true, false],
      [false, false],
      [false, true],
    ]);
    socket.close();
  });

  test("JSON of at least 512 bytes is compressed, unless the client declines", async () => {
    const table = await newTable();
    const values = Array.from({ length: 100 }, (_, id) => `(${id}, 'room', 'text')`).join(", ");
    await server.rows(`INSERT INTO ${table} VALUES ${values}`);
    for (const [query, isGzip] of [
      ["", true],
      ["?compress=false", false],
      ["?compress=0", false],
      ["?compress=No", false],
      ["?compression=none", false],
      ["?compress=yes", true],
    ] as const) {
      const socket = await connect(query);
      await follow(socket, { sql: `SELECT id, text FROM ${table}` });
      expect(socket.frames.at(-1), query).toMatchObject({ isGzip, isText: !isGzip });
      socket.close();
    }
  });

  test("batches are split so that no frame exceeds the maximum size", async () => {
    const table = await newTable();
    const text = "x".repeat(2000);
    const values = Array.from({ length: 200 }, (_, id) => `(${id}, 'r', '${text}')`).join(", ");
    await server.rows(`INSERT INTO ${table} VALUES ${values}`);
    const socket = await connect();
    await follow(socket, { sql: `SELECT id, text FROM ${table}` });
    expect(Math.max(...socket.frames.map(({ bytes }) => bytes))).toBeLessThanOrEqual(65_536);
    socket.close();
  });
});
