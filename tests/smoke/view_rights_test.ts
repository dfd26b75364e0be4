/**
 * Tests views that run with their owner's rights, on the real process. Subscribers follow them
 * without the right to read their tables, while memberships, the view and its owner change.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ErrorMessage, ServerMessage } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

/** The content of a column that no view shows. */
const CANARY = "canary4471fe0c";

const OWN = "WITH (security_invoker = false, access_level = 'PUBLIC')";

let server: ServerProcess;
let dan: string;

beforeAll(async () => {
  server = await startReadyServer();
  dan = await server.createUser("dan");
  await server.rows(
    `CREATE NAMESPACE hr;
     CREATE TABLE hr.people (id INT PRIMARY KEY, name TEXT, team INT, salary TEXT)
       WITH (ACCESS_LEVEL = 'DBA');
     CREATE TABLE hr.members (team INT, user_id TEXT, PRIMARY KEY (team, user_id))
       WITH (ACCESS_LEVEL = 'DBA');
     INSERT INTO hr.members VALUES (1, 'dan');
     INSERT INTO hr.people VALUES (1, 'Ada', 1, '${CANARY}'), (2, 'Bo', 2, '${CANARY}');
     CREATE VIEW hr.team ${OWN} AS
       SELECT id, name FROM hr.people p
       WHERE EXISTS (SELECT 1 FROM hr.members m WHERE m.team = p.team AND m.user_id = CURRENT_USER())`,
  );
});

afterAll(async () => {
  await server.stop();
});

/** A subscriber to a query, with the ids of the rows it has. */
class Follower {
  readonly #client: SocketClient;
  readonly ids = new Set<unknown>();
  error: ErrorMessage | undefined;
  /** The last position at which the rows were complete. */
  seq = 0;

  private constructor(client: SocketClient) {
    this.#client = client;
  }

  static async of(sql: string, options: { from_seq_id?: number } = {}): Promise<Follower> {
    const client = await SocketClient.connect(server.url, { token: dan, query: "?compress=false" });
    await client.expect("auth_success");
    client.send({ type: "subscribe", subscription: { id: "s", sql, options } });
    return new Follower(client);
  }

  /** Reads messages until the rows have exactly these ids, or until the subscription ends. */
  async until(...ids: readonly number[]): Promise<void> {
    while (this.error === undefined && !this.#has(ids)) {
      this.#take(await this.#client.next());
    }
  }

  #has(ids: readonly number[]): boolean {
    return this.ids.size === ids.length && ids.every((id) => this.ids.has(id));
  }

  async end(): Promise<string> {
    while (this.error === undefined) this.#take(await this.#client.next());
    return this.error.code;
  }

  #take(message: ServerMessage): void {
    expect(JSON.stringify(message)).not.toContain(CANARY);
    if (message.type === "error") this.error = message;
    if (message.type === "initial_data_batch") {
      for (const { id } of message.rows) this.ids.add(id);
      this.seq = message.batch_control.last_seq_id ?? this.seq;
    }
    if (message.type !== "change") return;
    for (const { id } of message.old_values ?? []) this.ids.delete(id);
    for (const { id } of message.rows) this.ids.add(id);
    if (message.commit_end === true) this.seq = message.commit_seq ?? this.seq;
  }

  close(): void {
    this.#client.close();
  }
}

test.each([
  ["the view", "SELECT id, name FROM hr.team"],
  ["a join with it", "SELECT t.id, o.name FROM hr.team t LEFT JOIN hr.team o ON o.id = t.id"],
  ["its newest rows", "SELECT id, name FROM hr.team ORDER BY id DESC LIMIT 5"],
])("a subscriber of %s follows the rows that the view shows to the reader", async (_, sql) => {
  const follower = await Follower.of(sql);
  await follower.until(1);
  await server.rows("INSERT INTO hr.members VALUES (2, 'dan')");
  await follower.until(1, 2);
  await server.rows(`INSERT INTO hr.people VALUES (3, 'Cy', 2, '${CANARY} too')`);
  await follower.until(1, 2, 3);
  await server.rows(`UPDATE hr.people SET salary = '${CANARY} more', team = 3 WHERE id = 2`);
  await follower.until(1, 3);
  await server.rows("DELETE FROM hr.members WHERE team = 2");
  await follower.until(1);
  await server.rows(
    "DELETE FROM hr.people WHERE id = 3; UPDATE hr.people SET team = 2 WHERE id = 2",
  );
  expect(follower.error).toBeUndefined();
  follower.close();
});

test("a subscriber resumes over a view, and sees what it has missed", async () => {
  const sql = "SELECT id, name FROM hr.team";
  const first = await Follower.of(sql);
  await first.until(1);
  first.close();
  await server.rows(
    `INSERT INTO hr.people VALUES (4, 'Di', 1, '${CANARY}'), (5, 'Ed', 2, '${CANARY}')`,
  );
  const again = await Follower.of(sql, { from_seq_id: first.seq });
  again.ids.add(1);
  await again.until(1, 4);
  await server.rows("DELETE FROM hr.people WHERE id > 3");
  await again.until(1);
  again.close();
});

test("a subscriber does not resume over a view whose owner has got another role", async () => {
  const token = await server.createUser("vera", "dba");
  await server.rows(
    `CREATE TABLE hr.rooms (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED');
     CREATE POLICY p ON hr.rooms USING (id = 1);
     INSERT INTO hr.rooms VALUES (1), (2)`,
  );
  await server.rows(`CREATE VIEW hr.open_rooms ${OWN} AS SELECT id FROM hr.rooms`, { token });
  const sql = "SELECT id FROM hr.open_rooms";
  const first = await Follower.of(sql);
  await first.until(1, 2);
  first.close();
  await server.rows("ALTER USER vera SET ROLE user");
  const again = await Follower.of(sql, { from_seq_id: first.seq });
  expect(await again.end()).toBe("RESUME_EXPIRED");
  again.close();
  const fresh = await Follower.of(sql);
  await fresh.until(1);
  expect(fresh.error).toBeUndefined();
  fresh.close();
  await server.rows("DROP VIEW hr.open_rooms; DROP TABLE hr.rooms");
});

test.each([
  ["its level", "ALTER VIEW hr.v SET (access_level = 'PRIVATE')"],
  ["whose rights it has", "ALTER VIEW hr.v SET (security_invoker = true)"],
  ["its owner's role", "ALTER USER olga SET ROLE user"],
  ["its owner's account", "DROP USER olga"],
])("a subscription ends when the view changes in %s", async (what, statement) => {
  const owner = `olga${what.replaceAll(/\W/g, "")}`;
  const token = await server.createUser(owner, "dba");
  const sql = "SELECT id, name FROM hr.v";
  await server.rows(`CREATE VIEW hr.v ${OWN} AS SELECT id, name FROM hr.people WHERE id < 10`, {
    token,
  });
  const follower = await Follower.of(sql);
  await follower.until(1, 2);
  await server.rows(statement.replace("olga", owner));
  await server.rows(`INSERT INTO hr.people VALUES (9, 'Flo', 1, '${CANARY}')`);
  expect(await follower.end()).toBe("UNAUTHORIZED");
  expect(follower.ids.has(9)).toBe(false);
  follower.close();
  await server.rows("DELETE FROM hr.people WHERE id = 9; DROP VIEW hr.v");
});

test("a view shows its readers the files of its rows, and no other files of the table", async () => {
  await server.rows(
    `CREATE TABLE hr.papers (id INT PRIMARY KEY, team INT, doc FILE, secret FILE) WITH (ACCESS_LEVEL = 'DBA');
     CREATE VIEW hr.shown ${OWN} AS SELECT id, doc FROM hr.papers p
       WHERE EXISTS (SELECT 1 FROM hr.members m WHERE m.team = p.team AND m.user_id = CURRENT_USER());
     CREATE VIEW hr.over AS SELECT doc AS paper FROM hr.shown`,
  );
  const files: Record<string, { id: string; sub: string }> = {};
  for (const [id, team] of [
    [1, 1],
    [2, 2],
  ]) {
    const form = new FormData();
    form.set("sql", `INSERT INTO hr.papers VALUES (${id}, ${team}, FILE('d'), FILE('s'))`);
    for (const name of ["d", "s"]) {
      form.set(`file:${name}`, new File([`${name}${id}`], "a.txt", { type: "text/plain" }));
    }
    const headers = { Authorization: `Bearer ${server.token}` };
    await fetch(`${server.url}/v1/api/sql`, { method: "POST", headers, body: form });
    const [row = []] = await server.rows(`SELECT doc, secret FROM hr.papers WHERE id = ${id}`);
    const [doc, secret] = row.map(
      (cell) => JSON.parse(String(cell)) as { id: string; sub: string },
    );
    Object.assign(files, { [`doc ${id}`]: doc, [`secret ${id}`]: secret });
  }
  const read = async (name: string, place: string): Promise<string | number> => {
    const { id, sub } = files[name] ?? { id: "", sub: "" };
    const path = `/v1/files/hr/${place}/${sub}/${id}`;
    const answer = await server.get(path, { Authorization: `Bearer ${dan}` });
    return answer.status === 200 ? await answer.text() : answer.status;
  };
  const rows = await server.rows("SELECT FILE_URL(doc) FROM hr.shown", { token: dan });
  expect(rows).toHaveLength(1);
  const signed = async (): Promise<number> => (await server.get(String(rows[0]?.[0]))).status;
  expect(await signed()).toBe(200);
  for (const place of ["shown", "over"]) expect(await read("doc 1", place)).toBe("d1");
  for (const name of ["doc 2", "secret 1"]) expect(await read(name, "shown")).toBe(404);
  expect(await read("doc 1", "papers")).toBe(404);
  expect(await read("doc 1", "team")).toBe(404);
  await server.rows("DELETE FROM hr.members WHERE team = 1");
  expect([await signed(), await read("doc 1", "shown")]).toEqual([404, 404]);
  await server.rows("INSERT INTO hr.members VALUES (1, 'dan')");
  expect(await signed()).toBe(200);
  await server.rows("ALTER VIEW hr.shown SET (access_level = 'DBA')");
  expect([await signed(), await read("doc 1", "shown"), await read("doc 1", "over")]).toEqual([
    404, 404, 404,
  ]);
  await server.rows("DROP TABLE hr.papers CASCADE");
});
