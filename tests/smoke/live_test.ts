/**
 * Tests subscriptions on the real process, as JSON and as MessagePack, and everything that ends,
 * interrupts or resumes them: KILL, revoked tokens, changed definitions, impossible resumes, and a
 * server that stops.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Packr } from "msgpackr";
import type { ServerMessage, SubscribeOptions } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { testThoroughly } from "../support/requirements.ts";
import { bundleCommand, type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";

const HOUR_MS = 3_600_000;

const packr = new Packr({ useRecords: false });

let server: ServerProcess;
let count = 0;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

async function newTable(columns = "n INT"): Promise<string> {
  count += 1;
  const table = `app.t${count}`;
  await server.rows(`CREATE SHARED TABLE ${table} (id BIGINT PRIMARY KEY, ${columns})`);
  return table;
}

/** Creates a new user with a socket. */
async function newUser(): Promise<{ user: string; token: string }> {
  count += 1;
  const user = `user${count}`;
  return { user, token: await server.createUser(user, "dba") };
}

/** Returns short descriptions of a subscription's rows and changes until it is ready. */
async function told(client: Client): Promise<string[]> {
  const words: string[] = [];
  for (;;) {
    const message = await client.next();
    words.push(...wordsOf(message));
    if (message.type !== "initial_data_batch") continue;
    if (!message.batch_control.has_more) return words;
    client.say({ type: "next_batch", subscription_id: message.subscription_id });
  }
}

function wordsOf(message: ServerMessage): string[] {
  if (message.type === "initial_data_batch") {
    return message.rows.map(({ id, n }) => `row ${String(id)}=${String(n)}`);
  }
  if (message.type !== "change") return [];
  const { change_type: type, rows, old_values: old = [] } = message;
  return (rows.length > 0 ? rows : old).map(({ id, n }) => `${type} ${String(id)}=${String(n)}`);
}

/** A client that uses the same serialization in both directions. */
class Client {
  readonly #socket: SocketClient;
  readonly #isPacked: boolean;

  constructor(socket: SocketClient, isPacked: boolean) {
    this.#socket = socket;
    this.#isPacked = isPacked;
  }

  say(message: Record<string, unknown>): void {
    if (this.#isPacked) this.#socket.sendRaw(new Uint8Array(packr.pack(message)));
    else this.#socket.send(message);
  }

  subscribe(id: string, sql: string, options?: SubscribeOptions | null): void {
    const subscription = { id, sql, ...(options === undefined ? {} : { options }) };
    this.say({ type: "subscribe", subscription });
  }

  /** Subscribes to a query and reads its snapshot. */
  async follow(id: string, sql: string, options?: SubscribeOptions | null): Promise<string[]> {
    this.subscribe(id, sql, options);
    await this.#socket.expect("subscription_ack");
    return options === null ? [] : await told(this);
  }

  /**
   * Returns everything that the server sent before this call, except the pong that marks the end.
   */
  async rest(): Promise<ServerMessage[]> {
    this.say({ type: "ping", id: "rest" });
    const messages: ServerMessage[] = [];
    for (;;) {
      const message = await this.next();
      if (message.type === "pong") return messages;
      messages.push(message);
    }
  }

  async position(id: string): Promise<number> {
    this.say({ type: "ping", id: "position" });
    const { positions } = await this.#socket.expect("pong");
    return Number(positions[id]);
  }

  next(): Promise<ServerMessage> {
    return this.#socket.next();
  }

  expect: SocketClient["expect"] = (type) => this.#socket.expect(type);

  closed(): ReturnType<SocketClient["closed"]> {
    return this.#socket.closed();
  }

  close(): void {
    this.#socket.close();
  }
}

describe.each(shareOf(["json", "msgpack"], { oneOf: 2 }))(
  "over %s, a client follows a live query",
  (serialization) => {
    async function connect(token = server.token): Promise<Client> {
      const query = `?serialization=${serialization}`;
      const socket = await SocketClient.connect(server.url, { token, query });
      await socket.expect("auth_success");
      return new Client(socket, serialization === "msgpack");
    }

    test("system.live and system.connections list the user, the query and the position of subscriptions", async () => {
      const table = await newTable();
      const { user, token } = await newUser();
      const client = await connect(token);
      await client.follow("m", `SELECT id, n FROM ${table} WHERE n > 5`, { last_rows: 3 });
      await server.rows(`INSERT INTO ${table} VALUES (1, 10), (2, 1)`);
      expect(wordsOf(await client.expect("change"))).toEqual(["insert 1=10"]);
      const position = await client.position("m");
      const [live] = await server.rows(
        "SELECT connection_id, subscription_id, namespace_id || '.' || table_name, query, options, " +
          "status, changes, last_seq, queued, position >= last_seq, lag_ms, changes_per_sec > 0 " +
          "FROM system.live WHERE user_id = $1",
        { params: [user] },
      );
      expect(live).toEqual([
        expect.stringMatching(/^ws-\d+$/),
        "m",
        table,
        `SELECT id, n FROM ${table} WHERE n > 5`,
        '{"last_rows":3}',
        "ready",
        1,
        expect.any(Number),
        0,
        true,
        0,
        true,
      ]);
      expect(Number(live?.[7])).toBeLessThanOrEqual(position);
      const connection =
        "SELECT connection_id, role, transport, client_addr, serialization, compression, " +
        "subscriptions, bytes_in > 50, bytes_out > 200, queued_bytes, " +
        "opened_at <= last_seen_at AND last_seen_at > NOW() - INTERVAL '1 minute' ";
      const [shown] = await server.rows(
        `${connection} FROM system.connections WHERE user_id = $1`,
        {
          params: [user],
        },
      );
      const counted = [1, true, true, 0, true];
      const who = [live?.[0], "dba", "websocket", "127.0.0.1", serialization, "gzip"];
      expect(shown).toEqual([...who, ...counted]);
      // Each user sees only their own connections.
      const own = await server.rows(`${connection} FROM system.my_connections`, { token });
      expect(own).toHaveLength(1);
      const plain = await server.createUser(`${user}plain`);
      expect(await server.rows("SELECT * FROM system.my_connections", { token: plain })).toEqual(
        [],
      );
      const refused = await server.sql("SELECT * FROM system.connections", { token: plain });
      expect(refused.body.error).toMatchObject({ code: "PERMISSION_DENIED" });
      client.close();
    });

    test("KILL LIVE QUERY ends one subscription with a message, and no other", async () => {
      const table = await newTable();
      const { user, token } = await newUser();
      const client = await connect(token);
      await client.follow("a", `SELECT * FROM ${table}`);
      await client.follow("b", `SELECT * FROM ${table}`);
      const [row] = await server.rows(
        "SELECT live_id FROM system.live WHERE user_id = $1 AND subscription_id = 'a'",
        { params: [user] },
      );
      await server.rows(`KILL LIVE QUERY '${String(row?.[0])}'`);
      expect(await client.expect("error")).toMatchObject({
        subscription_id: "a",
        code: "KILLED",
        ended: true,
      });
      await server.rows(`INSERT INTO ${table} VALUES (1, 1)`);
      expect(await client.rest()).toMatchObject([{ type: "change", subscription_id: "b" }]);
      const again = await server.sql(`KILL LIVE QUERY '${String(row?.[0])}'`);
      expect(again.body.error).toMatchObject({ reason: "object_not_found" });
      client.close();
    });

    test("KILL CONNECTION closes one connection with 1008, and its client may reconnect", async () => {
      const table = await newTable();
      const { user, token } = await newUser();
      const [victim, other] = [await connect(token), await connect()];
      await victim.follow("a", `SELECT * FROM ${table}`);
      await other.follow("a", `SELECT * FROM ${table}`);
      const position = await victim.position("a");
      const params = [user];
      const ids = "SELECT connection_id FROM system.connections WHERE user_id = $1";
      const [row] = await server.rows(ids, { params });
      await server.rows(`KILL CONNECTION '${String(row?.[0])}'`);
      expect(await victim.closed()).toMatchObject({ code: 1008 });
      expect(await server.rows(ids, { params })).toEqual([]);
      expect(await server.rows("SELECT 1 FROM system.live WHERE user_id = $1", { params })).toEqual(
        [],
      );
      await server.rows(`INSERT INTO ${table} VALUES (1, 1)`);
      expect(await other.rest()).toMatchObject([{ type: "change" }]);
      const back = await connect(token);
      expect(await back.follow("a", `SELECT * FROM ${table}`, { from_seq_id: position })).toEqual([
        "row 1=1",
      ]);
      const again = await server.sql(`KILL CONNECTION '${String(row?.[0])}'`);
      expect(again.body.error).toMatchObject({ reason: "object_not_found" });
      const refused = await server.sql("KILL CONNECTION 'ws-1'", {
        token: await server.createUser(`${user}plain`),
      });
      expect(refused.body.error).toMatchObject({ code: "PERMISSION_DENIED" });
      back.close();
      other.close();
    });

    test.each<[string, (user: string, token: string) => Promise<unknown>]>([
      ["dropped", (user) => server.rows(`DROP USER ${user}`)],
      ["demoted", (user) => server.rows(`ALTER USER ${user} SET ROLE user`)],
      [
        "given another password",
        (user) => server.rows(`ALTER USER ${user} SET PASSWORD 'other horse 9'`),
      ],
      [
        "logged out",
        (_user, token) =>
          server.post("/v1/api/auth/logout", { all: true }, { Authorization: `Bearer ${token}` }),
      ],
    ])("a user who is %s is told TOKEN_REVOKED and closed with 1008", async (_what, revoke) => {
      const table = await newTable();
      const { user, token } = await newUser();
      const client = await connect(token);
      await client.follow("a", `SELECT * FROM ${table}`);
      await revoke(user, token);
      await server.rows(`INSERT INTO ${table} VALUES (1, 1)`);
      // The client no longer receives the later change.
      expect(await client.next()).toMatchObject({
        type: "error",
        code: "TOKEN_REVOKED",
        ended: true,
      });
      expect(await client.closed()).toMatchObject({ code: 1008 });
    });

    test("a subscription to a dropped table ends with NOT_FOUND, and to an altered one with SCHEMA_CHANGED", async () => {
      const [dropped, altered] = [await newTable(), await newTable("n INT, m INT")];
      const client = await connect();
      await client.follow("dropped", `SELECT * FROM ${dropped}`);
      await client.follow("star", `SELECT * FROM ${altered}`);
      await client.follow("named", `SELECT m FROM ${altered}`);
      await client.follow("other", `SELECT n FROM ${altered}`);
      await server.rows(`DROP TABLE ${dropped}`);
      await server.rows(`ALTER TABLE ${altered} DROP COLUMN m`);
      await server.rows(`INSERT INTO ${altered} VALUES (1, 1)`);
      const said = await client.rest();
      expect(
        said.map((it) => (it.type === "error" ? [it.code, it.subscription_id] : [it.type])),
      ).toEqual([
        ["NOT_FOUND", "dropped"],
        ["SCHEMA_CHANGED", "star"],
        ["SCHEMA_CHANGED", "named"],
        ["change"],
      ]);
      client.close();
    });

    test("a resume from a position that was never issued is refused with INVALID_RESUME", async () => {
      const table = await newTable();
      const client = await connect();
      await client.follow("a", `SELECT * FROM ${table}`);
      const position = await client.position("a");
      for (const from_seq_id of [position + 4096 * HOUR_MS, String(2 ** 53 - 1)]) {
        client.subscribe("b", `SELECT * FROM ${table}`, { from_seq_id });
        expect(await client.next()).toMatchObject({
          type: "error",
          subscription_id: "b",
          code: "INVALID_RESUME",
          ended: true,
        });
      }
      client.close();
    });

    test("last_rows returns any number of the newest rows, in as many batches as needed", async () => {
      const table = await newTable();
      const all = Array.from({ length: 2500 }, (_, id) => `(${id}, ${id % 7})`);
      await server.rows(`INSERT INTO ${table} VALUES ${all.join(", ")}`);
      const newest = Array.from({ length: 2500 }, (_, id) => `row ${id}=${id % 7}`);
      const client = await connect();
      for (const last_rows of [0, 1, 999, 1000, 1001, 2499, 2500, 2501, 1_000_000_000]) {
        const rows = await client.follow("a", `SELECT * FROM ${table}`, { last_rows });
        expect(rows).toEqual(last_rows === 0 ? [] : newest.slice(-last_rows));
      }
      const some = await client.follow("a", `SELECT * FROM ${table} WHERE n = 3`, {
        last_rows: 100,
        batch_size: 7,
      });
      expect(some).toEqual(newest.filter((word) => word.endsWith("=3")).slice(-100));
      client.close();
    });

    test("a replay contains every change or the net effect, as requested", async () => {
      const table = await newTable();
      const client = await connect();
      await server.rows(`INSERT INTO ${table} VALUES (1, 10), (2, 20), (3, 30)`);
      const sql = `SELECT id, n FROM ${table} WHERE n >= 10`;
      await client.follow("a", sql);
      const from_seq_id = await client.position("a");
      await server.rows(`UPDATE ${table} SET n = 11 WHERE id = 1`);
      await server.rows(`UPDATE ${table} SET n = 12 WHERE id = 1`);
      await server.rows(`UPDATE ${table} SET n = 1 WHERE id = 2`);
      await server.rows(`UPDATE ${table} SET n = 22 WHERE id = 2`);
      await server.rows(`DELETE FROM ${table} WHERE id = 3`);
      await server.rows(`INSERT INTO ${table} VALUES (4, 40), (5, 5)`);
      await server.rows(`UPDATE ${table} SET n = 4 WHERE id = 4`);
      await client.rest();
      expect(await client.follow("a", sql, { from_seq_id, replay: "all" })).toEqual([
        "row 1=11",
        "update 1=12",
        "delete 2=20",
        "insert 2=22",
        "delete 3=30",
        "row 4=40",
        "delete 4=40",
      ]);
      const net = await client.follow("a", sql, { from_seq_id, replay: "latest" });
      // Row 4 was inserted and deleted. The server may send its deletion even to a client that
      // never had the row.
      expect(net.filter((word) => !word.startsWith("delete 4"))).toEqual([
        "row 1=12",
        "row 2=22",
        "delete 3=30",
      ]);
      client.close();
    });

    test("a stopping server announces it and closes with 1001; a resume loses nothing", async () => {
      const table = await newTable();
      const client = await connect();
      const sql = `SELECT id, n FROM ${table}`;
      await server.rows(`INSERT INTO ${table} VALUES (1, 1)`);
      await client.follow("a", sql);
      const from_seq_id = await client.position("a");
      await server.rows(`INSERT INTO ${table} VALUES (2, 2); DELETE FROM ${table} WHERE id = 1`);
      const restarted = server.restart("SIGTERM");
      const said: string[] = [];
      for (let hasEnded = false; !hasEnded; ) {
        const message = await client.next();
        said.push(...wordsOf(message));
        if (message.type !== "error") continue;
        expect(message).toMatchObject({ code: "SHUTTING_DOWN", subscription_id: "a", ended: true });
        hasEnded = true;
      }
      expect(said).toEqual(["insert 2=2", "delete 1=1"]);
      expect(await client.closed()).toMatchObject({ code: 1001 });
      await restarted;
      await server.rows(`UPDATE ${table} SET n = 22 WHERE id = 2`);
      const again = await connect();
      expect(await again.follow("a", sql, { from_seq_id })).toEqual([
        "row 2=2",
        "delete 1=1",
        "update 2=22",
      ]);
      again.close();
    });
  },
);

testThoroughly("a position older than history is refused with RESUME_EXPIRED", async () => {
  const env: Record<string, string> = {};
  const preload = Bun.fileURLToPath(new URL("../support/shifted_clock.ts", import.meta.url));
  const command = bundleCommand(["--preload", preload]);
  await using old = await startReadyServer({ command, env });
  await old.rows(
    "CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, n INT) " +
      "WITH (TYPE = 'SHARED', DELETED_RETENTION_HOURS = 1)",
  );
  await old.rows("INSERT INTO app.t VALUES (1, 1), (2, 2)");
  const [first] = await old.rows("SELECT max(_seq) FROM app.t");
  await old.rows("DELETE FROM app.t WHERE id = 1");
  const [second] = await old.rows("SELECT max(_seq) FROM app.t WHERE _deleted = true");
  env["SHIFT_CLOCK_MS"] = String(3 * HOUR_MS);
  await old.rows("STORAGE FLUSH TABLE app.t");
  await old.restart();
  await old.rows("INSERT INTO app.t VALUES (3, 3); STORAGE FLUSH TABLE app.t");
  await old.rows("STORAGE COMPACT TABLE app.t");
  for (const serialization of ["json", "msgpack"]) {
    const query = `?serialization=${serialization}`;
    const socket = await SocketClient.connect(old.url, { token: old.token, query });
    await socket.expect("auth_success");
    const client = new Client(socket, serialization === "msgpack");
    const sql = "SELECT id, n FROM app.t";
    client.subscribe("a", sql, { from_seq_id: Number(first?.[0]) });
    expect(await client.expect("error")).toMatchObject({
      subscription_id: "a",
      code: "RESUME_EXPIRED",
      ended: true,
      earliest_seq: Number(second?.[0]),
    });
    // Resuming from the beginning of history delivers every change. Position 0 stands for a client
    // without rows.
    expect(await client.follow("a", sql, { from_seq_id: Number(second?.[0]) })).toEqual([
      "row 3=3",
    ]);
    expect(await client.follow("a", sql, { from_seq_id: 0 })).toEqual(["row 2=2", "row 3=3"]);
    client.close();
  }
});

test("/metrics shows how long deliveries take, and how many subscribers are behind", async () => {
  const table = await newTable();
  const before = await server.metric("tidemark_live_delivery_seconds_count");
  const sent = await server.metric("tidemark_live_changes_total");
  await server.rows(`INSERT INTO ${table} VALUES (1, 1)`);
  const socket = await SocketClient.connect(server.url, { token: server.token });
  await socket.expect("auth_success");
  const client = new Client(socket, false);
  await client.follow("a", `SELECT * FROM ${table}`);
  for (let id = 2; id < 7; id += 1) {
    await server.rows(`INSERT INTO ${table} VALUES (${id}, 1), (${id + 100}, 1)`);
  }
  await client.rest();
  expect(await server.metric("tidemark_live_delivery_seconds_count")).toBe(before + 5);
  expect(await server.metric("tidemark_live_changes_total")).toBe(sent + 10);
  expect(await server.metric('tidemark_live_delivery_seconds_bucket{le="+Inf"}')).toBe(before + 5);
  expect(await server.metric("tidemark_subscriptions_behind")).toBe(0);
  expect(await server.metric("tidemark_subscriptions_loading")).toBe(0);
  expect(await server.metric("tidemark_live_lag_seconds")).toBe(0);
  client.close();
});
