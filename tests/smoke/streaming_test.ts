/**
 * Tests responses that the server streams while it produces their rows. They consist of the same
 * bytes as a complete response. The tests also cover failures after the first bytes, and clients
 * that read slowly or disconnect.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ServerProcess, type SqlBody, startReadyServer } from "../support/server_process.ts";
import { amountOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

/** The number of rows, far more than a tick of the event loop produces. */
const ROW_COUNT = amountOf({ usual: 30_000, thorough: 200_000 });
const LONG = `SELECT n, 'row ' || n AS name FROM generate_series(1, ${ROW_COUNT}) g(n)`;
/** A query that divides by zero after most of its rows. */
const FAILING_ROW = 0.75 * ROW_COUNT;
const FAILING = `SELECT n, 10 / (${FAILING_ROW} - n) AS q FROM generate_series(1, ${ROW_COUNT}) g(n)`;
/** A query with a result larger than all buffers between client and server. */
const ENDLESS = "SELECT n, repeat('x', 100) AS t FROM generate_series(1, 100000000) g(n)";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
});

afterAll(async () => {
  await server.stop();
});

function post(
  sql: string,
  init: { accept?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  const { accept = "application/json", signal } = init;
  return fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      Authorization: `Bearer ${server.token}`,
      Accept: accept,
    },
    body: JSON.stringify({ sql }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** Returns the ids of the running queries, except the one that asks for them. */
async function runningQueries(): Promise<readonly unknown[]> {
  const rows = await server.rows(
    "SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.queries%'",
  );
  return rows.map(([queryId]) => queryId);
}

async function untilNoneRuns(): Promise<void> {
  await until(async () => (await runningQueries()).length === 0);
}

describe("a long response is sent in parts", () => {
  test("a long response has the shape of a short one", async () => {
    const { status, body } = await server.sql(LONG);
    expect(status).toBe(200);
    expect(Object.keys(body)).toEqual(["results", "status", "took"]);
    expect(body.status).toBe("success");
    const [entry] = body.results;
    expect(Object.keys(entry ?? {})).toEqual(["schema", "rows", "row_count", "as_user"]);
    expect(entry?.schema).toEqual([
      { name: "n", data_type: "Int", index: 0 },
      { name: "name", data_type: "Text", index: 1 },
    ]);
    expect(entry?.row_count).toBe(ROW_COUNT);
    const expected = Array.from({ length: ROW_COUNT }, (_, i) => [i + 1, `row ${i + 1}`]);
    expect(entry?.rows).toEqual(expected);
  });

  test("a long response is placed between the entries of the other statements", async () => {
    const { body } = await server.sql(`SELECT 1 AS one; ${LONG}; SELECT 2 AS two; ${LONG}`);
    expect(body.status).toBe("success");
    expect(body.results.map(({ row_count }) => row_count)).toEqual([1, ROW_COUNT, 1, ROW_COUNT]);
    expect(body.results.map(({ rows }) => rows?.length)).toEqual([1, ROW_COUNT, 1, ROW_COUNT]);
    expect(body.results[2]?.rows).toEqual([[2]]);
    expect(body.results[3]?.rows?.at(-1)).toEqual([ROW_COUNT, `row ${ROW_COUNT}`]);
  });

  test("a long NDJSON response has a line for each row between the first line and the last", async () => {
    const answer = await post(LONG, { accept: "application/x-ndjson" });
    expect(answer.headers.get("content-type")).toStartWith("application/x-ndjson");
    const lines = (await answer.text()).split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.length).toBe(ROW_COUNT + 2);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ as_user: "ada" });
    expect(lines[ROW_COUNT]).toBe(`[${ROW_COUNT},"row ${ROW_COUNT}"]`);
    expect(JSON.parse(lines.at(-1) ?? "")).toEqual({
      status: "success",
      row_count: ROW_COUNT,
      took: expect.any(Number),
    });
  });

  test("a long CSV response has its header and all rows", async () => {
    const lines = (await (await post(LONG, { accept: "text/csv" })).text()).split("\r\n");
    expect(lines.length).toBe(ROW_COUNT + 2);
    expect(lines[0]).toBe("n,name");
    expect(lines[ROW_COUNT]).toBe(`${ROW_COUNT},row ${ROW_COUNT}`);
  });
});

describe("cells of every kind are the same in a streamed response", () => {
  const cells = `n, n + 9007199254740993::BIGINT AS big, (n * 123456789.125)::DECIMAL(30,3) AS exact,
    n / 7.0::DOUBLE AS x, CASE WHEN n % 3 = 0 THEN NULL ELSE 'a "quoted", ' || n END AS s,
    n % 2 = 0 AS b, DATE '2026-01-01' + n AS d, TIMESTAMP '2026-01-01' + n * INTERVAL '1 minute' AS t,
    decode(lpad(to_hex(n), 8, '0'), 'hex') AS raw, ('{"n":' || n || '}')::JSONB AS j`;
  const rowCount = amountOf({ usual: 8000, thorough: 60_000 });
  /**
   * For comparison, the test also requests the rows in parts so small that the server sends each
   * in one piece.
   */
  const part = 1000;

  async function textsOf(accept: string): Promise<{ whole: string; parts: readonly string[] }> {
    const from = (first: number, last: number): string =>
      `SELECT ${cells} FROM generate_series(${first}, ${last}) g(n)`;
    const whole = await (await post(from(1, rowCount), { accept })).text();
    const parts: string[] = [];
    for (let first = 1; first <= rowCount; first += part) {
      parts.push(await (await post(from(first, first + part - 1), { accept })).text());
    }
    return { whole, parts };
  }

  test("JSON cells have the same bytes in a long response as in short ones", async () => {
    const { parts, whole } = await textsOf("application/json");
    const rowsIn = (text: string): string =>
      text.slice(text.indexOf('"rows":[') + 8, text.indexOf('],"row_count"'));
    expect(rowsIn(whole) === parts.map(rowsIn).join(",")).toBe(true);
  });

  test("NDJSON and CSV cells have the same bytes in a long response as in short ones", async () => {
    const ndjson = await textsOf("application/x-ndjson");
    const rowLines = (text: string): readonly string[] => text.trimEnd().split("\n").slice(1, -1);
    expect(rowLines(ndjson.whole)).toEqual(ndjson.parts.flatMap(rowLines));
    const csv = await textsOf("text/csv");
    const records = (text: string): readonly string[] => text.trimEnd().split("\r\n").slice(1);
    expect(records(csv.whole)).toEqual(csv.parts.flatMap(records));
  });
});

describe("a failure after the first rows of a response is reported", () => {
  test("a late failure ends the JSON with the rows sent so far and an error", async () => {
    const { status, body } = await server.sql(`SELECT 1 AS one; ${FAILING}; SELECT 2 AS two`);
    expect(status).toBe(200);
    expect(body.status).toBe("error");
    expect(body.error).toMatchObject({
      code: "SQL_EXECUTION_ERROR",
      reason: "division_by_zero",
      statement: 1,
    });
    expect(body.results.length).toBe(2);
    const entry = body.results[1];
    expect(entry?.rows?.length).toBe(entry?.row_count ?? -1);
    expect(entry?.row_count).toBeGreaterThan(0);
    expect(entry?.row_count).toBeLessThan(FAILING_ROW);
  });

  test("a late failure is the last line of NDJSON", async () => {
    const answer = await post(FAILING, { accept: "application/x-ndjson" });
    const lines = (await answer.text()).trimEnd().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      status: "error",
      error: { code: "SQL_EXECUTION_ERROR", reason: "division_by_zero" },
    });
  });

  test("a late failure ends a CSV response abruptly", async () => {
    const answer = await post(FAILING, { accept: "text/csv" });
    expect(answer.status).toBe(200);
    const text = answer.text().then(
      () => "whole",
      () => "broken",
    );
    expect(await text).toBe("broken");
  });

  test("a failure before the first rows has its own status", async () => {
    const { status, body } = await server.sql(
      `SELECT 10 / (${FAILING_ROW} - n) FROM generate_series(1, ${ROW_COUNT}) g(n) ORDER BY 1`,
    );
    expect(status).toBe(400);
    expect(body.results).toEqual([]);
  });
});

describe("a client reads a streamed response at its own pace", () => {
  test("a client that disconnects while rows arrive ends the query", async () => {
    const controller = new AbortController();
    const answer = await post(ENDLESS, { signal: controller.signal });
    const reader = answer.body?.getReader();
    await reader?.read();
    expect((await runningQueries()).length).toBe(1);
    controller.abort();
    await untilNoneRuns();
    // The reader must stay in use to the end, because the runtime disconnects once the response
    // has been garbage-collected.
    const end = reader?.closed.then(
      () => "whole",
      () => "left",
    );
    expect(await end).toBe("left");
  });

  test("a client that disconnects before the first row ends the query", async () => {
    const controller = new AbortController();
    const answer = post(`SELECT count(*) FROM (${ENDLESS}) q WHERE n || t LIKE '%y'`, {
      signal: controller.signal,
    }).catch(() => "left");
    await until(async () => (await runningQueries()).length > 0);
    controller.abort();
    expect(await answer).toBe("left");
    await untilNoneRuns();
  });

  test("a client that does not read makes the query wait, and the query can be killed", async () => {
    const answer = await post(ENDLESS);
    const reader = answer.body?.getReader();
    await reader?.read();
    const readRows = async (): Promise<unknown> =>
      (
        await server.rows(
          "SELECT memory_bytes FROM system.queries WHERE sql LIKE '%100000000%' AND sql NOT LIKE '%system%'",
        )
      )[0]?.[0];
    expect(Number(await readRows())).toBeLessThan(16 * 1024 * 1024);
    const [queryId] = await runningQueries();
    await server.rows(`KILL QUERY '${String(queryId)}'`);
    await untilNoneRuns();
    let text = "";
    const decoder = new TextDecoder();
    for (;;) {
      const piece = await reader?.read();
      if (piece === undefined || piece.done) break;
      text = (text + decoder.decode(piece.value, { stream: true })).slice(-2000);
    }
    const end = text.slice(text.indexOf('],"row_count"') + 2);
    const body = JSON.parse(`{"results":[{${end}`) as SqlBody;
    expect(body.status).toBe("error");
    expect(body.error).toMatchObject({ reason: "cancelled" });
  });
});
