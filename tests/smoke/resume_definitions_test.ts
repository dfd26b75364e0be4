/**
 * Verifies that a client that resumes either has the current result or must start again, even if
 * the name of the table now refers to a different table, user or set of columns. Each case runs
 * once on a server that keeps running, and once on a server that is killed between the loss of the
 * connection and the resume. A single kill serves all cases.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { defined } from "../../src/base/assert.ts";
import type { SubscribeOptions } from "../../src/protocol/mod.ts";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { isThorough, shareOf } from "../support/thoroughness.ts";

let server: ServerProcess;
let count = 0;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows("CREATE NAMESPACE app");
});

afterAll(async () => {
  await server.stop();
});

/** Returns the events of a subscription until it is ready or refused, and the last position. */
async function follow(
  sql: string,
  { token, ...options }: SubscribeOptions & { token: string },
): Promise<{ told: unknown[]; position: number }> {
  const socket = await SocketClient.connect(server.url, { token });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription: { id: "a", sql, options } });
  let message = await socket.next();
  if (message.type === "subscription_ack") message = await socket.next();
  socket.close();
  if (message.type === "error") return { told: [message.code, message.earliest_seq], position: 0 };
  if (message.type !== "initial_data_batch") throw new Error(`Nobody asked for ${message.type}`);
  const { batch_control: control, rows } = message;
  return { told: rows.map(({ id }) => id), position: Number(control.last_seq_id) };
}

interface Case {
  readonly query: string;
  readonly kind: "SHARED" | "USER";
  readonly change: readonly string[];
  readonly told: readonly unknown[];
}

const PUBLIC = "WITH (ACCESS_LEVEL = 'PUBLIC')";
const ANEW = `(id INT PRIMARY KEY, v TEXT) ${PUBLIC}`;
const COLUMNS = "(id INT PRIMARY KEY, v TEXT, n INT DEFAULT 1)";

const CASES: Readonly<Record<string, Case>> = {
  "the table was dropped and made again": {
    query: "SELECT id, v FROM $t",
    kind: "SHARED",
    change: ["DROP TABLE $t", `CREATE SHARED TABLE $t ${ANEW}`, "INSERT INTO $t VALUES (3, 'c')"],
    told: ["RESUME_EXPIRED", expect.any(Number)],
  },
  "the table was renamed, and another has its name": {
    query: "SELECT id, v FROM $t",
    kind: "SHARED",
    change: [
      "ALTER TABLE $t RENAME TO former_$u",
      `CREATE SHARED TABLE $t ${ANEW}`,
      "INSERT INTO $t VALUES (3, 'c')",
      "DROP TABLE app.former_$u",
    ],
    told: ["RESUME_EXPIRED", expect.any(Number)],
  },
  "the user was dropped and made again": {
    query: "SELECT id, v FROM $t",
    kind: "USER",
    change: ["DROP USER $u", "CREATE USER $u WITH PASSWORD 'correct horse 9' ROLE user"],
    told: ["RESUME_EXPIRED", expect.any(Number)],
  },
  "the user of a shared table was dropped and made again": {
    query: "SELECT id, v FROM $t",
    kind: "SHARED",
    change: ["DROP USER $u", "CREATE USER $u WITH PASSWORD 'correct horse 9' ROLE user"],
    told: ["RESUME_EXPIRED", expect.any(Number)],
  },
  "a column that * stands for was added": {
    query: "SELECT * FROM $t",
    kind: "SHARED",
    change: ["ALTER TABLE $t ADD COLUMN x INT NOT NULL DEFAULT 9"],
    told: ["SCHEMA_CHANGED", undefined],
  },
  "a column that * stood for was dropped": {
    query: "SELECT * FROM $t",
    kind: "SHARED",
    change: ["ALTER TABLE $t DROP COLUMN n"],
    told: ["SCHEMA_CHANGED", undefined],
  },
  "a column was dropped and made again": {
    query: "SELECT id FROM $t WHERE v IS NULL",
    kind: "SHARED",
    change: ["ALTER TABLE $t DROP COLUMN v", "ALTER TABLE $t ADD COLUMN v TEXT DEFAULT 'new'"],
    told: ["SCHEMA_CHANGED", undefined],
  },
  "the columns changed their names": {
    query: "SELECT id, v FROM $t",
    kind: "SHARED",
    change: ["ALTER TABLE $t RENAME COLUMN v TO w", "ALTER TABLE $t ADD COLUMN v TEXT"],
    told: ["SCHEMA_CHANGED", undefined],
  },
  "a column changed its type": {
    query: "SELECT id, n FROM $t",
    kind: "SHARED",
    change: ["ALTER TABLE $t ALTER COLUMN n TYPE BIGINT"],
    told: ["SCHEMA_CHANGED", undefined],
  },
  "what changed is not in the query": {
    query: "SELECT id, v FROM $t",
    kind: "SHARED",
    change: [
      "ALTER TABLE $t ADD COLUMN x INT NOT NULL DEFAULT 9",
      "ALTER TABLE $t DROP COLUMN n",
      "ALTER TABLE $t ALTER COLUMN v SET NOT NULL",
      "ALTER TABLE $t SET (FLUSH_POLICY = 'rows:100')",
      "INSERT INTO $t (id, v) VALUES (4, 'd')",
    ],
    told: [4],
  },
  "another table was dropped": {
    query: "SELECT * FROM $t",
    kind: "SHARED",
    change: [`CREATE SHARED TABLE $t_2 ${ANEW}`, "DROP TABLE $t_2"],
    told: [],
  },
};

/** A case whose definitions have been changed after the client lost its connection. */
interface Prepared {
  readonly user: string;
  readonly query: string;
  readonly position: number;
}

async function prepared({ change, kind, query }: Case): Promise<Prepared> {
  count += 1;
  const user = `user${count}`;
  const named = (text: string): string =>
    text.replaceAll("$t", `app.t${count}`).replaceAll("$u", user);
  const access = kind === "SHARED" ? PUBLIC : "";
  const token = await server.createUser(user);
  await server.rows(named(`CREATE ${kind} TABLE $t ${COLUMNS} ${access}`));
  const writer = kind === "USER" ? token : server.token;
  await server.rows(named("INSERT INTO $t (id, v) VALUES (1, 'a'), (2, 'b')"), { token: writer });
  const { position } = await follow(named(query), { token });
  for (const statement of change) await server.rows(named(statement));
  return { user, query: named(query), position };
}

describe.each([
  ["on one server", false],
  ["over a kill", true],
])("a client that resumes %s gets the changes to definitions", (_where, isKilled) => {
  // A usual run tries every other case, in one of the two ways.
  const tried = Object.entries(CASES).filter(
    (_, index) => isThorough || index % 4 === (isKilled ? 3 : 0),
  );
  const cases = new Map<string, Prepared>();

  beforeAll(async () => {
    for (const [what, each] of tried) cases.set(what, await prepared(each));
    if (isKilled) await server.restart("SIGKILL");
  });

  test.each(tried)("when %s", async (what, { told }) => {
    const { position, query, user } = defined(cases.get(what), "the case must be prepared");
    const token = (await server.login(user)).access_token;

    const resumed = await follow(query, { token, from_seq_id: position });
    expect(resumed.told).toEqual([...told]);
    // The client starts again, and continues from the rows it then reads.
    const fresh = await follow(query, { token });
    const next = await follow(query, { token, from_seq_id: fresh.position });
    expect(next.told).toEqual([]);
    const whole = await follow(query, { token, from_seq_id: 0 });
    expect(new Set(whole.told)).toEqual(new Set(fresh.told));
  });
});

const WAYS = [
  ["over a kill", true],
  ["on one server", false],
] as const;

test.each(shareOf(WAYS, { oneOf: 2 }))(
  "a table to which access is granted shows nothing from before, %s",
  async (_where, isKilled) => {
    count += 1;
    const table = `app.opened${count}`;
    const user = await server.createUser(`opened${count}`);
    await server.rows(`CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, v TEXT)`);
    await server.rows(`INSERT INTO ${table} VALUES (1, 'secret'), (2, 'kept')`);
    await server.rows(`DELETE FROM ${table} WHERE id = 1`);
    const sql = `SELECT id, v FROM ${table}`;
    const before = await follow(sql, { token: server.token });
    await server.rows(`ALTER TABLE ${table} SET (ACCESS_LEVEL = 'PUBLIC')`);
    if (isKilled) await server.restart("SIGKILL");
    const refused = ["RESUME_EXPIRED", expect.any(Number)];
    const earlier = await follow(sql, { token: user, from_seq_id: 1 });
    expect(earlier.told).toEqual(refused);
    const [, earliest] = earlier.told;
    expect(earliest).toBeGreaterThan(before.position);
    const late = await follow(sql, { token: user, from_seq_id: before.position });
    expect(late.told).toEqual(refused);
    const whole = await follow(sql, { token: user, from_seq_id: 0 });
    expect(whole.told).toEqual([2]);
    // A client that has every visible row can continue from its position, even if nothing has been
    // written in the meantime.
    const here = await follow(sql, { token: user, from_seq_id: whole.position });
    expect(here.told).toEqual([]);
    // Later changes are visible to everyone.
    await server.rows(`INSERT INTO ${table} VALUES (3, 'open')`);
    const next = await follow(sql, { token: user, from_seq_id: Number(earliest) });
    expect(next.told).toEqual([3]);
    // A user who loses access and regains it in the same way sees nothing of what happened in
    // between.
    await server.rows(`ALTER TABLE ${table} SET (ACCESS_LEVEL = 'PRIVATE')`);
    await server.rows(`DELETE FROM ${table} WHERE id = 3`);
    await server.rows(`ALTER TABLE ${table} SET (ACCESS_LEVEL = 'PUBLIC')`);
    const fresh = await follow(sql, { token: user, from_seq_id: Number(earliest) });
    expect(fresh.told).toEqual(refused);
  },
);

test("a resume over an event stream is refused before the stream begins if the columns have changed", async () => {
  await server.rows(`CREATE SHARED TABLE app.events ${COLUMNS}`);
  await server.rows("INSERT INTO app.events (id, v) VALUES (1, 'a')");
  const sql = "SELECT * FROM app.events";
  const { position } = await follow(sql, { token: server.token });
  await server.rows("ALTER TABLE app.events DROP COLUMN n");
  const query = `sql=${encodeURIComponent(sql)}&from_seq_id=${position}`;
  const answer = await server.get(`/v1/api/live?${query}`, {
    Authorization: `Bearer ${server.token}`,
  });

  expect(answer.status).toBe(410);
  expect(await answer.json()).toMatchObject({ error: { code: "SCHEMA_CHANGED" } });
});
