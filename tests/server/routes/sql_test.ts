/**
 * Verifies that the memory for the body of `POST /v1/api/sql` is released once its statements have
 * ended.
 */
import { expect, test } from "bun:test";
import type { AnswerStream, SqlResponse } from "../../../src/sql/mod.ts";
import { startTestServer } from "../../support/http.ts";

const LONG = `SELECT ${"1, ".repeat(10_000)}1`;

const ENDED: SqlResponse = { results: [{ rowCount: 0, asUser: "ada" }] };

test("SqlRoute releases the memory of a long text with the response, and not earlier", async () => {
  const lengths: (number | undefined)[] = [];
  const server = await startTestServer({
    script: async ({ sqlUtf8 }) => {
      await Promise.resolve();
      lengths.push(sqlUtf8?.length);
      return ENDED;
    },
  });
  expect((await server.sql({ sql: LONG })).status).toBe(200);
  expect((await server.sql({ sql: "SELECT 1" })).status).toBe(200);
  expect(lengths).toEqual([LONG.length, undefined]);
  expect(server.requests[0]?.sqlUtf8?.length).toBe(0);
  await server.close();
});

test("SqlRoute keeps a long text while its response continues as a stream", async () => {
  const lengths: (number | undefined)[] = [];
  const server = await startTestServer({
    script: ({ sqlUtf8 }) => {
      const stream: AnswerStream = {
        next: () => {
          lengths.push(sqlUtf8?.length);
          return Promise.resolve({ kind: "end", error: undefined });
        },
        cancel: () => undefined,
      };
      return { results: [], stream };
    },
  });
  await (await server.sql({ sql: LONG })).text();
  expect(lengths).toEqual([LONG.length]);
  await server.close();
});
