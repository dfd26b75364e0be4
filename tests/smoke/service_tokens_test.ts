/**
 * Tests service tokens on the real process: the rights that they give, the requests that their
 * scopes refuse, and the ways in which they end.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { SocketClient } from "../support/client.ts";
import { type ServerProcess, type SqlBody, startReadyServer } from "../support/server_process.ts";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer();
  await server.rows("CREATE NAMESPACE app; CREATE NAMESPACE other");
  await server.rows(
    "CREATE TABLE app.items (id INT PRIMARY KEY); CREATE TABLE other.items (id INT PRIMARY KEY)",
  );
  await server.rows("CREATE USER TABLE app.notes (id INT PRIMARY KEY)");
  await server.rows("CREATE SEQUENCE app.numbers");
  await server.rows("INSERT INTO app.items VALUES (1); INSERT INTO other.items VALUES (2)");
  await server.rows("CREATE USER mailer INTERNAL ROLE service; CREATE USER ann INTERNAL");
});

afterAll(async () => {
  await server.stop();
});

let count = 0;

/** Creates a token, and returns its secret. */
async function tokenFor(user: string, clauses = "", name?: string): Promise<string> {
  count += 1;
  const [row = []] = await server.rows(
    `CREATE TOKEN ${name ?? `t${count}`} FOR USER ${user} ${clauses}`,
  );
  return String(row[1]);
}

/** Returns the code and the message with which a statement fails. */
async function failure(sql: string, token: string): Promise<[string, string]> {
  const { body } = await server.sql(sql, { token });
  const { code = "none", message = "" }: Partial<NonNullable<SqlBody["error"]>> = body.error ?? {};
  return [code, message];
}

test("CREATE TOKEN shows the secret once, and SHOW TOKENS, system.tokens and the files do not", async () => {
  const [row = []] = await server.rows(
    "CREATE TOKEN shown FOR USER mailer EXPIRES '2099-01-02T03:04:05Z' SCOPES (WRITE, NAMESPACE app, ACT)",
  );
  const secret = String(row[1]);
  expect(secret).toMatch(/^tdm_[0-9A-Za-z]{38}$/);
  expect(row).toEqual(["shown", secret, "mailer", "WRITE, ACT, NAMESPACE app", expect.anything()]);
  expect(await server.rows("SELECT 1", { token: secret })).toEqual([[1]]);
  const shown = await server.sql(
    "SHOW TOKENS; SELECT * FROM system.tokens; SELECT * FROM system.audit_log",
  );
  const text = JSON.stringify(shown.body);
  expect(text).toContain("shown");
  expect(text).not.toContain(secret);
  expect(
    await server.rows(
      "SELECT name, user_id, scopes, created_by FROM system.tokens WHERE name = 'shown'",
    ),
  ).toEqual([["shown", "mailer", "WRITE, ACT, NAMESPACE app", "ada"]]);
});

test("a token gives access to HTTP, me, and the socket as its user, and its last use is shown", async () => {
  const token = await tokenFor("mailer", "", "used");
  const lastUse = "SELECT last_used_at FROM system.tokens WHERE name = 'used'";
  expect(await server.rows(lastUse)).toEqual([[null]]);
  expect(await server.rows("SELECT CURRENT_USER, CURRENT_ROLE", { token })).toEqual([
    ["mailer", "service"],
  ]);
  expect(await server.rows(lastUse)).not.toEqual([[null]]);
  const me = await server.get("/v1/api/auth/me", { Authorization: `Bearer ${token}` });
  expect(await me.json()).toMatchObject({ user: { id: "mailer", role: "service" } });
  const socket = await SocketClient.connect(server.url, { query: "?compress=false" });
  expect(await socket.authenticate(token)).toMatchObject({ user: "mailer", role: "service" });
  socket.close();
});

test("a DROP by a token for one namespace drops and names nothing in another namespace", async () => {
  await server.rows(
    `CREATE TABLE app.base (id INT PRIMARY KEY, code INT, n INT, CONSTRAINT codes UNIQUE (code));
     CREATE INDEX plain ON app.base (n);
     CREATE SEQUENCE app.counter;
     CREATE VIEW app.near AS SELECT id FROM app.base;
     CREATE VIEW other.hidden_view AS SELECT id, n FROM app.base;
     CREATE VIEW other.hidden_second AS SELECT id FROM app.near;
     CREATE TABLE other.hidden_child (id INT PRIMARY KEY, code INT REFERENCES app.base (code));
     CREATE TABLE other.hidden_numbers (id BIGINT PRIMARY KEY DEFAULT nextval('app.counter'));
     CREATE USER definer INTERNAL ROLE dba`,
  );
  const limited = await tokenFor("definer", "SCOPES (DEFINE, READ, NAMESPACE app)");
  for (const sql of [
    "DROP TABLE app.base CASCADE",
    "DROP VIEW app.near CASCADE",
    "DROP SEQUENCE app.counter CASCADE",
    "ALTER TABLE app.base DROP COLUMN n CASCADE",
    "ALTER TABLE app.base DROP COLUMN code CASCADE",
    // Without CASCADE, other callers are told which objects depend on the dropped one.
    "DROP TABLE app.base",
    "DROP VIEW app.near",
    "DROP SEQUENCE app.counter",
    "ALTER TABLE app.base DROP COLUMN n",
    "ALTER TABLE app.base DROP COLUMN code",
    "ALTER TABLE app.base DROP CONSTRAINT codes",
  ]) {
    const [code, message] = await failure(sql, limited);
    expect(code, sql).toBe("PERMISSION_DENIED");
    expect(message).toMatch(
      /is limited to the namespaces app, and an object in another namespace depends on it$/,
    );
    expect(message).not.toContain("hidden");
  }
  expect(await server.rows("SELECT * FROM other.hidden_view")).toEqual([]);
  await server.rows(
    "DROP VIEW other.hidden_view, other.hidden_second; DROP TABLE other.hidden_child",
  );
  expect(await failure("DROP TABLE app.base CASCADE", limited)).toEqual(["none", ""]);
  // A token without scopes has all rights of its user's role.
  expect(await failure("DROP SEQUENCE app.counter CASCADE", await tokenFor("definer"))).toEqual([
    "none",
    "",
  ]);
});

test("DEFINE covers policies, but only in the token's namespaces", async () => {
  for (const namespace of ["app", "other"]) {
    await server.rows(
      `CREATE TABLE ${namespace}.ruled (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED')`,
    );
  }
  await server.rows("CREATE USER ruler INTERNAL ROLE dba");
  const define = await tokenFor("ruler", "SCOPES (DEFINE, READ, NAMESPACE app)");
  const write = await tokenFor("ruler", "SCOPES (WRITE, NAMESPACE app)");
  const policy = (namespace: string): string =>
    `CREATE POLICY p ON ${namespace}.ruled FOR SELECT USING (true)`;
  expect((await failure(policy("app"), write))[0]).toBe("PERMISSION_DENIED");
  expect((await failure(policy("other"), define))[0]).toBe("PERMISSION_DENIED");
  expect(await failure(policy("app"), define)).toEqual(["none", ""]);
  expect(await failure("DROP POLICY p ON app.ruled", define)).toEqual(["none", ""]);
});

test("a token has the claims of its user, and policies of RESTRICTED tables apply to it", async () => {
  await server.rows(
    `CREATE TABLE app.mail (id INT PRIMARY KEY, who TEXT) WITH (ACCESS_LEVEL = 'RESTRICTED');
     INSERT INTO app.mail VALUES (1, 'ann'), (2, 'bob');
     CREATE POLICY own ON app.mail FOR SELECT USING (who = CLAIM('sub'))`,
  );
  const [own, limited] = [
    await tokenFor("ann"),
    await tokenFor("ann", "SCOPES (READ, NAMESPACE other)"),
  ];
  expect(await server.rows("SELECT id FROM app.mail", { token: own })).toEqual([[1]]);
  expect((await failure("SELECT id FROM app.mail", limited))[0]).toBe("TABLE_NOT_FOUND");
});

test("a token survives a restart, with its last use", async () => {
  const token = await tokenFor("mailer", "", "kept");
  await server.rows("SELECT 1", { token });
  await server.restart();
  expect(await server.rows("SELECT CURRENT_USER", { token })).toEqual([["mailer"]]);
});

test.each([
  ["SELECT id FROM app.items", "none", ""],
  ["INSERT INTO app.items VALUES (10)", "PERMISSION_DENIED", "lacks the scope WRITE"],
  ["DELETE FROM app.notes", "PERMISSION_DENIED", "lacks the scope WRITE"],
  ["CREATE TABLE app.more (id INT PRIMARY KEY)", "PERMISSION_DENIED", "lacks the scope DEFINE"],
  ["ALTER TABLE app.items ADD COLUMN n INT", "PERMISSION_DENIED", "lacks the scope DEFINE"],
  ["EXECUTE AS USER ann (SELECT 1)", "PERMISSION_DENIED", "lacks the scope ACT"],
  ["STORAGE FLUSH TABLE app.items", "PERMISSION_DENIED", "lacks the scope WRITE"],
  ["UPDATE app.items SET id = 2 WHERE id = 1", "PERMISSION_DENIED", "lacks the scope WRITE"],
  ["TRUNCATE app.items", "PERMISSION_DENIED", "lacks the scope WRITE"],
  [
    "MERGE INTO app.items AS a USING other.items AS b ON a.id = b.id WHEN MATCHED THEN DELETE",
    "PERMISSION_DENIED",
    "lacks the scope WRITE",
  ],
  [
    "WITH gone AS (DELETE FROM app.notes RETURNING id) SELECT * FROM gone",
    "PERMISSION_DENIED",
    "lacks the scope WRITE",
  ],
  ["BEGIN; INSERT INTO app.items VALUES (3); COMMIT", "PERMISSION_DENIED", "lacks the scope WRITE"],
  ["SELECT nextval('app.numbers')", "PERMISSION_DENIED", "Cannot get values from sequence"],
  ["CREATE INDEX items_ids ON app.items (id)", "PERMISSION_DENIED", "lacks the scope DEFINE"],
  ["COMMENT ON TABLE app.items IS 'x'", "PERMISSION_DENIED", "lacks the scope DEFINE"],
  ["CREATE SEQUENCE app.more", "PERMISSION_DENIED", "lacks the scope DEFINE"],
  [
    "CREATE TABLE app.copied AS SELECT id FROM app.items",
    "PERMISSION_DENIED",
    "lacks the scope DEFINE",
  ],
  ["CONSUME FROM app.nothing", "PERMISSION_DENIED", "lacks the scope WRITE"],
])("a token with the scope READ: %s", async (sql, code, message) => {
  const token = await tokenFor("mailer", "SCOPES (READ)");
  const [found, said] = await failure(sql, token);
  expect([found, said]).toEqual([code, expect.stringContaining(message)]);
});

test("a token with the scope READ may copy rows out, but not in", async () => {
  const token = await tokenFor("mailer", "SCOPES (READ)");
  const copy = async (sql: string): Promise<number> => {
    const url = `${server.url}/v1/api/copy?sql=${encodeURIComponent(sql)}`;
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(url, { method: "POST", headers, body: "9\n" })).status;
  };
  expect(await copy("COPY app.items TO STDOUT")).toBe(200);
  expect(await copy("COPY app.items FROM STDIN")).toBe(403);
  expect(await server.rows("SELECT id FROM app.items WHERE id = 9")).toEqual([]);
});

test("an administrator's token with scopes cannot manage accounts, running work or topics", async () => {
  const token = await tokenFor("ada", "SCOPES (WRITE, DEFINE, ACT)");
  for (const sql of [
    "CREATE USER eve WITH PASSWORD 'correct horse 9'",
    "ALTER USER ann SET ROLE dba",
    "ALTER USER ada SET PASSWORD 'correct horse 8'",
    "DROP USER ann",
    "CREATE TOKEN more FOR USER ada",
    "SHOW TOKENS",
    "DROP TOKEN shown",
    "CREATE INVITATION open",
    "KILL CONNECTION 'ws-1'",
    "CREATE TOPIC app.feed",
    "BACKUP DATABASE TO '/tmp/x'",
  ]) {
    const [code] = await failure(sql, token);
    expect([sql, code]).toEqual([sql, "PERMISSION_DENIED"]);
  }
  expect(await failure("CREATE NAMESPACE made", token)).toEqual(["none", ""]);
  expect(await failure("DROP NAMESPACE made", token)).toEqual(["none", ""]);
});

test("a token that is limited to a namespace sees no other namespace, and the error says why", async () => {
  const token = await tokenFor("ada", "SCOPES (WRITE, DEFINE, NAMESPACE app)", "narrow");
  expect(await server.rows("SELECT id FROM app.items", { token })).toContainEqual([1]);
  const { body } = await server.sql("SELECT id FROM other.items", { token });
  const missing = await server.sql("SELECT id FROM other.nothing", { token });
  const limit = expect.stringContaining("The token narrow is limited to the namespaces app");
  expect(body.error).toMatchObject({ code: "TABLE_NOT_FOUND", hint: limit });
  expect(missing.body.error).toMatchObject({ code: "TABLE_NOT_FOUND", hint: limit });
  const listed = "SELECT table_schema FROM information_schema.tables WHERE table_name = 'items'";
  expect(await server.rows(listed, { token })).toEqual([["app"]]);
  expect(await server.rows(listed)).toHaveLength(2);
  for (const sql of [
    "CREATE TABLE other.more (id INT PRIMARY KEY)",
    "CREATE VIEW other.seen AS SELECT 1 AS n",
    "CREATE NAMESPACE third",
    "SELECT * FROM system.users",
    "SHOW ALL",
  ]) {
    const [code, message] = await failure(sql, token);
    expect([sql, code, message]).toEqual([
      sql,
      "PERMISSION_DENIED",
      expect.stringContaining("token narrow is limited to the namespaces app"),
    ]);
  }
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  socket.send({ type: "subscribe", subscription: { id: "a", sql: "SELECT * FROM other.items" } });
  expect(await socket.expect("error")).toMatchObject({ code: "NOT_FOUND", ended: true });
  socket.close();
});

test("a token does not get the plan of a query that its user follows with a wider token", async () => {
  const sql = "SELECT id FROM other.items";
  const [wide, narrow] = [
    await tokenFor("ada"),
    await tokenFor("ada", "SCOPES (READ, NAMESPACE app)"),
  ];
  const connected = async (token: string): Promise<SocketClient> => {
    const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
    await socket.expect("auth_success");
    socket.send({ type: "subscribe", subscription: { id: "a", sql } });
    return socket;
  };
  const open = await connected(wide);
  await open.expect("subscription_ack");
  const limited = await connected(narrow);
  expect(await limited.expect("error")).toMatchObject({ code: "NOT_FOUND", ended: true });
  limited.close();
  open.close();
});

test("a token that is limited to a namespace cannot read the views of another", async () => {
  await server.rows(
    `CREATE VIEW other.constants AS SELECT 'a secret' AS words;
     CREATE VIEW other.of_app AS SELECT id, 'a secret' AS words FROM app.items;
     CREATE VIEW app.over AS SELECT words FROM other.constants;
     CREATE VIEW app.own AS SELECT id FROM app.items`,
  );
  const token = await tokenFor("ada", "SCOPES (READ, NAMESPACE app)");
  const queries = [
    "SELECT * FROM other.constants",
    "SELECT id FROM app.items WHERE EXISTS (SELECT 1 FROM other.of_app)",
    "SELECT * FROM app.over",
    "DESCRIBE other.of_app",
    "SUBSCRIBE TO SELECT * FROM other.of_app",
  ];
  for (const sql of queries) {
    // The token is refused even if a plan for the query has been cached for another caller.
    await server.rows(sql);
    expect((await failure(sql, token))[0], sql).toBe("TABLE_NOT_FOUND");
    expect((await failure(sql, token))[0], sql).toBe("TABLE_NOT_FOUND");
  }
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  const sql = "SELECT id FROM other.of_app";
  socket.send({ type: "subscribe", subscription: { id: "a", sql } });
  expect(await socket.expect("error")).toMatchObject({ code: "NOT_FOUND", ended: true });
  socket.close();
  const listed =
    "SELECT table_name FROM information_schema.views WHERE table_name IN ('constants', 'of_app', 'over', 'own') ORDER BY 1";
  expect(await server.rows(listed, { token })).toEqual([["own"]]);
  expect(await server.rows(listed)).toEqual([["constants"], ["of_app"], ["over"], ["own"]]);
  const namespaces = (await server.rows("SHOW NAMESPACES", { token })).map(([name]) => name);
  expect(namespaces).toContain("app");
  expect(namespaces).not.toContain("other");
  await server.rows("DROP VIEW app.over, app.own, other.of_app, other.constants");
});

test("a token that is limited to a namespace reads there what the owner of a view shows", async () => {
  await server.rows(
    `CREATE TABLE other.secrets (id INT PRIMARY KEY, words TEXT); INSERT INTO other.secrets VALUES (1, 'a secret');
     CREATE USER TABLE other.own_rows (id INT PRIMARY KEY);
     CREATE VIEW app.shown WITH (security_invoker = false) AS SELECT id FROM other.secrets;
     CREATE VIEW other.of_other WITH (security_invoker = false) AS SELECT id FROM other.secrets;
     CREATE VIEW app.of_user WITH (security_invoker = false) AS SELECT id FROM other.own_rows;
     CREATE VIEW app.plain AS SELECT id FROM other.secrets;
     CREATE USER viewer INTERNAL ROLE dba`,
  );
  const token = await tokenFor("viewer", "SCOPES (READ, DEFINE, NAMESPACE app)");
  expect(await server.rows("SELECT * FROM app.shown", { token })).toEqual([[1]]);
  for (const name of ["other.of_other", "app.of_user", "app.plain"]) {
    const sql = `SELECT * FROM ${name}`;
    await server.rows(sql);
    expect((await failure(sql, token))[0], sql).toBe("TABLE_NOT_FOUND");
  }
  const take = "SET (security_invoker = false)";
  for (const sql of [
    `ALTER VIEW app.plain ${take}`,
    `ALTER VIEW app.shown ${take}`,
    `ALTER VIEW other.of_other ${take}`,
    "CREATE VIEW app.more WITH (security_invoker = false) AS SELECT words FROM other.secrets",
  ]) {
    const code = sql.startsWith("CREATE") ? "TABLE_NOT_FOUND" : "PERMISSION_DENIED";
    expect((await failure(sql, token))[0], sql).toBe(code);
  }
  await server.rows("DROP VIEW app.shown, app.of_user, app.plain, other.of_other");
});

test("a token that is limited to a namespace cannot consume a topic with rows of another namespace", async () => {
  await server.rows(
    "CREATE TABLE other.parcels (id INT PRIMARY KEY); CREATE TOPIC app.parcels; " +
      "ALTER TOPIC app.parcels ADD SOURCE other.parcels ON INSERT; INSERT INTO other.parcels VALUES (41)",
  );
  const wide = await tokenFor("mailer", "SCOPES (WRITE)");
  const token = await tokenFor("mailer", "SCOPES (WRITE, NAMESPACE app)");
  const consume = "CONSUME FROM app.parcels FROM EARLIEST LIMIT 5";
  expect(await failure(consume, wide)).toEqual(["none", ""]);
  const [code, message] = await failure(consume, token);
  expect(code).toBe("PERMISSION_DENIED");
  expect(message).toContain("is limited to the namespaces app");
  const answer = await server.post(
    "/v1/api/topics/consume",
    { topic_id: "app.parcels", group_id: "g", start: "Earliest" },
    { Authorization: `Bearer ${token}` },
  );
  expect(answer.status).toBe(403);
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  socket.send({ type: "consume", id: "c", topic_id: "app.parcels", group_id: "g" });
  expect(await socket.expect("topic_error")).toMatchObject({ code: "FORBIDDEN" });
  socket.close();
});

test("a token that is limited to a namespace consumes only its topics, over SQL, HTTP and the socket", async () => {
  await server.rows("CREATE TOPIC app.feed; CREATE TOPIC other.feed");
  const token = await tokenFor("mailer", "SCOPES (WRITE, NAMESPACE app)");
  const bearer = { Authorization: `Bearer ${token}` };
  const request = (topic: string): object => ({
    topic_id: topic,
    group_id: "g",
    start: "Earliest",
  });
  expect((await server.post("/v1/api/topics/consume", request("app.feed"), bearer)).status).toBe(
    200,
  );
  expect((await server.post("/v1/api/topics/consume", request("other.feed"), bearer)).status).toBe(
    403,
  );
  const ack = { topic_id: "other.feed", group_id: "g", upto_offset: 0 };
  expect((await server.post("/v1/api/topics/ack", ack, bearer)).status).toBe(403);
  expect(await failure("CONSUME FROM app.feed", token)).toEqual(["none", ""]);
  expect((await failure("CONSUME FROM other.feed", token))[0]).toBe("PERMISSION_DENIED");
  const socket = await SocketClient.connect(server.url, { token, query: "?compress=false" });
  await socket.expect("auth_success");
  socket.send({ type: "consume", id: "c", topic_id: "other.feed", group_id: "g" });
  expect(await socket.expect("topic_error")).toMatchObject({ code: "FORBIDDEN" });
  socket.close();
});

test("EXECUTE AS by a token with ACT keeps the token's other scopes", async () => {
  const token = await tokenFor("mailer", "SCOPES (READ, ACT)");
  expect(await server.rows("EXECUTE AS USER ann (SELECT CURRENT_USER)", { token })).toEqual([
    ["ann"],
  ]);
  const [code, message] = await failure(
    "EXECUTE AS USER ann (INSERT INTO app.notes VALUES (1))",
    token,
  );
  expect([code, message]).toEqual([
    "PERMISSION_DENIED",
    expect.stringContaining("lacks the scope WRITE"),
  ]);
});

test("DROP TOKEN ends its sockets and refuses the token, but leaves other sessions of the user open", async () => {
  const dropped = await tokenFor("mailer", "", "dropped");
  const other = await tokenFor("mailer");
  const sockets = await Promise.all(
    [dropped, other].map((token) => SocketClient.connect(server.url, { token })),
  );
  for (const socket of sockets) await socket.expect("auth_success");
  await server.rows("DROP TOKEN dropped");
  expect(await sockets[0]?.expect("error")).toMatchObject({ code: "TOKEN_REVOKED", ended: true });
  expect(await sockets[0]?.closed()).toMatchObject({ code: 1008 });
  const refused = await server.sql("SELECT 1", { token: dropped });
  expect([refused.status, refused.body.error?.code]).toEqual([401, "INVALID_CREDENTIALS"]);
  sockets[1]?.send({ type: "ping", id: "p" });
  expect(await sockets[1]?.expect("pong")).toMatchObject({ id: "p" });
  sockets[1]?.close();
  expect(await failure("DROP TOKEN dropped", server.token ?? "")).toEqual([
    "SQL_EXECUTION_ERROR",
    expect.stringContaining('Cannot find token "dropped"'),
  ]);
  expect((await server.sql("DROP TOKEN IF EXISTS dropped")).body.error).toBeUndefined();
});

test("a token follows the role of its user, and ends with the user even if the name is used again", async () => {
  await server.rows("CREATE USER rob INTERNAL ROLE service");
  const token = await tokenFor("rob");
  await server.rows("ALTER USER rob SET ROLE user");
  expect(await server.rows("SELECT CURRENT_ROLE", { token })).toEqual([["user"]]);
  await server.rows("DROP USER rob");
  expect((await server.sql("SELECT 1", { token })).status).toBe(401);
  await server.rows("CREATE USER rob INTERNAL ROLE service");
  expect((await server.sql("SELECT 1", { token })).status).toBe(401);
});

test("a wrong token, a truncated one and one with a typing error get the same refusal", async () => {
  const token = await tokenFor("mailer");
  const last = token.endsWith("0") ? "1" : "0";
  for (const wrong of [
    token.slice(0, -1),
    token.slice(0, -1) + last,
    `tdm_${"a".repeat(38)}`,
    "tdm_",
  ]) {
    const { body, status } = await server.sql("SELECT 1", { token: wrong });
    expect([status, body.error?.code]).toEqual([401, "INVALID_CREDENTIALS"]);
  }
});

test.each([
  ["CREATE TOKEN a-b FOR USER ann", "INVALID_SQL"],
  ['CREATE TOKEN "a b" FOR USER ann', 'Cannot use "a b" as a token name'],
  ["CREATE TOKEN x FOR USER nobody", "there is no user nobody"],
  ["CREATE TOKEN used FOR USER ann", "Cannot create token used: it already exists"],
  ["CREATE TOKEN x FOR USER ann EXPIRES '2001-01-01'", "its expiry time is in the past"],
  ["CREATE TOKEN x FOR USER ann EXPIRES IN '-1 day'", "its expiry time is in the past"],
  ["CREATE TOKEN x FOR USER ann EXPIRES 'soon'", "soon"],
  ["CREATE TOKEN x FOR USER ann SCOPES (ACT)", "SCOPES must contain READ, or WRITE"],
  ["CREATE TOKEN x FOR USER ann SCOPES (READ, ALL)", 'Cannot use the scope "all"'],
  ["CREATE TOKEN x FOR USER ann SCOPES (READ, NAMESPACE nowhere)", "Cannot find namespace nowhere"],
  ["CREATE TOKEN x FOR USER ann SCOPES (READ) SCOPES (WRITE)", "found a second SCOPES"],
])("%s is refused, and makes no token", async (sql, part) => {
  const { body } = await server.sql(sql);
  expect(JSON.stringify(body.error)).toContain(part.replaceAll('"', '\\"'));
  expect(await server.rows("SELECT count(*) FROM system.tokens WHERE name = 'x'")).toEqual([[0]]);
});

test("only role dba creates tokens, and only role system creates those of role system", async () => {
  const token = await tokenFor("mailer");
  expect((await failure("CREATE TOKEN y FOR USER mailer", token))[0]).toBe("PERMISSION_DENIED");
  expect((await failure("CREATE TOKEN y FOR USER CURRENT_USER", token))[0]).toBe(
    "PERMISSION_DENIED",
  );
  expect((await failure("SHOW TOKENS", token))[0]).toBe("PERMISSION_DENIED");
  expect((await failure("CREATE TOKEN y FOR USER root", server.token ?? ""))[0]).toBe(
    "PERMISSION_DENIED",
  );
});
