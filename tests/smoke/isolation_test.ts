/**
 * Tries to reach another user's rows, and verifies that all attempts fail. Every row, file and
 * name that belongs to alice contains a canary. Nothing sent to bob, such as rows, errors, plans,
 * frames or files, may contain it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";

const CANARY = "canary5f1c9a7e3b8d";

let server: ServerProcess;
let alice: string;
let bob: string;
let sam: string;
/** The seq of alice's newest row. */
let aliceSeq = 0;
/** The path of alice's file. */
let aliceFile = "";

beforeAll(async () => {
  server = await startReadyServer();
  alice = await server.createUser("alice");
  bob = await server.createUser("bob");
  sam = await server.createUser("sam", "service");
  await server.rows(
    "CREATE NAMESPACE app; " +
      "CREATE USER TABLE app.notes (id BIGINT PRIMARY KEY, title TEXT, stars INT, doc FILE); " +
      "CREATE SHARED TABLE app.vault (id BIGINT PRIMARY KEY, secret TEXT); " +
      "CREATE SHARED TABLE app.board (id BIGINT PRIMARY KEY, text TEXT) WITH (ACCESS_LEVEL='PUBLIC'); " +
      `INSERT INTO app.vault VALUES (1, '${CANARY}'); INSERT INTO app.board VALUES (1, 'all')`,
  );
  for (const [id, stars] of [
    [1, 5],
    [2, 4],
    [777, 3],
  ]) {
    await server.rows("INSERT INTO app.notes (id, title, stars) VALUES ($1, $2, $3)", {
      token: alice,
      params: [id, `${CANARY} ${id}`, stars],
    });
  }
  await upload();
  await server.rows(
    "CREATE VIEW app.titles AS SELECT title FROM app.notes; " +
      "CREATE VIEW app.newest AS SELECT COUNT(*) AS n, MAX(title) AS m FROM app.notes; " +
      `CREATE VIEW app.secrets AS SELECT secret, '${CANARY}' AS also FROM app.vault`,
  );
  await server.rows("INSERT INTO app.notes (id, title, stars) VALUES (1, 'of bob', 1)", {
    token: bob,
  });
  // Half of alice's rows are in a segment, next to bob's.
  await server.rows("STORAGE FLUSH TABLE app.notes");
  await server.rows(`INSERT INTO app.notes (id, title, stars) VALUES (900, '${CANARY}', 9)`, {
    token: alice,
  });
  const rows = await server.rows("SELECT _seq FROM app.notes WHERE id = 900", { token: alice });
  aliceSeq = Number(rows[0]?.[0]);
});

afterAll(async () => {
  await server.stop();
});

async function upload(): Promise<void> {
  const form = new FormData();
  form.set("sql", `INSERT INTO app.notes VALUES (3, '${CANARY}', 5, FILE('doc'))`);
  form.set("file:doc", new File([`${CANARY} in a file`], `${CANARY}.txt`, { type: "text/plain" }));
  const answer = await fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: { Authorization: `Bearer ${alice}` },
    body: form,
  });
  expect(answer.status, await answer.text()).toBe(200);
  const rows = await server.rows("SELECT doc FROM app.notes WHERE id = 3", { token: alice });
  const { id, sub } = JSON.parse(String(rows[0]?.[0])) as { id: string; sub: string };
  aliceFile = `/v1/files/app/notes/${sub}/${id}`;
}

/** Returns the whole text of a response, including the names and values of its headers. */
async function everythingIn(answer: Response): Promise<string> {
  return JSON.stringify([...answer.headers]) + (await answer.text());
}

function hasCanary(text: string): boolean {
  const plain = text.toLowerCase();
  const encoded = [
    CANARY,
    Buffer.from(CANARY).toString("base64"),
    Buffer.from(CANARY).toString("hex"),
  ];
  return encoded.some((form) => plain.includes(form.toLowerCase()));
}

test("alice can see the canary in all places that the tests below search", async () => {
  const rows = await server.rows("SELECT id, title FROM app.notes ORDER BY id", { token: alice });
  expect(rows.map(([id]) => id)).toEqual([1, 2, 3, 777, 900]);
  expect(hasCanary(JSON.stringify(rows))).toBe(true);
  const file = await server.get(aliceFile, { Authorization: `Bearer ${alice}` });
  expect(hasCanary(await everythingIn(file))).toBe(true);
});

/** The statements that bob sends. A second element lists all rows that he may see. */
const STATEMENTS: readonly (readonly [sql: string, rows?: readonly unknown[]])[] = [
  ["SELECT * FROM app.notes WHERE id > 1", []],
  ["SELECT title FROM app.notes", [["of bob"]]],
  ["SELECT title FROM app.notes AS alice", [["of bob"]]],
  ["SELECT title FROM app.notes WHERE id = 777", []],
  ["SELECT title FROM app.notes WHERE id IN (1, 2, 777)", [["of bob"]]],
  ["SELECT title FROM app.notes WHERE id BETWEEN 0 AND 1000", [["of bob"]]],
  [`SELECT id FROM app.notes WHERE title LIKE '${CANARY.slice(0, 6)}%'`, []],
  ["SELECT id FROM app.notes WHERE TRUE OR stars = 5", [[1]]],
  ["SELECT title FROM app.notes WHERE _seq > 0", [["of bob"]]],
  ["SELECT title FROM app.notes WHERE _deleted = true", []],
  ["SELECT COUNT(*) FROM app.notes", [[1]]],
  ["SELECT MIN(title), MAX(title), SUM(stars) FROM app.notes", [["of bob", "of bob", 1]]],
  ["SELECT stars, COUNT(*) FROM app.notes GROUP BY stars", [[1, 1]]],
  ["SELECT string_agg(title, ',') FROM app.notes", [["of bob"]]],
  ["SELECT DISTINCT title FROM app.notes", [["of bob"]]],
  ["SELECT title FROM app.notes ORDER BY stars DESC LIMIT 10", [["of bob"]]],
  ["SELECT title FROM app.notes LIMIT 10 OFFSET 1", []],
  ["SELECT MAX(_seq) < 0, COUNT(_seq) FROM app.notes", [[false, 1]]],
  ["SELECT a.title, b.title FROM app.notes a JOIN app.notes b ON a.id <> b.id", []],
  ["SELECT b.title FROM app.board a LEFT JOIN app.notes b ON TRUE", [["of bob"]]],
  ["SELECT b.title FROM app.board a CROSS JOIN app.notes b", [["of bob"]]],
  ["SELECT b.title FROM app.board a, app.notes b", [["of bob"]]],
  ["SELECT b.title FROM app.board a FULL JOIN app.notes b ON a.id = b.id"],
  ["SELECT (SELECT MAX(title) FROM app.notes)", [["of bob"]]],
  ["SELECT (SELECT title FROM app.notes WHERE id = 777)", [[null]]],
  ["SELECT ARRAY(SELECT title FROM app.notes)", [[["of bob"]]]],
  ["SELECT title FROM (SELECT * FROM app.notes) q", [["of bob"]]],
  ["SELECT 1 FROM app.board WHERE EXISTS (SELECT 1 FROM app.notes WHERE id = 777)", []],
  ["SELECT 1 FROM app.board b WHERE EXISTS (SELECT 1 FROM app.notes n WHERE n.id = b.id + 1)", []],
  ["SELECT (SELECT count(*) FROM app.notes n WHERE n.stars >= b.id) FROM app.board b", [[1]]],
  ["SELECT (SELECT n.title FROM app.notes n WHERE n.id = b.id) FROM app.board b", [["of bob"]]],
  ["SELECT id FROM app.board WHERE id + 776 IN (SELECT id FROM app.notes)", []],
  ["SELECT id FROM app.board WHERE id NOT IN (SELECT id - 1 FROM app.notes)", [[1]]],
  [
    "SELECT id FROM app.board b WHERE 5 = ANY (SELECT stars FROM app.notes n WHERE n.id = b.id)",
    [],
  ],
  ["SELECT 1 WHERE 4 < ALL (SELECT stars FROM app.notes)", []],
  ["SELECT 1 WHERE EXISTS (SELECT 1 FROM app.vault)"],
  ["SELECT 1 WHERE 1 IN (SELECT id FROM app.vault)"],
  ["SELECT (SELECT secret FROM app.vault v WHERE v.id = n.id) FROM app.notes n"],
  ["SELECT 1 ORDER BY (SELECT secret FROM app.vault)"],
  ["SELECT 1 LIMIT (SELECT id FROM app.vault)"],
  ["SELECT 1 FROM app.notes GROUP BY id HAVING max(title) < (SELECT secret FROM app.vault)"],
  ["WITH n AS (SELECT title FROM app.notes) SELECT title FROM n", [["of bob"]]],
  ["WITH n AS (SELECT title FROM app.notes) SELECT a.title FROM n a, n b", [["of bob"]]],
  ["WITH notes AS (SELECT secret AS title FROM app.vault) SELECT title FROM notes"],
  ["WITH v AS (SELECT secret FROM app.vault) SELECT 1"],
  [
    "WITH RECURSIVE n(t) AS (SELECT title FROM app.notes UNION SELECT t FROM n) SELECT t FROM n",
    [["of bob"]],
  ],
  ["WITH RECURSIVE n(t) AS (SELECT '' UNION SELECT secret FROM app.vault, n) SELECT t FROM n"],
  ["SELECT title FROM app.notes UNION ALL SELECT secret FROM app.vault"],
  ["SELECT title FROM app.notes EXCEPT SELECT secret FROM app.vault"],
  [
    "SELECT text FROM app.board UNION SELECT title FROM app.notes ORDER BY 1",
    [["all"], ["of bob"]],
  ],
  ["SELECT text FROM app.board EXCEPT SELECT title FROM app.notes", [["all"]]],
  ["SELECT id FROM app.notes INTERSECT SELECT 777", []],
  ["UPDATE app.notes SET title = (SELECT secret FROM app.vault) RETURNING title"],
  ["UPDATE app.notes SET (title, stars) = (SELECT secret, 1 FROM app.vault) RETURNING title"],
  ["DELETE FROM app.notes WHERE id IN (SELECT id FROM app.vault) RETURNING title"],
  ["INSERT INTO app.notes (id, title) VALUES (6000, (SELECT secret FROM app.vault))"],
  [
    "INSERT INTO app.notes (id, title) SELECT 6001, title FROM app.notes UNION SELECT 1, secret FROM app.vault",
  ],
  ["DELETE FROM app.notes WHERE id = 1 AND EXISTS (SELECT 1 FROM app.notes WHERE id = 777)"],
  ["EXECUTE AS USER 'alice' (SELECT 1 WHERE EXISTS (SELECT title FROM app.notes))"],
  ["SELECT 1 WHERE EXISTS (SELECT 1 FROM system.users)"],
  ["SELECT title, row_number() OVER (ORDER BY stars) FROM app.notes"],
  ["SELECT a.text FROM app.board a CROSS JOIN LATERAL (SELECT title FROM app.notes) n"],
  ["SELECT CASE WHEN COUNT(*) > 1 THEN 1 / 0 ELSE 0 END FROM app.notes", [[0]]],
  ["SELECT title::INT FROM app.notes WHERE id = 777", []],
  ["SELECT 1 / (stars - 3) FROM app.notes WHERE id = 777", []],
  ["SELECT secret FROM app.vault"],
  ["SELECT COUNT(*) FROM app.vault"],
  ["SELECT v.secret FROM app.board b JOIN app.vault v ON v.id = b.id"],
  ['SELECT secret FROM "app"."vault"'],
  ["SELECT SECRET FROM APP.VAULT /* as the owner */"],
  ["USE app; SELECT secret FROM vault"],
  ["SET search_path TO app; SELECT secret FROM vault"],
  ["BEGIN; SELECT title FROM app.notes WHERE id = 777; COMMIT"],
  ["UPDATE app.notes SET stars = 0 WHERE id = 777 RETURNING title", []],
  ["UPDATE app.notes SET title = title RETURNING title", [["of bob"]]],
  ["DELETE FROM app.notes WHERE id = 777 RETURNING title", []],
  ["UPDATE app.notes n SET title = x.title FROM app.notes x WHERE x.id = 777 RETURNING n.title"],
  ["DELETE FROM app.notes n USING app.notes x WHERE x.id = 777 RETURNING x.title"],
  ["INSERT INTO app.notes (id, title) SELECT id + 5000, title FROM app.notes WHERE id = 777"],
  ["UPDATE app.vault SET secret = 'mine' RETURNING secret"],
  ["DELETE FROM app.vault RETURNING secret"],
  ["INSERT INTO app.vault VALUES (1, 'x')"],
  [
    "INSERT INTO app.vault VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET secret = 'y' RETURNING secret",
  ],
  ["EXECUTE AS USER 'alice' (SELECT title FROM app.notes)"],
  ["EXECUTE AS 'alice' (SELECT title FROM app.notes)"],
  ["EXECUTE AS USER 'root' (SELECT secret FROM app.vault)"],
  ["EXECUTE AS USER 'bob' (EXECUTE AS USER 'alice' (SELECT title FROM app.notes))"],
  ["EXECUTE AS USER 'bob' (SELECT title FROM app.notes)", [["of bob"]]],
  ["EXECUTE AS USER 'ALICE' (SELECT title FROM app.notes)"],
  ["EXPLAIN SELECT title FROM app.notes"],
  ["EXPLAIN ANALYZE SELECT title FROM app.notes WHERE id = 777"],
  ["SELECT title FROM app.titles", [["of bob"]]],
  ["SELECT n, m FROM app.newest", [[1, "of bob"]]],
  ["SELECT t.title FROM app.board LEFT JOIN app.titles t ON TRUE", [["of bob"]]],
  ["SELECT * FROM app.secrets"],
  ["SELECT COUNT(*) FROM app.secrets"],
  ["WITH s AS (SELECT also FROM app.secrets) SELECT * FROM s"],
  ["DESCRIBE app.secrets"],
  ["CREATE OR REPLACE VIEW app.titles AS SELECT 1"],
  ["SELECT view_definition FROM information_schema.views WHERE table_name = 'secrets'", []],
  ["EXPLAIN ANALYZE SELECT * FROM app.titles"],
  ["EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM app.newest"],
  [
    "SELECT lag(title) OVER (ORDER BY id), first_value(title) OVER (), COUNT(*) OVER () FROM app.notes",
    [[null, "of bob", 1]],
  ],
  [
    "SELECT string_agg(title, ',') OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM app.notes",
    [["of bob"]],
  ],
  ["SELECT title, grouping(title) FROM app.notes GROUP BY ROLLUP (title)"],
  ["SELECT * FROM generate_series(1, (SELECT COUNT(*) FROM app.notes))", [[1]]],
  ["SELECT * FROM unnest(ARRAY(SELECT title FROM app.notes))", [["of bob"]]],
  ["SELECT * FROM unnest(ARRAY(SELECT secret FROM app.vault))"],
  ["SELECT * FROM app.notes, LATERAL unnest(ARRAY(SELECT secret FROM app.vault)) u"],
  ["SELECT * FROM json_each((SELECT to_json(secret) FROM app.vault))"],
  [
    "UPDATE app.notes n SET stars = 1 FROM app.notes o WHERE o.id = n.id OR o.id > 1 RETURNING o.title",
    [["of bob"]],
  ],
  ["UPDATE app.notes n SET title = v.secret FROM app.vault v RETURNING v.secret, n.title"],
  ["UPDATE app.notes n SET title = v.also FROM app.secrets v RETURNING v.also"],
  ["DELETE FROM app.notes n USING app.titles t WHERE n.id > 1 RETURNING t.title", []],
  ["DELETE FROM app.notes n USING app.vault v WHERE v.id = n.id RETURNING v.secret"],
  ["SELECT * FROM system.idempotent_answers"],
  ["SELECT * FROM system.query_stats"],
  ["SELECT * FROM system.jobs"],
  ["SELECT * FROM system.connections"],
  ["SELECT * FROM system.my_jobs", []],
  ["SHOW STATS FOR TABLE app.notes"],
  ["KILL JOB 'FL1'"],
  ["KILL QUERY 'QU1'"],
  ["KILL CONNECTION '1'"],
  ["STORAGE FLUSH TABLE app.vault"],
  ["BACKUP DATABASE TO '/tmp/tidemark-of-bob'"],
  ["ALTER TABLE app.notes ADD CONSTRAINT c CHECK (title::int > 0)"],
  ["SELECT * FROM system.users"],
  ["SELECT * FROM system.segments"],
  ["SELECT * FROM system.live"],
  ["SELECT * FROM system.tables"],
  ["SELECT * FROM system.columns"],
  ["SELECT * FROM system.settings"],
  ["SELECT * FROM system.files"],
  ["SELECT * FROM system.my_files"],
  ["SELECT * FROM system.queries"],
  ["SELECT * FROM system.audit_log"],
  ["SELECT table_name FROM information_schema.tables WHERE table_name = 'vault'", []],
  ["SELECT column_name FROM information_schema.columns WHERE table_name = 'vault'", []],
  ["SHOW STATS FOR TABLE app.vault"],
  ["SHOW MANIFEST"],
  ["SHOW TABLES"],
  ["SHOW COLUMNS FROM app.vault"],
  ["DESCRIBE TABLE app.vault"],
  ["CREATE VIEW app.peek AS SELECT * FROM app.notes"],
  ["CREATE USER TABLE app.copy (id BIGINT PRIMARY KEY)"],
  ["ALTER TABLE app.vault SET (ACCESS_LEVEL = 'PUBLIC')"],
  ["ALTER USER alice SET PASSWORD 'correct horse 8'"],
  ["ALTER USER bob SET ROLE dba"],
  ["CREATE USER alice WITH PASSWORD 'correct horse 8'"],
  ["SUBSCRIBE TO app.vault"],
  ["EXPORT USER DATA"],
];

describe("statements of bob do not reach the rows of alice", () => {
  test.each(STATEMENTS.map(([sql, rows]) => ({ sql, rows })))("$sql", async ({ sql, rows }) => {
    const answer = await server.post("/v1/api/sql", { sql }, { Authorization: `Bearer ${bob}` });
    const text = await everythingIn(answer);
    expect(hasCanary(text), text).toBe(false);
    if (rows === undefined) return;
    const { body } = await server.sql(sql, { token: bob });
    expect(body.results[0]?.rows).toEqual(rows as unknown[][]);
  });

  test.each(["SELECT 1 FROM app.vaul", "SELECT 1 FROM app.vault1", "DROP TABLE app.vaul"])(
    "bob sends %s, and does not learn the name of a table that he may not see",
    async (sql) => {
      const { body } = await server.sql(sql, { token: bob });
      expect(`${body.error?.message} ${body.error?.hint}`).not.toMatch(/vault\b/);
    },
  );

  test("bob can use a key that alice also uses", async () => {
    const { body } = await server.sql("INSERT INTO app.notes (id, title) VALUES (777, 'free')", {
      token: bob,
    });
    expect(body.status).toBe("success");
    await server.rows("DELETE FROM app.notes WHERE id = 777", { token: bob });
  });

  test("none of bob's statements has changed a row of alice", async () => {
    const rows = await server.rows("SELECT id, stars FROM app.notes ORDER BY id", { token: alice });
    expect(rows).toEqual([
      [1, 5],
      [2, 4],
      [3, 5],
      [777, 3],
      [900, 9],
    ]);
    expect(await server.rows("SELECT COUNT(*) FROM app.vault")).toEqual([[1]]);
  });
});

describe("a higher role gives no access to rows of other users", () => {
  test.each(["sam", "the administrator"])("%s sees no row of alice", async (who) => {
    const token = who === "sam" ? sam : server.token;
    const { body } = await server.sql("SELECT title FROM app.notes", { token });
    expect(body.results[0]?.rows).toEqual([]);
  });

  test("EXECUTE AS shows sam what alice sees, but nothing that her role may not see", async () => {
    const own = "EXECUTE AS USER 'alice' (SELECT COUNT(*) FROM app.notes)";
    expect(await server.rows(own, { token: sam })).toEqual([[5]]);
    const { status, body } = await server.sql("EXECUTE AS USER 'alice' (SELECT * FROM app.vault)", {
      token: sam,
    });
    expect([status, body.error?.code]).toEqual([400, "TABLE_NOT_FOUND"]);
  });
});

describe("a user who may alter a table learns nothing about its rows", () => {
  test.each([
    "ALTER TABLE app.notes ADD CONSTRAINT c CHECK (title::int > 0)",
    "ALTER TABLE app.notes ADD CONSTRAINT c CHECK (title::date IS NULL)",
    "ALTER TABLE app.notes ADD CONSTRAINT c CHECK (title::uuid IS NULL)",
    "ALTER TABLE app.notes ADD CONSTRAINT c CHECK (title = 'none')",
    "ALTER TABLE app.notes ADD CONSTRAINT c CHECK (CAST(title AS JSON) IS NOT NULL)",
  ])("%s", async (sql) => {
    const { status, body } = await server.sql(sql);
    expect(status).toBe(400);
    expect(hasCanary(JSON.stringify(body))).toBe(false);
  });

  test("the statistics of statements contain no string that a user wrote", async () => {
    const many = Array.from({ length: 80 }, (_, i) => `(${7000 + i}, '${CANARY}')`).join();
    await server.rows(`SELECT '${CANARY}', E'${CANARY}\\n', $$${CANARY}$$`, { token: alice });
    await server.rows(`INSERT INTO app.notes (id, title) VALUES ${many}`, { token: alice });
    await server.rows("DELETE FROM app.notes WHERE id >= 7000", { token: alice });
    const stats = JSON.stringify(await server.rows("SELECT sql FROM system.query_stats"));
    expect(stats).toContain("INSERT INTO app.notes (id, title) VALUES (?, ?)");
    expect(hasCanary(stats)).toBe(false);
  });
});

describe("a request that is repeated with its idempotency key", () => {
  const repeat = async (sql: string, token: string, key: string): Promise<[number, string]> => {
    const { status, body } = await server.sql(sql, { token, fields: { idempotency_key: key } });
    return [status, JSON.stringify(body)];
  };

  test("a repeated request returns its response only to its own user", async () => {
    const sql = "SELECT title FROM app.notes WHERE id = 777";
    expect(hasCanary((await repeat(sql, alice, "shared-key"))[1])).toBe(true);
    const [status, his] = await repeat(sql, bob, "shared-key");
    expect([status, hasCanary(his)]).toEqual([200, false]);
    const asHer = "EXECUTE AS USER 'alice' (SELECT title FROM app.notes WHERE id = 777)";
    expect(hasCanary((await repeat(asHer, sam, "as-alice"))[1])).toBe(true);
    const [refused, hers] = await repeat(asHer, bob, "as-alice");
    expect([refused, hasCanary(hers)]).toEqual([403, false]);
  });

  test("a repeated request is refused for a user who has lost the right to run it", async () => {
    const asked = [
      "EXECUTE AS USER 'alice' (SELECT title FROM app.notes WHERE id = 777)",
      "SELECT secret FROM app.vault",
      "INSERT INTO app.vault SELECT id + 1, secret FROM app.vault WHERE id = 1 RETURNING secret",
    ];
    let token = await server.createUser("eve", "dba");
    for (const [index, sql] of asked.entries()) {
      expect(hasCanary((await repeat(sql, token, `eve-${index}`))[1])).toBe(true);
    }
    await server.rows("ALTER USER eve SET ROLE user");
    token = (await server.login("eve")).access_token;
    for (const [index, sql] of asked.entries()) {
      const [status, text] = await repeat(sql, token, `eve-${index}`);
      // The server does not store the response to a request that changed no rows.
      expect([status, hasCanary(text)], sql).toEqual([index === 1 ? 400 : 403, false]);
    }
    // A user who regains the right gets the stored response again.
    await server.rows("ALTER USER eve SET ROLE dba");
    token = (await server.login("eve")).access_token;
    const [status, text] = await repeat(asked[2] ?? "", token, "eve-2");
    expect([status, hasCanary(text)]).toEqual([200, true]);
  });
});

describe("streamed results of bob contain nothing of alice", () => {
  test.each([
    ["everything", "SELECT * FROM app.notes", {}],
    ["from her newest row", "SELECT * FROM app.notes", { "Last-Event-ID": () => aliceSeq }],
    ["from before it", "SELECT * FROM app.notes", { "Last-Event-ID": () => aliceSeq - 1 }],
    ["from the beginning", "SELECT * FROM app.notes", { "Last-Event-ID": () => 0 }],
    ["a view", "SELECT * FROM app.titles", {}],
    ["a view that is closed to him", "SELECT * FROM app.secrets", {}],
    ["in her name", "EXECUTE AS USER 'alice' (SELECT title FROM app.notes)", {}],
  ])("%s", async (_name, sql, headers: Record<string, () => number>) => {
    const given = Object.entries(headers).map(([name, value]) => [name, String(value())]);
    const address = `${server.url}/v1/api/live?sql=${encodeURIComponent(sql)}`;
    const stop = new AbortController();
    const answer = await fetch(address, {
      headers: { Authorization: `Bearer ${bob}`, ...Object.fromEntries(given) },
      signal: stop.signal,
    });
    if (answer.status !== 200) {
      expect(hasCanary(await everythingIn(answer))).toBe(false);
      return;
    }
    await server.rows(`UPDATE app.notes SET title = '${CANARY}?' WHERE id = 2`, { token: alice });
    // Bob's change comes after alice's, so a message about her change would have arrived by now.
    await server.rows("UPDATE app.notes SET stars = 31 WHERE id = 1", { token: bob });
    await server.rows("UPDATE app.notes SET title = 'of bob, last' WHERE id = 1", { token: bob });
    let text = JSON.stringify([...answer.headers]);
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("of bob, last")) break;
    }
    stop.abort();
    await server.rows("UPDATE app.notes SET title = 'of bob' WHERE id = 1", { token: bob });
    expect(text).toContain("of bob, last");
    expect(hasCanary(text)).toBe(false);
  });
});

describe("bob cannot read the file of alice", () => {
  test.each([
    ["by its path", () => aliceFile],
    ["by its name", () => `${aliceFile}-${CANARY.slice(0, 3)}.txt`],
    ["in her name", () => `${aliceFile}?user_id=alice`],
    ["in his own name", () => `${aliceFile}?user_id=bob`],
    ["in two names", () => `${aliceFile}?user_id=bob&user_id=alice`],
    ["by the alias", () => aliceFile.replace("/v1/", "/api/v1/")],
    ["through dots", () => aliceFile.replace("/notes/", "/notes/../notes/")],
    ["through encoded dots", () => aliceFile.replace("/notes/", "/notes/%2e%2e/notes/")],
    ["through an encoded slash", () => aliceFile.replace("/f0001/", "/f0001%2f..%2ff0001/")],
    ["as a table of her name", () => aliceFile.replace("/notes/", "/notes%2falice/")],
    ["in ranges", () => aliceFile],
  ])("%s", async (_name, path) => {
    const headers = { Authorization: `Bearer ${bob}`, Range: "bytes=0-100" };
    const answer = await server.get(path(), headers);
    expect([400, 403, 404]).toContain(answer.status);
    expect(hasCanary(await everythingIn(answer))).toBe(false);
  });

  test("requests for the file of alice fail without a token and with role service", async () => {
    expect((await server.get(aliceFile)).status).toBe(401);
    const answer = await server.get(`${aliceFile}?user_id=alice`, {
      Authorization: `Bearer ${sam}`,
    });
    expect(answer.status).toBe(403);
  });
});

describe("subscriptions of bob do not reach the rows of alice", () => {
  const everything = "SELECT * FROM app.notes";

  /** Subscribes as bob, lets alice write, and returns all frames sent to bob. */
  async function framesOf(sql: string, options: Record<string, unknown> = {}): Promise<string> {
    const socket = await SocketClient.connect(server.url, { token: bob });
    await socket.expect("auth_success");
    socket.send({ type: "subscribe", subscription: { id: "s", sql, options } });
    await socket.next();
    await server.rows(`UPDATE app.notes SET stars = stars + 1, title = '${CANARY}!' WHERE id = 2`, {
      token: alice,
    });
    // Bob's change comes after alice's, so a message about her change would have arrived by now.
    await server.rows("UPDATE app.notes SET stars = stars + 1 WHERE id = 1", { token: bob });
    socket.send({ type: "ping", id: "last" });
    while ((await socket.next()).type !== "pong") continue;
    socket.close();
    return JSON.stringify(socket.frames.map(({ message }) => message));
  }

  test.each([
    ["everything", everything],
    ["her key", "SELECT title FROM app.notes WHERE id = 2"],
    ["what is true", "SELECT title FROM app.notes WHERE TRUE OR stars > 0"],
    ["a join", "SELECT n.title FROM app.notes n JOIN app.board b ON TRUE"],
    ["a subquery", "SELECT title FROM (SELECT * FROM app.notes) q"],
    ["a union", "SELECT title FROM app.notes UNION SELECT secret FROM app.vault"],
    ["in her name", "EXECUTE AS USER 'alice' (SELECT title FROM app.notes)"],
    ["a table closed to him", "SELECT secret FROM app.vault"],
    ["the users", "SELECT * FROM system.users"],
  ])("%s", async (_name, sql) => {
    expect(hasCanary(await framesOf(sql))).toBe(false);
  });

  test.each([
    ["her position", () => ({ from_seq_id: aliceSeq })],
    ["just before her newest row", () => ({ from_seq_id: aliceSeq - 1 })],
    ["the beginning", () => ({ from_seq_id: 0 })],
    ["the newest rows", () => ({ last_rows: 1000 })],
    ["the net effect", () => ({ from_seq_id: 0, replay: "latest" })],
  ])("from %s", async (_name, options) => {
    expect(hasCanary(await framesOf(everything, options()))).toBe(false);
  });

  test("bob cannot request batches of a subscription of alice", async () => {
    const hers = await SocketClient.connect(server.url, { token: alice });
    await hers.expect("auth_success");
    const subscription = { id: "hers", sql: everything, options: { batch_size: 1 } };
    hers.send({ type: "subscribe", subscription });
    await hers.expect("subscription_ack");
    const his = await SocketClient.connect(server.url, { token: bob });
    await his.expect("auth_success");
    his.send({ type: "next_batch", subscription_id: "hers" });
    expect(await his.expect("error")).toMatchObject({ code: "BATCH_FETCH_FAILED", ended: false });
    his.send({ type: "unsubscribe", subscription_id: "hers" });
    hers.send({ type: "next_batch", subscription_id: "hers" });
    await hers.expect("initial_data_batch");
    await hers.expect("initial_data_batch");
    hers.close();
    his.close();
  });
});
