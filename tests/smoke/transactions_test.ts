/**
 * Tests transactions over several HTTP requests: the calls, isolation in the test cases of the
 * Hermitage project (https://github.com/ept/hermitage), and the state after a crash or a logout.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { testThoroughly } from "../support/requirements.ts";
import { ADMIN, type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({ config: { limits: { transactions_per_user: 10 } } });
  await server.rows("CREATE NAMESPACE app; CREATE TABLE app.t (id INT PRIMARY KEY, v INT)");
});
afterAll(() => server.stop());

beforeEach(async () => {
  await server.rows("DELETE FROM app.t; INSERT INTO app.t VALUES (1, 10), (2, 20)");
});

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function call(
  path: string,
  { body, method = "POST", token = server.token }: CallOptions = {},
): Promise<Answer> {
  const response = await fetch(`${server.url}/v1/api/transactions${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

interface CallOptions {
  readonly body?: object;
  readonly method?: string;
  readonly token?: string;
}

/** A transaction that a test controls by calls to the server. */
class Tx {
  readonly id: string;
  readonly #token: string;

  private constructor(id: string, token: string) {
    this.id = id;
    this.#token = token;
  }

  static async open(body: object = {}, token: string = server.token): Promise<Tx> {
    const answer = await call("", { body: { namespace_id: "app", ...body }, token });
    expect(answer.status).toBe(200);
    return new Tx(String(answer.body["transaction_id"]), token);
  }

  /** Returns the rows of the last statement, or the reason or code with which it failed. */
  async sql(sql: string): Promise<unknown> {
    const response = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${this.#token}`,
        "Content-Type": "application/json",
        "Tidemark-Transaction": this.id,
      },
      body: JSON.stringify({ sql }),
    });
    const { error, results } = (await response.json()) as {
      error?: { code: string; reason?: string };
      results: { rows?: unknown[][]; row_count: number }[];
    };
    if (error !== undefined) return error.reason ?? error.code;
    return results.at(-1)?.rows ?? results.at(-1)?.row_count;
  }

  /** Returns "committed", or the reason or code with which the commit failed. */
  commit(): Promise<unknown> {
    return this.#end("commit");
  }

  rollback(): Promise<unknown> {
    return this.#end("rollback");
  }

  async #end(how: string): Promise<unknown> {
    const { body } = await call(`/${this.id}/${how}`, { token: this.#token });
    const error = body["error"] as { code: string; reason?: string } | undefined;
    return error === undefined ? body["state"] : (error.reason ?? error.code);
  }
}

const ALL = "SELECT id, v FROM t ORDER BY id";
const stored = (): Promise<unknown> => server.rows("SELECT id, v FROM app.t ORDER BY id");

describe("a transaction can span HTTP requests", () => {
  test("a transaction over HTTP is opened, described and committed", async () => {
    const { body, status } = await call("", { body: { namespace_id: "app", timeout_ms: 5000 } });
    expect([status, body]).toEqual([
      200,
      {
        transaction_id: expect.stringMatching(/^tx_[0-9a-f]{24}$/),
        state: "open",
        expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
        idle_timeout_ms: 60_000,
      },
    ]);
    const id = String(body["transaction_id"]);
    expect((await call(`/${id}`, { method: "GET" })).body).toMatchObject({ state: "open" });
    const committed = await call(`/${id}/commit`, { body: {} });
    expect(committed.body).toEqual({
      transaction_id: id,
      state: "committed",
      last_seq: null,
      reason: "committed",
    });
    expect((await call(`/${id}`, { method: "GET" })).body).toEqual(committed.body);
    expect((await call(`/${id}/rollback`)).status).toBe(404);
  });

  test.each<[object, string]>([
    [{ isolation: "serializable" }, "not_implemented"],
    [{ isolation: "dirty" }, "INVALID_INPUT"],
    [{ read_only: 1 }, "INVALID_INPUT"],
    [{ timeout_ms: 0 }, "INVALID_INPUT"],
    [{ timeout: 5 }, "INVALID_INPUT"],
  ])("is not opened by %j", async (body, code) => {
    const answer = await call("", { body });
    const error = answer.body["error"] as { code: string; reason?: string };
    expect([answer.status, error.reason ?? error.code]).toEqual([400, code]);
  });

  test("a transaction requires a token and an existing path", async () => {
    expect((await call("", { token: "none" })).status).toBe(401);
    expect((await call("/tx_1/commit", { token: "none" })).status).toBe(401);
    expect((await call("/tx_1", { method: "GET", token: "none" })).status).toBe(401);
    expect((await call("/tx_1", { method: "GET" })).status).toBe(404);
    expect((await call("/tx_1/other", { method: "GET" })).status).toBe(404);
    expect((await call("/tx_1/commit", { method: "GET" })).status).toBe(405);
  });

  test("a transaction ends with the session that opened it", async () => {
    const { access_token: token } = await server.login(ADMIN);
    const tx = await Tx.open({}, token);
    expect(await tx.sql("DELETE FROM t")).toBe(2);
    expect(await (await Tx.open()).sql(ALL)).toHaveLength(2);
    await fetch(`${server.url}/v1/api/auth/logout`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(
      await server.rows("SELECT count(*) FROM system.transactions WHERE transaction_id = $1", {
        params: [tx.id],
      }),
    ).toEqual([[0]]);
    expect(await stored()).toHaveLength(2);
  });

  test("a transaction streams a long response, and waits for its end", async () => {
    const tx = await Tx.open();
    const sql = "SELECT g, repeat('x', 100) FROM generate_series(1, 30000) g";
    const [rows, after] = await Promise.all([tx.sql(sql), tx.sql("DELETE FROM t WHERE id = 1")]);
    expect([(rows as unknown[]).length, after]).toEqual([30_000, 1]);
    expect(await tx.commit()).toBe("committed");
  });

  test("a transaction leaves nothing after a crash", async () => {
    const tx = await Tx.open();
    await tx.sql("DELETE FROM t; INSERT INTO t VALUES (3, 30)");
    await tx.sql("CREATE TABLE lost (id INT PRIMARY KEY); ALTER TABLE t ADD COLUMN w INT");
    expect(await tx.sql("SELECT id, w FROM t")).toEqual([[3, null]]);
    server.kill("SIGKILL");
    await server.exited();
    await server.start();
    expect(await tx.commit()).toBe("TRANSACTION_NOT_FOUND");
    expect(await stored()).toEqual([
      [1, 10],
      [2, 20],
    ]);
    const listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app'";
    expect(await server.rows(listed)).toEqual([["t"]]);
  });
});

testThoroughly(
  "a unique key that a transaction has committed survives a crash before its index is built",
  async () => {
    await server.rows(
      "CREATE TABLE app.big (id INT PRIMARY KEY, v INT); INSERT INTO app.big SELECT g, g FROM generate_series(1, 100000) g",
    );
    const states = "SELECT state FROM system.indexes WHERE index_name = 'big_v'";
    const committing = server
      .sql("BEGIN; ALTER TABLE app.big ADD CONSTRAINT big_v UNIQUE (v); COMMIT")
      .catch(() => undefined);
    await until(async () => (await server.rows(states)).length > 0);
    server.kill("SIGKILL");
    await server.exited();
    await committing;
    await server.start();
    const { body } = await server.sql("INSERT INTO app.big VALUES (100001, 5)");
    expect(body.error?.reason).toBe("duplicate_key");
    expect(await server.rows(states)).toEqual([["ready"]]);
  },
);

describe("a transaction prevents these anomalies of the Hermitage tests", () => {
  let one: Tx;
  let two: Tx;

  beforeEach(async () => {
    one = await Tx.open();
    two = await Tx.open();
  });

  test("a transaction prevents G0, dirty writes", async () => {
    await one.sql("UPDATE t SET v = 11 WHERE id = 1");
    await two.sql("UPDATE t SET v = 12 WHERE id = 1");
    await one.sql("UPDATE t SET v = 21 WHERE id = 2");
    expect(await one.commit()).toBe("committed");
    await two.sql("UPDATE t SET v = 22 WHERE id = 2");
    expect(await two.commit()).toBe("conflict");
    expect(await stored()).toEqual([
      [1, 11],
      [2, 21],
    ]);
  });

  test("a transaction prevents G1a, aborted reads", async () => {
    await one.sql("UPDATE t SET v = 101 WHERE id = 1");
    expect(await two.sql(ALL)).toEqual([
      [1, 10],
      [2, 20],
    ]);
    await one.rollback();
    expect(await two.sql(ALL)).toEqual([
      [1, 10],
      [2, 20],
    ]);
    expect(await two.commit()).toBe("committed");
  });

  test("a transaction prevents G1b, intermediate reads", async () => {
    await one.sql("UPDATE t SET v = 101 WHERE id = 1");
    expect(await two.sql(ALL)).toEqual([
      [1, 10],
      [2, 20],
    ]);
    await one.sql("UPDATE t SET v = 11 WHERE id = 1");
    await one.commit();
    expect(await two.sql(ALL)).toEqual([
      [1, 10],
      [2, 20],
    ]);
    await two.commit();
  });

  test("a transaction prevents G1c, circular information flow", async () => {
    await one.sql("UPDATE t SET v = 11 WHERE id = 1");
    await two.sql("UPDATE t SET v = 22 WHERE id = 2");
    expect(await one.sql("SELECT v FROM t WHERE id = 2")).toEqual([[20]]);
    expect(await two.sql("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    expect([await one.commit(), await two.commit()]).toEqual(["committed", "committed"]);
  });

  test("a transaction prevents OTV, in which an observed transaction vanishes", async () => {
    await one.sql("UPDATE t SET v = 11 WHERE id = 1; UPDATE t SET v = 19 WHERE id = 2");
    await two.sql("UPDATE t SET v = 12 WHERE id = 1");
    await one.commit();
    const three = await Tx.open();
    expect(await three.sql("SELECT v FROM t WHERE id = 1")).toEqual([[11]]);
    await two.sql("UPDATE t SET v = 18 WHERE id = 2");
    expect(await three.sql("SELECT v FROM t WHERE id = 2")).toEqual([[19]]);
    expect(await two.commit()).toBe("conflict");
    expect(await three.sql(ALL)).toEqual([
      [1, 11],
      [2, 19],
    ]);
    await three.commit();
  });

  test("a transaction prevents PMP, predicate-many-preceders of reads", async () => {
    expect(await one.sql("SELECT id FROM t WHERE v = 30")).toEqual([]);
    await two.sql("INSERT INTO t VALUES (3, 30)");
    await two.commit();
    expect(await one.sql("SELECT id FROM t WHERE v % 3 = 0")).toEqual([]);
    await one.commit();
  });

  test("a transaction prevents PMP, predicate-many-preceders of writes", async () => {
    await one.sql("UPDATE t SET v = v + 10");
    await two.sql("DELETE FROM t WHERE v = 20");
    expect(await one.commit()).toBe("committed");
    expect(await two.commit()).toBe("conflict");
    expect(await stored()).toEqual([
      [1, 20],
      [2, 30],
    ]);
  });

  test("a transaction prevents P4, lost updates", async () => {
    expect(await one.sql("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    expect(await two.sql("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    await one.sql("UPDATE t SET v = 11 WHERE id = 1");
    await two.sql("UPDATE t SET v = 11 WHERE id = 1");
    expect([await one.commit(), await two.commit()]).toEqual(["committed", "conflict"]);
  });

  test("a transaction prevents G-single, read skew", async () => {
    expect(await one.sql("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    await two.sql("UPDATE t SET v = 12 WHERE id = 1; UPDATE t SET v = 18 WHERE id = 2");
    await two.commit();
    expect(await one.sql("SELECT v FROM t WHERE id = 2")).toEqual([[20]]);
    await one.commit();
  });

  test("a transaction prevents G-single, read skew by a condition", async () => {
    expect(await one.sql("SELECT id FROM t WHERE v % 5 = 0 ORDER BY id")).toEqual([[1], [2]]);
    await two.sql("UPDATE t SET v = 12 WHERE v = 10");
    await two.commit();
    expect(await one.sql("SELECT id FROM t WHERE v % 3 = 0")).toEqual([]);
    await one.commit();
  });

  test("a transaction prevents G-single, read skew of a write by a condition", async () => {
    expect(await one.sql("SELECT v FROM t WHERE id = 1")).toEqual([[10]]);
    await two.sql("UPDATE t SET v = 12 WHERE id = 1; UPDATE t SET v = 18 WHERE id = 2");
    await two.commit();
    await one.sql("DELETE FROM t WHERE v = 20");
    expect(await one.commit()).toBe("conflict");
    expect(await stored()).toEqual([
      [1, 12],
      [2, 18],
    ]);
  });
});

test("G2-item, write skew, is prevented by reading FOR UPDATE", async () => {
  const [one, two] = [await Tx.open(), await Tx.open()];
  expect(await one.sql(`${ALL} FOR UPDATE`)).toHaveLength(2);
  expect(await two.sql(`${ALL} FOR UPDATE`)).toBe("conflict");
  await one.sql("UPDATE t SET v = 11 WHERE id = 1");
  expect([await one.commit(), await two.commit()]).toEqual(["committed", "transaction_failed"]);
});

describe("a transaction allows these anomalies of the Hermitage tests", () => {
  test("a transaction allows G2-item, write skew", async () => {
    const [one, two] = [await Tx.open(), await Tx.open()];
    expect(await one.sql(ALL)).toHaveLength(2);
    expect(await two.sql(ALL)).toHaveLength(2);
    await one.sql("UPDATE t SET v = 11 WHERE id = 1");
    await two.sql("UPDATE t SET v = 21 WHERE id = 2");
    expect([await one.commit(), await two.commit()]).toEqual(["committed", "committed"]);
    expect(await stored()).toEqual([
      [1, 11],
      [2, 21],
    ]);
  });

  test("a transaction allows G2, anti-dependency cycles of conditions", async () => {
    const [one, two] = [await Tx.open(), await Tx.open()];
    expect(await one.sql("SELECT id FROM t WHERE v % 3 = 0")).toEqual([]);
    expect(await two.sql("SELECT id FROM t WHERE v % 3 = 0")).toEqual([]);
    await one.sql("INSERT INTO t VALUES (3, 30)");
    await two.sql("INSERT INTO t VALUES (4, 42)");
    expect([await one.commit(), await two.commit()]).toEqual(["committed", "committed"]);
    expect(await server.rows("SELECT id FROM app.t WHERE v % 3 = 0 ORDER BY id")).toEqual([
      [3],
      [4],
    ]);
  });
});

test("a subscriber sees nothing of the definitions and rows of a transaction before its COMMIT", async () => {
  const socket = await SocketClient.connect(server.url, { token: server.token });
  await socket.expect("auth_success");
  const sql = "SELECT id, v FROM app.t WHERE id > 2";
  socket.send({ type: "subscribe", subscription: { id: "a", sql, options: {} } });
  await socket.expect("subscription_ack");
  await socket.expect("initial_data_batch");
  const tx = await Tx.open();
  await tx.sql("ALTER TABLE t ADD COLUMN w INT DEFAULT 1; CREATE TABLE u (id INT PRIMARY KEY)");
  await tx.sql("INSERT INTO t VALUES (3, 30, 3); INSERT INTO u VALUES (1)");
  expect(await tx.sql("SELECT count(*) FROM t, u")).toEqual([[3]]);
  // The commit of the other client reaches the server before this one.
  await server.rows("INSERT INTO app.t VALUES (4, 40)");
  const first = await socket.expect("change");
  expect(first.rows).toMatchObject([{ id: 4, v: 40 }]);
  expect(await tx.commit()).toBe("committed");
  const second = await socket.expect("change");
  expect(second.rows).toMatchObject([{ id: 3, v: 30 }]);
  socket.close();
  expect(await server.rows("SELECT id, w FROM app.t WHERE id > 2 ORDER BY id")).toEqual([
    [3, 3],
    [4, 1],
  ]);
  await server.rows("ALTER TABLE app.t DROP COLUMN w; DROP TABLE app.u");
});
