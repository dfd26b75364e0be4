/**
 * Verifies every cell of the table "Who may do what" in docs/auth.md. Each row has statements that
 * run as each of the five callers on a real server, and the outcome determines what the cell must
 * say. A row without statements fails, and so do statements without a row.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { ROOT } from "./snippets.ts";

/** The callers in column order. The last one has the role `user` and owns the namespace `shop`. */
const CALLERS = ["usual", "servant", "admin", "root", "owner"] as const;

/** The name of a user of each role, for rows of the table whose cells list roles. */
const TARGETS = { user: "target_u", service: "target_s", dba: "target_d", system: "root" } as const;

/** The error codes that a caller without the required right gets. */
const REFUSALS: ReadonlySet<string> = new Set(["PERMISSION_DENIED", "TABLE_NOT_FOUND"]);

const backups = mkdtempSync(join(tmpdir(), "tidemark-backups-"));

let server: ServerProcess;
const tokens = new Map<string, string>();
let count = 0;

beforeAll(async () => {
  server = await startReadyServer({ config: { storage: { allowed_roots: [backups] } } });
  tokens.set("root", (await server.login("root", "battery staple 7")).access_token);
  for (const [user, role] of [
    ["usual", "user"],
    ["servant", "service"],
    ["admin", "dba"],
    ["owner", "user"],
    ["target_u", "user"],
    ["target_s", "service"],
    ["target_d", "dba"],
  ] as const) {
    tokens.set(user, await server.createUser(user, role));
  }
  await server.rows(
    "CREATE NAMESPACE shop AUTHORIZATION owner; " +
      "CREATE USER TABLE shop.baskets (id INT PRIMARY KEY); " +
      "CREATE STREAM TABLE shop.steps (id INT PRIMARY KEY) WITH (TTL_SECONDS = 600); " +
      "CREATE STREAM TABLE shop.signs (id INT PRIMARY KEY) WITH (TTL_SECONDS = 600, ACCESS_LEVEL = 'PUBLIC'); " +
      "CREATE TOPIC shop.news",
  );
  for (const level of ["PUBLIC", "PRIVATE", "RESTRICTED", "DBA"]) {
    await server.rows(
      `CREATE TABLE shop.${level} (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = '${level}'); ` +
        `INSERT INTO shop.${level} VALUES (1), (2)`,
    );
  }
  await server.rows(
    "CREATE VIEW shop.shown WITH (security_invoker = false) AS SELECT id FROM shop.DBA",
  );
  await server.rows("CREATE POLICY first ON shop.RESTRICTED USING (id = 1)");
});

afterAll(async () => {
  await server.stop();
  rmSync(backups, { recursive: true });
});

/** Returns a name that no other statement has used. */
function fresh(): string {
  count += 1;
  return `x${count}`;
}

/**
 * Runs a statement as a caller.
 * @returns Whether the caller has the right.
 * @throws If the statement fails for any other reason.
 */
async function isPermitted(caller: string, sql: string): Promise<boolean> {
  const { body } = await server.sql(sql, { token: tokens.get(caller) ?? "" });
  // Rights are checked before the object is looked up, so this error proves that the caller has
  // the right.
  if (body.error === undefined || body.error.reason === "object_not_found") return true;
  if (REFUSALS.has(body.error.code)) return false;
  throw new Error(`${caller} gets ${JSON.stringify(body.error)} for ${sql}`);
}

/**
 * Returns the word that a cell of the table must contain if the caller may run either all or none
 * of the statements.
 */
async function allOrNone(caller: string, statements: readonly string[]): Promise<string> {
  const outcomes: boolean[] = [];
  for (const sql of statements) outcomes.push(await isPermitted(caller, sql));
  if (outcomes.every(Boolean)) return "yes";
  return outcomes.some(Boolean) ? `some: ${outcomes.join()}` : "no";
}

/**
 * Returns the text that a cell of the table must contain if the right depends on the role of the
 * affected user.
 */
async function byRole(
  caller: string,
  statementFor: (user: string, role: string) => string | Promise<string>,
): Promise<string> {
  const permitted: string[] = [];
  for (const [role, user] of Object.entries(TARGETS)) {
    if (await isPermitted(caller, await statementFor(user, role))) permitted.push(role);
  }
  if (permitted.length === 0) return "no";
  if (permitted.length === 4) return "all";
  const isAllButSystem = permitted.join() === "user,service,dba";
  return isAllButSystem ? "all but `system`" : permitted.map((role) => `\`${role}\``).join(", ");
}

async function onRestricted(caller: string): Promise<string> {
  const token = tokens.get(caller) ?? "";
  const [[seen] = []] = await server.rows("SELECT count(*) FROM shop.RESTRICTED WHERE id <= 2", {
    token,
  });
  const written = await isPermitted(
    caller,
    `INSERT INTO shop.RESTRICTED VALUES (${1000 + count++})`,
  );
  if (seen === 1 && !written) return "by policies";
  return seen === 2 && written ? "yes" : `sees ${String(seen)}, writes ${written}`;
}

const read = (level: string): string => `SELECT * FROM shop.${level}`;
const write = (level: string): string => `INSERT INTO shop.${level} VALUES (${1000 + count++})`;

/**
 * Creates an object as an administrator.
 * @returns The object's name.
 */
async function made(definition: (name: string) => string): Promise<string> {
  const name = fresh();
  await server.rows(definition(name));
  return name;
}

/**
 * For each row of the table, keyed by its first words, a function that runs the row's statements
 * as a caller and returns the text that the caller's cell must contain.
 */
const ROWS: Readonly<Record<string, (caller: string) => Promise<string>>> = {
  "read and write one's own rows of `USER` tables": (caller) =>
    allOrNone(caller, [
      "INSERT INTO shop.baskets VALUES (1) ON CONFLICT (id) DO NOTHING",
      "SELECT * FROM shop.baskets",
      write("steps"),
      read("steps"),
    ]),
  "[export](#ones-own-data) one's own rows and files": (caller) =>
    allOrNone(caller, ["EXPORT USER DATA", "SHOW EXPORT"]),
  "read a `SHARED` or `STREAM` table of level `PUBLIC`": (caller) =>
    allOrNone(caller, [read("PUBLIC"), read("signs")]),
  "write a table of level `PUBLIC`": (caller) =>
    allOrNone(caller, [write("PUBLIC"), write("signs")]),
  "read and write a table of level `PRIVATE`": (caller) =>
    allOrNone(caller, [read("PRIVATE"), write("PRIVATE")]),
  "read and write a table of level `RESTRICTED`": onRestricted,
  "read and write a table of level `DBA`": (caller) =>
    allOrNone(caller, [read("DBA"), write("DBA")]),
  "read a view of level `PRIVATE` with the [rights of its owner]": (caller) =>
    allOrNone(caller, ["SELECT * FROM shop.shown"]),
  "read [earlier states]": (caller) =>
    allOrNone(caller, [
      "SELECT * FROM shop.PUBLIC FOR SYSTEM_TIME AS OF now()",
      "SELECT * FROM shop.signs FOR SYSTEM_TIME AS OF now()",
    ]),
  "create tables, indexes, sequences and types": async (caller) => {
    const table = await made((name) => `CREATE TABLE shop.${name} (id INT PRIMARY KEY, n INT)`);
    return await allOrNone(caller, [
      `CREATE TABLE shop.${fresh()} (id INT PRIMARY KEY)`,
      `CREATE INDEX ${fresh()} ON shop.${table} (n)`,
      `CREATE SEQUENCE shop.${fresh()}`,
      `CREATE TYPE shop.${fresh()} AS ENUM ('a')`,
    ]);
  },
  "alter a table of level `PUBLIC` or `PRIVATE`": (caller) =>
    allOrNone(caller, [
      `ALTER TABLE shop.PUBLIC ADD COLUMN ${fresh()} INT`,
      `ALTER TABLE shop.PRIVATE ADD COLUMN ${fresh()} INT`,
    ]),
  "alter a table of level `RESTRICTED` or `DBA`": (caller) =>
    allOrNone(caller, [
      `ALTER TABLE shop.RESTRICTED ADD COLUMN ${fresh()} INT`,
      `ALTER TABLE shop.DBA ADD COLUMN ${fresh()} INT`,
      `CREATE POLICY ${fresh()} ON shop.RESTRICTED USING (id = 1)`,
    ]),
  "drop tables, and define views": async (caller) => {
    const table = await made((name) => `CREATE TABLE shop.${name} (id INT PRIMARY KEY)`);
    return await allOrNone(caller, [
      `DROP TABLE shop.${table}`,
      `CREATE VIEW shop.${fresh()} AS SELECT id FROM shop.PUBLIC`,
    ]);
  },
  "create and drop namespaces": async (caller) => {
    const empty = await made((name) => `CREATE NAMESPACE ${name}`);
    return await allOrNone(caller, [`CREATE NAMESPACE ${fresh()}`, `DROP NAMESPACE ${empty}`]);
  },
  "act for users": (caller) => byRole(caller, (user) => `EXECUTE AS USER '${user}' (SELECT 1)`),
  "create users": (caller) =>
    byRole(caller, (_user, role) => `CREATE USER '${fresh()}' INTERNAL ROLE ${role}`),
  "change users": (caller) => byRole(caller, (user) => `ALTER USER '${user}' SET METADATA '{}'`),
  "make service tokens": (caller) =>
    byRole(caller, (user) => `CREATE TOKEN ${fresh()} FOR USER '${user}'`),
  "make invitations": (caller) => allOrNone(caller, [`CREATE INVITATION ${fresh()}`]),
  "work through [topics]": (caller) =>
    allOrNone(caller, [
      "CONSUME FROM shop.news GROUP 'g'",
      "STORAGE FLUSH TABLE shop.PUBLIC",
      "STORAGE COMPACT TABLE shop.PUBLIC",
    ]),
  "define topics, back up and restore": (caller) =>
    allOrNone(caller, [
      `CREATE TOPIC shop.${fresh()}`,
      `BACKUP DATABASE TO '${backups}/${fresh()}'`,
    ]),
  "`EXPLAIN`, `SHOW ALL`": (caller) =>
    allOrNone(caller, [
      "EXPLAIN SELECT * FROM shop.PUBLIC",
      "SHOW ALL",
      "SELECT * FROM system.audit_log LIMIT 1",
    ]),
  "see and stop what runs": (caller) =>
    allOrNone(caller, ["SELECT * FROM system.queries", "KILL QUERY '999999'"]),
};

interface TableRow {
  readonly what: string;
  readonly cells: readonly string[];
}

function tableOfTheDocument(): TableRow[] {
  const text = readFileSync(join(ROOT, "docs/auth.md"), "utf8");
  const [, section = ""] = text.split("## Who may do what\n");
  const [, ...lines] = section.split("\n\n| to …")[1]?.split("\n\n")[0]?.split("\n") ?? [];
  return lines.slice(1).map((line) => {
    const [what = "", ...cells] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { what, cells: cells.map((cell) => cell.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")) };
  });
}

const table = tableOfTheDocument();

test("each row of the table has statements, and all statements have a row", () => {
  expect(table.map(({ what }) => Object.keys(ROWS).find((key) => what.startsWith(key)))).toEqual(
    Object.keys(ROWS),
  );
});

test.each(table.map(({ cells, what }) => [what, cells] as const))("%s", async (what, cells) => {
  const key = Object.keys(ROWS).find((each) => what.startsWith(each)) ?? "";
  const found: (string | undefined)[] = [];
  for (const caller of CALLERS) found.push(await ROWS[key]?.(caller));
  expect(found).toEqual([...cells]);
});
