/**
 * Tests COPY over HTTP. The data flow in either direction at the speed of the slower side, and
 * requests that end early leave nothing behind.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createClient } from "../../src/client/mod.ts";
import { type ServerProcess, type SqlBody, startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.sql(`CREATE NAMESPACE x; CREATE TABLE x.t (id INT PRIMARY KEY, t TEXT);
    CREATE USER TABLE x.mine (id INT PRIMARY KEY, t TEXT)`);
});

afterAll(async () => {
  await server.stop();
});

interface CopyOptions {
  readonly body?: string | ArrayBuffer | ReadableStream<Uint8Array>;
  readonly signal?: AbortSignal;
  readonly token?: string;
}

function copy(sql: string, { token = server.token, ...init }: CopyOptions = {}): Promise<Response> {
  return fetch(`${server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    ...init,
  });
}

async function bodyOf(response: Response): Promise<SqlBody> {
  return (await response.json()) as SqlBody;
}

/**
 * Returns the running COPY statements: their ids, and how many rows and bytes they have processed.
 */
function running(): Promise<readonly (readonly unknown[])[]> {
  return server.rows(
    "SELECT query_id, rows_read, bytes_received FROM system.queries WHERE sql LIKE 'COPY%'",
  );
}

/**
 * Returns a request body that sends some rows, and then nothing until the test closes it or makes
 * it fail.
 */
function heldBody(rows: string): {
  readonly body: ReadableStream<Uint8Array>;
  readonly send: (more: string) => void;
  readonly close: () => void;
} {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      given.enqueue(Buffer.from(rows));
    },
  });
  return {
    body,
    send: (more) => controller?.enqueue(Buffer.from(more)),
    close: () => controller?.close(),
  };
}

test("rows go in by one commit, and out again as they were", async () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => `${i},row ${i}\n`).join("");
  const answer = await copy("COPY x.t FROM STDIN (FORMAT csv)", { body: rows });
  expect(answer.status).toBe(200);
  expect((await bodyOf(answer)).results[0]?.row_count).toBe(20_000);
  const out = await copy("COPY (SELECT * FROM x.t ORDER BY id) TO STDOUT (FORMAT csv)");
  expect(out.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const lines = (await out.text()).split("\n");
  expect(lines[19_999]).toStartWith("19999,row 19999,");
  const table = await copy("COPY x.t TO STDOUT (FORMAT csv)");
  expect((await table.text()).split("\n").toSorted()).toEqual(rows.split("\n").toSorted());
  await server.sql("DELETE FROM x.t WHERE true");
});

test("a refused row has the status and shape of a failed statement", async () => {
  const answer = await copy("COPY x.t FROM STDIN (FORMAT csv)", { body: "1,a\nb,c\n" });
  expect(answer.status).toBe(400);
  const { error, status } = await bodyOf(answer);
  expect(status).toBe("error");
  expect(error?.code).toBe("SQL_EXECUTION_ERROR");
  expect(error?.message).toContain('(line 2, column "id")');
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
});

test("a long body gets its refusal, although the rest of it has not been sent", async () => {
  const body = `x,1\n${"1,2\n".repeat(500_000)}`;
  const answer = await copy("COPY x.t FROM STDIN (FORMAT csv)", { body });
  expect(answer.status).toBe(400);
  expect((await bodyOf(answer)).error?.message).toContain("(line 1");
});

test("progress is shown, and nothing is stored before the end", async () => {
  const { body, close, send } = heldBody("1,a\n2,b\n");
  const answer = copy("COPY x.t FROM STDIN (FORMAT csv)", { body });
  await until(async () => (await running())[0]?.[1] === 2);
  expect((await running())[0]?.[2]).toBe(8);
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
  send("3,c\n");
  await until(async () => (await running())[0]?.[1] === 3);
  close();
  expect((await bodyOf(await answer)).results[0]?.row_count).toBe(3);
  await server.sql("DELETE FROM x.t WHERE true");
});

test("KILL ends a copy that waits for its data", async () => {
  const { body } = heldBody("1,a\n");
  const answer = copy("COPY x.t FROM STDIN (FORMAT csv)", { body });
  await until(async () => (await running())[0]?.[1] === 1);
  const [[id] = []] = await running();
  await server.sql(`KILL QUERY '${String(id)}'`);
  const { error } = await bodyOf(await answer);
  expect(error?.reason).toBe("cancelled");
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
});

test("a client that leaves stores nothing", async () => {
  const { body } = heldBody("1,a\n");
  const controller = new AbortController();
  const answer = copy("COPY x.t FROM STDIN (FORMAT csv)", { body, signal: controller.signal });
  await until(async () => (await running())[0]?.[1] === 1);
  controller.abort();
  await answer.catch(() => undefined);
  await until(async () => (await running()).length === 0);
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
});

test("a response waits for its reader, and ends with it", async () => {
  const sql = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 10000000)) TO STDOUT";
  const answer = await copy(sql);
  const reader = answer.body?.getReader();
  await reader?.read();
  expect((await running()).length).toBe(1);
  await reader?.cancel();
  await until(async () => (await running()).length === 0);
});

test("a late failure breaks the response off", async () => {
  const rows = "SELECT 1 / (45000 - n), repeat('x', 100) FROM generate_series(1, 60000) g(n)";
  const sql = `COPY (${rows}) TO STDOUT`;
  const answer = await copy(sql);
  expect(answer.status).toBe(200);
  expect(answer.text()).rejects.toThrow();
});

test("rows of a USER table are the caller's, or those of the user in EXECUTE AS", async () => {
  await server.sql("CREATE USER 'bob' WITH PASSWORD 'correct horse 77' ROLE 'user'");
  const as = "EXECUTE AS USER 'bob' (COPY x.mine FROM STDIN (FORMAT csv))";
  const into = await bodyOf(await copy(as, { body: "1,of bob\n" }));
  expect(into.results[0]?.as_user).toBe("bob");
  await copy("COPY x.mine FROM STDIN (FORMAT csv)", { body: "1,mine\n2,mine\n" });
  expect(await (await copy("COPY x.mine TO STDOUT")).text()).toBe("1\tmine\n2\tmine\n");
  expect(await (await copy("EXECUTE AS USER 'bob' (COPY x.mine TO STDOUT)")).text()).toBe(
    "1\tof bob\n",
  );
  const login = await server.post("/v1/api/auth/login", {
    user: "bob",
    password: "correct horse 77",
  });
  const { access_token: token } = (await login.json()) as { access_token: string };
  expect(await (await copy("COPY x.mine TO STDOUT", { token })).text()).toBe("1\tof bob\n");
  const denied = await copy("COPY x.t FROM STDIN", { token, body: "1\ta\n" });
  expect((await bodyOf(denied)).error?.code).toBe("TABLE_NOT_FOUND");
});

test("a copy takes part in the open transaction that its header names", async () => {
  const headers = { Authorization: `Bearer ${server.token}` };
  const opened = await server.post("/v1/api/transactions", {}, headers);
  const { transaction_id: id } = (await opened.json()) as { transaction_id: string };
  const within = (sql: string, body: string): Promise<Response> =>
    fetch(`${server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`, {
      method: "POST",
      headers: { ...headers, "Tidemark-Transaction": id },
      body,
    });
  const into = await within("COPY x.t FROM STDIN (FORMAT csv)", "1,a\n2,b\n");
  expect((await bodyOf(into)).results[0]?.row_count).toBe(2);
  expect(await (await within("COPY x.t TO STDOUT", "")).text()).toBe("1\ta\n2\tb\n");
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
  await server.post(`/v1/api/transactions/${id}/rollback`, {}, headers);
  expect(await server.rows("SELECT COUNT(*) FROM x.t")).toEqual([[0]]);
});

test("the endpoint takes one COPY, and says what it is given instead", async () => {
  for (const [sql, message] of [
    ["SELECT 1", "it must be a single COPY"],
    ["COPY x.t TO STDOUT; COPY x.t TO STDOUT", "it must be a single COPY"],
    ["COPY x.t FROM '/tmp/t.csv'", "COPY FROM a file on the server"],
    ["COPY x.unknown TO STDOUT", "x.unknown"],
  ] as const) {
    const { error } = await bodyOf(await copy(sql));
    expect(error?.message).toContain(message);
  }
  const headers = { Authorization: `Bearer ${server.token}` };
  const misspelt = await server.post("/v1/api/copy?query=COPY", "", headers);
  expect(((await misspelt.json()) as SqlBody).error?.message).toContain('did you mean "sql"');
});

describe("the client sends and receives the data of COPY", () => {
  function client(): ReturnType<typeof createClient> {
    return createClient({ url: server.url, auth: () => server.token });
  }

  test.each([
    ["text", "1,a\n2,b\n"],
    ["bytes", Buffer.from("1,a\n2,b\n")],
    ["a Blob", new Blob(["1,a\n", "2,b\n"])],
    ["a stream", new Blob(["1,a\n2,b\n"]).stream()],
  ] as const)("copies %s in, and a stream out", async (_, data) => {
    const db = client();
    const { notices, rowCount } = await db.copyFrom("COPY x.t FROM STDIN (FORMAT csv)", data);
    expect({ notices, rowCount }).toEqual({ notices: [], rowCount: 2 });
    const reader = (await db.copyTo("COPY t TO STDOUT", { namespace: "x" })).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      text += new TextDecoder().decode(value);
    }
    expect(text).toBe("1\ta\n2\tb\n");
    await server.sql("DELETE FROM x.t WHERE true");
  });

  test("copyFrom reports a faulty row, and data of the wrong type", async () => {
    const db = client();
    const copying = db.copyFrom("COPY x.t FROM STDIN (FORMAT csv)", "q,1\n");
    expect(copying).rejects.toThrow('(line 1, column "id")');
    // @ts-expect-error A caller without types may pass anything.
    expect(db.copyFrom("COPY x.t FROM STDIN", 7)).rejects.toThrow(
      "the data is 7, but must be a string",
    );
  });
});

describe("COPY writes to a table whose policies contain queries", () => {
  let writer: string;

  beforeAll(async () => {
    writer = await server.createUser("writer");
    await server.rows(
      `CREATE TABLE x.rooms (room INT PRIMARY KEY, user_id TEXT);
       INSERT INTO x.rooms SELECT n, 'writer' FROM generate_series(1, 20000) AS s (n);
       CREATE TABLE x.ruled (id INT PRIMARY KEY, room INT, t TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');
       CREATE POLICY quick ON x.ruled TO user USING (EXISTS (SELECT 1 FROM x.rooms r WHERE r.room = room AND r.user_id = CURRENT_USER()));
       CREATE TABLE x.tree (id INT PRIMARY KEY, room INT, t TEXT, parent INT REFERENCES x.tree) WITH (ACCESS_LEVEL = 'RESTRICTED');
       CREATE POLICY members ON x.tree TO user USING (EXISTS (SELECT 1 FROM x.rooms r WHERE r.room = room AND r.user_id = CURRENT_USER()));
       CREATE TABLE x.slowly (id INT PRIMARY KEY, room INT, t TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');
       CREATE POLICY slow ON x.slowly TO user USING ((SELECT count(*) FROM x.rooms r WHERE r.room % 7 <> room % 11 + 20) > 0)`,
    );
  });

  test.each(shareOf(["x.ruled", "x.tree", "x.slowly"], { oneOf: 2 }))(
    "all pieces are written to a table with policies: %s",
    async (table) => {
      for (const round of [1, 2, 3]) {
        const first = round * 10_000;
        const pieces = [0, 100, 200].map((from) =>
          Array.from({ length: 100 }, (_, i) => `${first + from + i},${i + 1},text\n`).join(""),
        );
        const { body, close, send } = heldBody(pieces[0] ?? "");
        const answer = copy(`COPY ${table} (id, room, t) FROM STDIN (FORMAT csv)`, {
          token: writer,
          body,
        });
        await until(async () => Number((await running())[0]?.[2] ?? 0) > 0);
        for (const piece of pieces.slice(1)) send(piece);
        close();
        const { error, results } = await bodyOf(await answer);
        expect(error).toBeUndefined();
        expect(results[0]?.row_count).toBe(300);
        const written = `SELECT count(*), min(id), max(id) FROM ${table} WHERE id >= ${first}`;
        expect(await server.rows(written)).toEqual([[300, first, first + 299]]);
      }
    },
  );

  test("data within a transaction are written to a table with policies, and a conflict repeats nothing", async () => {
    const data = "COPY x.tree (id, room, t) FROM STDIN;\n1\t1\ta\n2\t2\tb\n\\.\n";
    await server.rows(`BEGIN; ${data}COMMIT`, { token: writer });
    const written = "SELECT id FROM x.tree WHERE id < 1000 ORDER BY id";
    expect(await server.rows(written)).toEqual([[1], [2]]);
    // Another statement deletes the parent of a row before the body has ended.
    const { body, close, send } = heldBody("3,1,c,2\n");
    const answer = copy("COPY x.tree FROM STDIN (FORMAT csv)", { token: writer, body });
    await until(async () => Number((await running())[0]?.[2] ?? 0) > 0);
    await server.rows("DELETE FROM x.tree WHERE id = 2");
    send("4,1,d,1\n");
    close();
    expect((await bodyOf(await answer)).error).toBeDefined();
    expect(await server.rows(written)).toEqual([[1]]);
  });

  test("a row that the policies refuse ends the copy, whichever piece contains it", async () => {
    const { body, close, send } = heldBody("900001,1,a\n");
    const answer = copy("COPY x.ruled FROM STDIN (FORMAT csv)", { token: writer, body });
    await until(async () => Number((await running())[0]?.[2] ?? 0) > 0);
    send("900002,999999,hidden room\n");
    close();
    expect((await bodyOf(await answer)).error?.code).toBe("PERMISSION_DENIED");
    expect(await server.rows("SELECT id FROM x.ruled WHERE id > 900000")).toEqual([]);
  });
});

test("numbers of any scale go through the binary form of PostgreSQL unchanged", async () => {
  await server.rows(
    `CREATE TABLE x.numbers (id INT PRIMARY KEY, v NUMERIC);
     CREATE TABLE x.read (id INT PRIMARY KEY, v NUMERIC);
     INSERT INTO x.numbers VALUES (1, 1.10), (2, 0.000), (3, 1e500), (4, 'NaN'), (5, 0.00001)`,
  );
  const out = await copy("COPY x.numbers TO STDOUT (FORMAT binary)");
  await copy("COPY x.read FROM STDIN (FORMAT binary)", { body: await out.arrayBuffer() });
  const numbers = (table: string): Promise<readonly (readonly unknown[])[]> =>
    server.rows(`SELECT id, v::text FROM ${table} ORDER BY id`);
  expect(await numbers("x.read")).toEqual(await numbers("x.numbers"));
  expect((await numbers("x.read"))[0]).toEqual([1, "1.10"]);
});
