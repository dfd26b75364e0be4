/**
 * Changes definitions while other clients read, write and follow the same tables. Every request
 * gets a response, no row is ever stored in the columns of a different definition, and the server
 * stays up.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testThoroughly } from "../support/requirements.ts";
import { type ServerProcess, type SqlAnswer, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
});

afterAll(async () => {
  // Whatever the order of the racing requests, the server is still running.
  expect(await server.rows("SELECT 1")).toEqual([[1]]);
  await server.stop();
});

test("DROP TABLE drops a table once even if the statement names it twice", async () => {
  await server.rows("CREATE TABLE default.twice (id INT PRIMARY KEY)");
  const { body } = await server.sql("DROP TABLE twice, default.twice");
  expect(body.error).toBeUndefined();
  expect((await server.sql("SELECT * FROM twice")).body.error?.code).toBe("TABLE_NOT_FOUND");
});

test("concurrent INSERT and ALTER TABLE statements leave each value in its column", async () => {
  await server.rows("CREATE TABLE default.raced (id INT PRIMARY KEY, v TEXT, extra INT)");
  for (let round = 0; round < 20; round += 1) {
    const inserts = Array.from({ length: 12 }, (_, i) => {
      const id = round * 12 + i;
      return server.sql(`INSERT INTO raced (id, v) VALUES (${id}, 'v${id}')`);
    });
    const alter = round % 2 === 0 ? "DROP COLUMN extra" : "ADD COLUMN extra INT DEFAULT 7";
    const [altered, ...inserted] = await Promise.all([
      server.sql(`ALTER TABLE raced ${alter}`),
      ...inserts,
    ]);
    expect(altered.status).toBe(200);
    for (const { status } of inserted) expect(status).toBe(200);
  }
  const rows = await server.rows("SELECT id, v FROM raced ORDER BY id");
  expect(rows).toEqual(Array.from({ length: 240 }, (_, id) => [id, `v${id}`]));
});

testThoroughly(
  "a transaction over tables that are altered meanwhile commits as a whole, or reports a conflict",
  async () => {
    await server.rows("CREATE TABLE default.account (id INT PRIMARY KEY, v TEXT, a INT)");
    const answers: Promise<SqlAnswer>[] = [];
    // Concurrent requests run in any order, but a column must be dropped before it is added again,
    // so these requests are sent one after another.
    let altered: Promise<unknown> = Promise.resolve();
    const alter = (action: string): void => {
      const answer = altered.then(() => server.sql(`ALTER TABLE account ${action}`));
      answers.push(answer);
      altered = answer;
    };
    for (let round = 0; round < 40; round += 1) {
      const text =
        `BEGIN; INSERT INTO account (id, v) VALUES (${round}, 'first'); ` +
        `SELECT COUNT(*) FROM account; UPDATE account SET v = 'second' WHERE id = ${round}; COMMIT`;
      answers.push(server.sql(text));
      if (round % 8 === 3) alter("DROP COLUMN a");
      if (round % 8 === 7) alter("ADD COLUMN a INT");
    }
    let committed = 0;
    for (const { status, body } of await Promise.all(answers)) {
      if (body.error === undefined) committed += body.results.length === 5 ? 1 : 0;
      else expect([status, body.error.reason]).toEqual([400, "conflict"]);
    }
    const rows = await server.rows("SELECT v FROM account");
    expect(rows).toEqual(Array.from({ length: committed }, () => ["second"]));
  },
);

test("an upload to a table that is altered meanwhile keeps the row and its file together", async () => {
  await server.rows("CREATE TABLE default.paper (id INT PRIMARY KEY, f FILE, a INT)");
  const upload = async (id: number): Promise<number> => {
    const form = new FormData();
    form.set("sql", `INSERT INTO paper (id, f) VALUES (${id}, FILE('x'))`);
    form.set("file:x", new File([`content ${id}`], "note.txt"));
    const headers = { Authorization: `Bearer ${server.token}` };
    const answer = await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
    return answer.status;
  };
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => {
      if (i % 4 === 1) {
        return (await server.sql(`ALTER TABLE paper ADD COLUMN b${i} INT`)).status;
      }
      return upload(i);
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([200]));
  const rows = await server.rows("SELECT id, f FROM paper ORDER BY id");
  expect(rows).toHaveLength(15);
  for (const [id, file] of rows) {
    const { id: fileId, sub } = JSON.parse(String(file)) as { id: string; sub: string };
    const path = `/v1/files/default/paper/${sub}/${fileId}`;
    const answer = await server.get(path, { Authorization: `Bearer ${server.token}` });
    expect(await answer.text()).toBe(`content ${String(id)}`);
  }
});
