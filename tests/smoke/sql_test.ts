/** Tests requests and responses of `POST /v1/api/sql`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({ config: { limits: { max_result_rows: 5000 } } });
  await server.rows(
    "CREATE NAMESPACE chat; " +
      "CREATE TABLE chat.messages (id BIGINT PRIMARY KEY, room TEXT, text TEXT) " +
      "WITH (ACCESS_LEVEL = 'PUBLIC'); " +
      "INSERT INTO chat.messages VALUES (1, 'lobby', 'first')",
  );
});

afterAll(async () => {
  await server.stop();
});

describe("a response to SQL has the documented form", () => {
  test("a response has a notice if milliseconds are stored as a timestamp", async () => {
    await server.rows("CREATE TABLE chat.seen (id INT PRIMARY KEY, at TIMESTAMP)");
    const insert = "INSERT INTO chat.seen (id, at) VALUES (1, $1)";
    const { body } = await server.sql(insert, { params: [1_732_830_000_000] });
    expect(body.results).toEqual([
      {
        row_count: 1,
        message: "Inserted 1 row(s)",
        as_user: "ada",
        last_seq: expect.any(Number),
        notices: [
          "Column \"at\" contains 1970-01-21 01:20:30: a number in this column counts microseconds, but $1, which is 1732830000000, looks like milliseconds; multiply it by 1000, or send a string such as '2026-01-31T14:30:00Z'",
        ],
      },
    ]);
    expect(await server.rows("SELECT at::text FROM chat.seen")).toEqual([["1970-01-21 01:20:30"]]);
  });

  test("lists and objects among the parameters are read as the type that the statement requires", async () => {
    const sql = "SELECT id FROM chat.messages WHERE id = ANY($1)";
    expect(await server.rows(sql, { params: [[1, 2, 3]] })).toEqual([[1]]);
    expect(await server.rows(sql, { params: ["{1,2,3}"] })).toEqual([[1]]);
    expect(await server.rows(sql, { params: [[]] })).toEqual([]);
    const json = "SELECT $1::json, $2::jsonb, $3::text";
    const written =
      '{"sql":"JSON","params":[{ "n": 1.50 , "n":9007199254740993}, [1.0,{"a" : []}], {"b": 1}]}';
    const body = written.replace("JSON", json);
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${server.token}` },
      body,
    });
    expect(await answer.json()).toMatchObject({
      results: [
        { rows: [['{ "n": 1.50 , "n":9007199254740993}', '[1.0, {"a": []}]', '{"b": 1}']] },
      ],
    });
    const arrays =
      "SELECT $1::bigint[] = ARRAY[9007199254740993, NULL], $2::text[] = ARRAY['a\"b,{}', '1.5', 'true'], " +
      "$3::timestamp[] = ARRAY[TIMESTAMP '2026-01-31 14:30'], $4::bytea = '\\x00ff', $5::json[] @> ARRAY['{\"a\":1}']::json[], " +
      "$6::embedding(2) = '[1,0.5]'";
    const params = [
      ["9007199254740993", null],
      ['a"b,{}', 1.5, true],
      ["2026-01-31T14:30:00Z"],
      [0, 255],
      [{ a: 1 }],
      [1, 0.5],
    ];
    expect(await server.rows(arrays, { params })).toEqual([[true, true, true, true, true, true]]);
  });

  test.each([
    ["SELECT $1::int[]", [["a"]], 'Cannot read "a" as integer'],
    ["SELECT $1::int[]", [{ a: 1 }], "as integer[]: the parameter is an object"],
    ["SELECT 1 = $1", [[1]], 'Cannot read "[1]" as integer: the parameter is a list'],
    ["SELECT now() > $1", [[1]], "the parameter is a list"],
    ["SELECT $1::bytea", [[0, 256]], 'Cannot read "256" as a byte'],
    ["SELECT $1::int", [{}], 'Cannot read "{}" as integer: the parameter is an object'],
  ])("%s with %j says what it cannot read", async (sql, params, message) => {
    const refused = await server.sql(sql, { params });
    expect(refused.body.error?.code).toBe("SQL_EXECUTION_ERROR");
    expect(refused.body.error?.message).toContain(message);
  });

  test("a response to INSERT has exactly these fields", async () => {
    const { status, body } = await server.sql(
      "INSERT INTO chat.messages (id, room, text) VALUES ($1, $2, $3)",
      { params: [7, "lobby", "hello"] },
    );
    expect(status).toBe(200);
    expect(body).toEqual({
      results: [
        {
          row_count: 1,
          message: "Inserted 1 row(s)",
          as_user: "ada",
          last_seq: expect.any(Number),
        },
      ],
      status: "success",
      took: expect.any(Number),
    });
    expect(Number.isSafeInteger(body.results[0]?.last_seq)).toBe(true);
  });

  test("a response to SELECT has exactly these fields", async () => {
    const { body } = await server.sql("SELECT id, text FROM chat.messages WHERE id = 1");
    expect(body).toEqual({
      results: [
        {
          schema: [
            { name: "id", data_type: "BigInt", index: 0, flags: ["pk", "nn", "uq"] },
            { name: "text", data_type: "Text", index: 1 },
          ],
          rows: [[1, "first"]],
          row_count: 1,
          as_user: "ada",
        },
      ],
      status: "success",
      took: expect.any(Number),
    });
  });

  test("a response for an unknown table has exactly these fields", async () => {
    const token = await server.createUser("uli");
    const { status, body } = await server.sql("SELECT 1 FROM chat.mesages", { token });
    expect(status).toBe(400);
    expect(body as unknown).toEqual({
      results: [],
      status: "error",
      took: expect.any(Number),
      error: {
        code: "TABLE_NOT_FOUND",
        message: expect.stringMatching(/^Statement 1: .*chat\.mesages/),
        position: 14,
        hint: "did you mean chat.messages?",
        statement: 0,
      },
    });
  });

  test("a response has one entry for each statement, in order", async () => {
    const { body } = await server.sql(
      "SELECT 1; CREATE TABLE chat.tmp (id INT PRIMARY KEY, n INT); INSERT INTO chat.tmp VALUES (1, 1), (2, 2); " +
        "UPDATE chat.tmp SET n = 3 WHERE id = 9; DELETE FROM chat.tmp WHERE id = 1; DROP TABLE chat.tmp;",
    );
    expect(body.results.map(({ row_count: n, message, rows }) => [n, message ?? rows])).toEqual([
      [1, [[1]]],
      [0, expect.stringContaining("chat.tmp")],
      [2, "Inserted 2 row(s)"],
      [0, "Updated 0 row(s)"],
      [1, "Deleted 1 row(s)"],
      [0, expect.stringContaining("chat.tmp")],
    ]);
    expect(body.results[3]?.last_seq).toBeNull();
  });

  test("a response to a failure keeps the entries that remain in effect", async () => {
    const { status, body } = await server.sql(
      "INSERT INTO chat.messages VALUES (50, 'x', 'stays'); SELECT 1/0; INSERT INTO chat.messages VALUES (51, 'x', 'never')",
    );
    expect(status).toBe(400);
    expect(body.results).toMatchObject([{ message: "Inserted 1 row(s)" }]);
    expect(body.error).toMatchObject({
      code: "SQL_EXECUTION_ERROR",
      reason: "division_by_zero",
      statement: 1,
      message: expect.stringMatching(/^Statement 2: /),
    });
    expect(await server.rows("SELECT id FROM chat.messages WHERE room = 'x'")).toEqual([[50]]);
  });

  test("a response contains the request's id, or a generated one", async () => {
    const headers = { Authorization: `Bearer ${server.token}` };
    const named = await server.post(
      "/v1/api/sql",
      { sql: "SELECT 1" },
      {
        ...headers,
        "X-Request-ID": "my-id_1.2:3",
      },
    );
    expect(named.headers.get("X-Request-ID")).toBe("my-id_1.2:3");
    const unnamed = await server.post("/v1/api/sql", { sql: "SELECT 1" }, headers);
    expect(unnamed.headers.get("X-Request-ID")).toMatch(/^[\w.:-]{1,128}$/);
    expect(unnamed.headers.get("X-Content-Type-Options")).toBe("nosniff");
    expect(unnamed.headers.get("Cache-Control")).toBe("no-store");
  });

  test("a response is compressed if it is large and the caller accepts compression", async () => {
    const sql = `SELECT '${"x".repeat(5000)}'`;
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Authorization: `Bearer ${server.token}`,
        "Accept-Encoding": "gzip",
      },
      body: JSON.stringify({ sql }),
      decompress: false,
    });
    expect(answer.headers.get("Content-Encoding")).toBe("gzip");
    const body = Buffer.from(Bun.gunzipSync(await answer.arrayBuffer())).toString();
    expect(JSON.parse(body)).toMatchObject({ results: [{ rows: [["x".repeat(5000)]] }] });
  });

  test("a result with more rows than allowed is an error, never a truncated list", async () => {
    await server.rows("CREATE TABLE chat.many (id INT PRIMARY KEY)");
    for (let first = 0; first < 6000; first += 1000) {
      const values = Array.from({ length: 1000 }, (_, place) => `(${first + place})`).join(", ");
      await server.rows(`INSERT INTO chat.many VALUES ${values}`);
    }
    const { body } = await server.sql("SELECT id FROM chat.many");
    expect(body.error?.code).toBe("RESULT_TOO_LARGE");
    const five = await server.rows("SELECT id FROM chat.many WHERE id < 5000");
    expect(five).toHaveLength(5000);
  });
});

describe("a request has a default namespace", () => {
  test("a request has its own namespace, or default without one, and USE changes it", async () => {
    const sql = "SELECT COUNT(*) > 0 FROM messages";
    expect(await server.rows(sql, { namespace: "chat" })).toEqual([[true]]);
    expect((await server.sql(sql)).body.error?.code).toBe("TABLE_NOT_FOUND");
    expect(await server.rows(`USE chat; ${sql}`)).toEqual([[true]]);
    expect((await server.sql(sql)).body.error?.code).toBe("TABLE_NOT_FOUND");
  });
});

describe("a request in check mode has no effect", () => {
  test("check mode binds and authorises, but runs nothing", async () => {
    const fields = { check: true };
    const good = await server.sql("DELETE FROM chat.messages; SELECT id FROM chat.messages", {
      fields,
    });
    expect(good.body).toMatchObject({ status: "success" });
    expect(good.body.results[1]).toMatchObject({
      row_count: 0,
      message: "checked",
      schema: [{ name: "id" }],
    });
    expect((await server.rows("SELECT COUNT(*) > 0 FROM chat.messages"))[0]).toEqual([true]);
    const bad = await server.sql("SELECT nope FROM chat.messages", { fields });
    expect(bad.status).toBe(400);
  });
});

describe("a request with an idempotency key has an effect once", () => {
  const sql = "INSERT INTO chat.messages VALUES (100, 'once', 'x') RETURNING id";
  const fields = { idempotency_key: "key-1" };

  test("a request with an idempotency key runs once, and repeats its first response", async () => {
    const first = await server.sql(sql, { fields });
    const again = await server.sql(sql, { fields });
    expect(first.headers.get("Idempotency-Replayed")).toBeNull();
    expect(again.headers.get("Idempotency-Replayed")).toBe("true");
    expect(first.body.results?.[0]?.rows).toEqual([[100]]);
    expect(again.body.results).toEqual(first.body.results);
    expect(await server.rows("SELECT count(*) FROM chat.messages WHERE id = 100")).toEqual([[1]]);
    await server.sql("DELETE FROM chat.messages WHERE id = 100");
  });

  test("an idempotency key with a different body gets 409", async () => {
    const { body, status } = await server.sql("SELECT 1", { fields });
    expect([status, body.error?.code]).toEqual([409, "IDEMPOTENCY_CONFLICT"]);
  });
});

describe("a response can be streamed in several formats", () => {
  async function asked(sql: string, accept: string): Promise<Response> {
    return server.post(
      "/v1/api/sql",
      { sql },
      {
        Authorization: `Bearer ${server.token}`,
        Accept: accept,
      },
    );
  }

  test("newline-delimited JSON has a schema, rows and a last line", async () => {
    const answer = await asked("SELECT 1 AS a, NULL::TEXT AS b", "application/x-ndjson");
    expect(answer.headers.get("Content-Type")).toContain("application/x-ndjson");
    const lines = (await answer.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual([
      {
        schema: [
          { name: "a", data_type: "Int", index: 0 },
          { name: "b", data_type: "Text", index: 1 },
        ],
        as_user: "ada",
      },
      [1, null],
      { status: "success", row_count: 1, took: expect.any(Number) },
    ]);
  });

  test("CSV distinguishes NULL from an empty string", async () => {
    const answer = await asked("SELECT 1 AS a, NULL::TEXT AS b, '' AS c, 'x,\"y' AS d", "text/csv");
    expect(await answer.text()).toBe('a,b,c,d\r\n1,,"","x,""y"\r\n');
  });

  test("notices of statements are in a header of CSV and NDJSON", async () => {
    await server.rows(
      'CREATE NAMESPACE noted; CREATE SHARED TABLE noted.t (id INT PRIMARY KEY, "größe" TIMESTAMP)',
    );
    const insert = "INSERT INTO noted.t VALUES (1, 1795900848000); SELECT 1 AS a";
    for (const format of ["text/csv", "application/x-ndjson"]) {
      const answer = await asked(insert, format);
      const header = answer.headers.get("Tidemark-Notices") ?? "";
      expect(header).toMatch(/^[ -~]+$/);
      expect(JSON.parse(header)).toEqual([
        expect.stringContaining('Column "größe" contains 1970-01-21'),
      ]);
      expect(
        (await asked("DELETE FROM noted.t; SELECT 1", format)).headers.has("Tidemark-Notices"),
      ).toBe(false);
    }
  });

  test("several results cannot be streamed", async () => {
    const answer = await asked("SELECT 1; SELECT 2", "text/csv");
    expect(answer.status).toBe(406);
    expect(await answer.json()).toMatchObject({ error: { code: "NOT_ACCEPTABLE" } });
  });
});

describe("the cells in a response have the documented form", () => {
  test.each([
    ["TRUE", "Boolean", true],
    ["7::SMALLINT", "SmallInt", 7],
    ["7", "Int", 7],
    ["9007199254740991::BIGINT", "BigInt", 9007199254740991],
    ["9007199254740993::BIGINT", "BigInt", "9007199254740993"],
    ["-9223372036854775807 - 1", "BigInt", "-9223372036854775808"],
    ["0.1::FLOAT", "Float", 0.1],
    ["0.1::DOUBLE", "Double", 0.1],
    ["-0.05::DECIMAL(5,2)", { Decimal: { precision: 5, scale: 2 } }, "-0.05"],
    ["'é'", "Text", "é"],
    ["'{\"a\": 1}'::JSON", "Json", '{"a": 1}'],
    ["TIMESTAMP '2025-01-01 00:00:00'", "Timestamp", 1735689600000000],
    ["TIMESTAMPTZ '2025-01-01 02:00+02'", "DateTime", 1735689600000000],
    ["DATE '2025-01-01'", "Date", 20089],
    ["TIME '01:02:03.5'", "Time", 3723500000],
    [
      "'550E8400-E29B-41D4-A716-446655440000'::UUID",
      "Uuid",
      "550e8400-e29b-41d4-a716-446655440000",
    ],
    ["'\\x00ff'::BYTES", "Bytes", [0, 255]],
    ["'[1,0.5]'::EMBEDDING(2)", { Embedding: 2 }, [1, 0.5]],
    ["NULL::TEXT", "Text", null],
  ])("%s", async (sql, type, cell) => {
    const { body } = await server.sql(`SELECT ${sql} AS x`);
    expect(body.error).toBeUndefined();
    expect(body.results[0]?.schema?.[0]?.data_type).toEqual(type);
    expect(body.results[0]?.rows).toEqual([[cell]]);
  });
});

describe("the parameters in a request have the documented form", () => {
  test.each([
    ["$1::BIGINT", 9007199254740991, 9007199254740991],
    ["$1::BIGINT", "9223372036854775807", "9223372036854775807"],
    ["$1::DOUBLE", 1.5, 1.5],
    ["$1::BOOLEAN", true, true],
    ["$1::TEXT", "it's", "it's"],
    ["$1::TEXT", null, null],
    ["$1::DATE", "2025-01-01", 20089],
    ["$1 || 'x'", "a", "ax"],
    ["$1 + 1", 41, 42],
  ])("%s is sent with %p", async (sql, value, cell) => {
    expect(await server.rows(`SELECT ${sql}`, { params: [value] })).toEqual([[cell]]);
  });

  test("an integer beyond 2^53 in the body is read exactly from its digits", async () => {
    const answer = await fetch(`${server.url}/v1/api/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${server.token}` },
      body: '{"sql":"SELECT $1","params":[9007199254740993]}',
    });
    expect(await answer.json()).toMatchObject({ results: [{ rows: [["9007199254740993"]] }] });
  });

  test("parameters are numbered throughout a whole transaction", async () => {
    const { body } = await server.sql(
      "BEGIN; INSERT INTO chat.messages VALUES ($1, $2, 'a'); INSERT INTO chat.messages VALUES ($3, $2, 'b'); COMMIT",
      { params: [201, "pair", 202] },
    );
    expect(body.status).toBe("success");
    expect(body.results.map(({ last_seq }) => last_seq ?? null)).toEqual([
      null,
      null,
      null,
      expect.any(Number),
    ]);
    const rows = await server.rows("SELECT id FROM chat.messages WHERE room = 'pair'");
    expect(rows).toEqual([[201], [202]]);
  });
});

describe("concurrent writes to one table do not interfere", () => {
  test("concurrent writes each get their own ids, in the order of their commits", async () => {
    await server.rows("CREATE TABLE chat.burst (id INT PRIMARY KEY)");
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, id) =>
        server.sql("INSERT INTO chat.burst VALUES ($1)", { params: [id] }),
      ),
    );
    const seqs = answers.map(({ body }) => body.results[0]?.last_seq);
    expect(new Set(seqs).size).toBe(200);
    const rows = await server.rows("SELECT _seq FROM chat.burst");
    expect(rows.map(([seq]) => Number(seq))).toEqual(
      rows.map(([seq]) => Number(seq)).toSorted((a, b) => a - b),
    );
  });

  test("concurrent writes of one key succeed only once", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => server.sql("INSERT INTO chat.burst VALUES (9999)")),
    );
    const codes = answers.map(({ body }) => body.error?.reason ?? "done");
    expect(codes.filter((code) => code === "done")).toHaveLength(1);
    expect(codes.filter((code) => code === "duplicate_key")).toHaveLength(19);
  });
});
