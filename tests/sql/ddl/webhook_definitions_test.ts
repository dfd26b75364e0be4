/** Tests CREATE, ALTER, DROP and SHOW for webhooks: names, options, rights, and side effects. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import { TestEngine } from "../../support/sql_engine.ts";

let engine: TestEngine;

beforeAll(async () => {
  engine = await TestEngine.open({ config: '[security]\nwebhook_hosts = ["localhost"]' });
  await engine.run(`
    CREATE NAMESPACE app;
    CREATE USER sam INTERNAL ROLE service;
    CREATE USER dora INTERNAL ROLE dba;
    CREATE TOPIC app.t;
    CREATE TOPIC app.other`);
});
afterAll(() => engine[Symbol.asyncDispose]());
beforeEach(() => {
  engine.userId = "root";
});

const CREATE = "CREATE WEBHOOK w FROM TOPIC app.t URL 'http://localhost:1/'";
const webhooksOf = (name: string) => engine.database.catalog.topic("app", name)?.webhooks ?? [];

test("CREATE WEBHOOK stores its options in the topic, and DROP WEBHOOK removes them", async () => {
  engine.userId = "dora";
  const [created] = await engine.run(`${CREATE} SECRET 'sixteen letters!'
    WITH (ORDERED = true, START = 'earliest', TIMEOUT_SECS = 60, CONCURRENCY = '64')`);
  expect(created?.message).toBe("Webhook w created");
  expect(webhooksOf("t")).toMatchObject([
    {
      name: "w",
      url: "http://localhost:1/",
      secret: "sixteen letters!",
      isOrdered: true,
      start: "earliest",
      timeoutSecs: 60,
      concurrency: 64,
      createdBy: "dora",
    },
  ]);
  const [again] = await engine.run(CREATE.replace("WEBHOOK", "WEBHOOK IF NOT EXISTS"));
  expect(again?.message).toBe("Webhook w already exists");
  await engine.run("ALTER TOPIC app.t SET (RETENTION_HOURS = 5)");
  expect(webhooksOf("t")).toHaveLength(1);
  const [dropped] = await engine.run("DROP WEBHOOK w");
  expect(dropped?.message).toBe("Webhook w of topic app.t dropped");
  expect(engine.database.catalog.topic("app", "t")).not.toHaveProperty("webhooks");
  const [missing] = await engine.run("DROP WEBHOOK IF EXISTS w");
  expect(missing?.message).toBe("Webhook w does not exist");
});

test("ALTER WEBHOOK changes only what it names, and keeps the position", async () => {
  await engine.run(`${CREATE} SECRET 'sixteen letters!' WITH (START = 'earliest')`);
  const [before] = webhooksOf("t");
  await engine.run("ALTER WEBHOOK w SET URL 'http://localhost:2/'");
  await engine.run("ALTER WEBHOOK w SET SECRET 'sixteen numbers!'");
  const [altered] = await engine.run("ALTER WEBHOOK w SET (CONCURRENCY = 1, ORDERED = true)");
  expect(altered?.message).toBe("Webhook w altered");
  expect(webhooksOf("t")).toEqual([
    {
      ...defined(before, "the webhook must exist"),
      url: "http://localhost:2/",
      secret: "sixteen numbers!",
      concurrency: 1,
      isOrdered: true,
    },
  ]);
  await engine.run("ALTER WEBHOOK w DROP SECRET");
  expect(webhooksOf("t")[0]).not.toHaveProperty("secret");
  await engine.run("DROP WEBHOOK w");
});

test.each<[string, string]>([
  ["CREATE WEBHOOK taken FROM TOPIC app.other URL 'http://localhost:1/'", "ALREADY_EXISTS"],
  [CREATE.replace(" w ", ' "a b" '), "INVALID_NAME"],
  [CREATE.replace("app.t", "app.none"), "OBJECT_NOT_FOUND"],
  [CREATE.replace("localhost", "example.com"), "PERMISSION_DENIED"],
  [CREATE.replace("localhost:1/", "localhost:1/#top"), "INVALID_OPTION"],
  [CREATE.replace("localhost:1/", `localhost:1/${"x".repeat(2048)}`), "INVALID_OPTION"],
  [`${CREATE} SECRET 'fifteen letters'`, "INVALID_OPTION"],
  [`${CREATE} SECRET '${"x".repeat(257)}'`, "INVALID_OPTION"],
  [`${CREATE} WITH (TIMEOUT_SECS = 0)`, "INVALID_OPTION"],
  [`${CREATE} WITH (TIMEOUT_SECS = 61)`, "INVALID_OPTION"],
  [`${CREATE} WITH (CONCURRENCY = 65)`, "INVALID_OPTION"],
  [`${CREATE} WITH (ORDERED = 'maybe')`, "INVALID_OPTION"],
  [`${CREATE} WITH (START = 'latest')`, "INVALID_OPTION"],
  [`${CREATE} WITH (COLOUR = 'red')`, "INVALID_OPTION"],
  [`${CREATE} WITH (ORDERED = true, ordered = false)`, "INVALID_OPTION"],
  ["CREATE WEBHOOK w FROM app.t URL 'http://localhost:1/'", "INVALID_SQL"],
  ["CREATE WEBHOOK w FROM TOPIC app.t", "INVALID_SQL"],
  ["DROP WEBHOOK token", "OBJECT_NOT_FOUND"],
  ["ALTER WEBHOOK token SET URL 'http://localhost:1/'", "OBJECT_NOT_FOUND"],
  ["ALTER WEBHOOK taken SET URL 'http://example.com/'", "PERMISSION_DENIED"],
  ["ALTER WEBHOOK taken SET URL 'ftp://localhost/'", "INVALID_OPTION"],
  ["ALTER WEBHOOK taken SET SECRET 'fifteen letters'", "INVALID_OPTION"],
  ["ALTER WEBHOOK taken SET (START = 'earliest')", "INVALID_OPTION"],
  ["ALTER WEBHOOK taken SET (CONCURRENCY = 0)", "INVALID_OPTION"],
  ["ALTER WEBHOOK taken DROP URL", "INVALID_SQL"],
  ["DROP TOPIC app.t", "DEPENDENT_OBJECTS"],
])("%s is refused", async (sql, code) => {
  await engine.run(CREATE.replace("WEBHOOK w", "WEBHOOK IF NOT EXISTS taken"));
  expect(await engine.failure(sql)).toStartWith(code);
  expect(webhooksOf("t")).toHaveLength(1);
});

test("statements about webhooks require role dba, and no message repeats a secret", async () => {
  engine.userId = "sam";
  const alter = "ALTER WEBHOOK taken DROP SECRET";
  for (const sql of [CREATE, alter, "DROP WEBHOOK taken", "SHOW WEBHOOKS"]) {
    expect(await engine.failure(sql)).toStartWith("PERMISSION_DENIED");
  }
  engine.userId = "root";
  const { error } = await engine.ask(`${CREATE} SECRET 'tiny secret'`);
  expect(error?.code).toBe("INVALID_OPTION");
  expect(error?.message).not.toContain("tiny");
});

test("DROP NAMESPACE CASCADE drops topics with their webhooks", async () => {
  await engine.run(`
    CREATE NAMESPACE gone;
    CREATE TOPIC gone.t;
    CREATE WEBHOOK leaving FROM TOPIC gone.t URL 'http://localhost:1/'`);
  await engine.run("DROP NAMESPACE gone CASCADE");
  const [shown] = await engine.run("SHOW WEBHOOKS");
  expect(JSON.stringify(shown)).not.toContain("leaving");
  expect(engine.database.webhooks.states().map(({ lagMessages }) => lagMessages)).toEqual(
    engine.database.webhooks.states().map(() => 0),
  );
});
