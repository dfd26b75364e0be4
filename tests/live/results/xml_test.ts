/**
 * Verifies that live queries deliver XML, and evaluate paths in it, just as the SELECT does after
 * each commit, and that documents survive a restart.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { rowsOf } from "../../support/rows_of.ts";

let directory: string;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-xml-"));
  await open();
  await run("CREATE NAMESPACE lib");
  await run("CREATE TABLE lib.docs (id INT PRIMARY KEY, doc XML)");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

async function open(): Promise<void> {
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
}

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

const QUERIES: readonly string[] = [
  "SELECT id, doc FROM lib.docs WHERE xmlexists('/a[@n > 1]' PASSING doc) ORDER BY id LIMIT 5",
  "SELECT d.id, l.n, l.v FROM lib.docs AS d, XMLTABLE('//v' PASSING d.doc COLUMNS n FOR ORDINALITY, v INT PATH '.') AS l",
  "SELECT id % 2 AS odd, xmlelement(NAME all, xmlagg(doc ORDER BY id)) AS docs FROM lib.docs GROUP BY 1",
];

test.each(QUERIES)("a live query has the rows of its SELECT: %s", async (sql) => {
  await run("DELETE FROM lib.docs WHERE true");
  await run(
    "INSERT INTO lib.docs VALUES (1, '<a n=\"1\"/>'), (2, '<a n=\"2\"><v>7</v><v>8</v></a>')",
  );
  const follower = new ResultFollower();
  const spec = { id: "q", sql };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  for (const change of [
    "UPDATE lib.docs SET doc = '<a n=\"5\"><v>1</v></a>' WHERE id = 1",
    "INSERT INTO lib.docs VALUES (3, '<b/>'), (4, NULL)",
    "UPDATE lib.docs SET doc = xmlparse(DOCUMENT '<a n=\"0\"><v>8</v></a>') WHERE id = 2",
    "DELETE FROM lib.docs WHERE id > 2",
  ]) {
    await run(change);
    await follower.reaches(database.store.visibleSeq);
    const rows = await run(sql);
    expect(shown(follower)).toEqual(rows.map((row) => JSON.stringify(row)).toSorted());
  }
  follower.subscription.close();
});

test("XML survives a restart", async () => {
  await run("CREATE TABLE lib.kept (id INT PRIMARY KEY, doc XML DEFAULT '<none/>', more XML[])");
  await run(
    "INSERT INTO lib.kept (id, more) VALUES (1, ARRAY[xml '<?xml version=\"1.1\"?><é/>', NULL])",
  );
  const before = await run("SELECT doc, more, more[1]::text FROM lib.kept");
  await database.close();
  await open();
  expect(await run("SELECT doc, more, more[1]::text FROM lib.kept")).toEqual(before);
  const text = '<?xml version="1.1"?><é/>';
  expect(before).toEqual([["<none/>", [text, null], text]]);
});

function shown({ ack, rows }: ResultFollower): string[] {
  const names = (ack?.schema ?? []).map(({ name }) => name).filter((name) => !name.startsWith("_"));
  return rows.map((row) => JSON.stringify(names.map((name) => row[name] ?? null))).toSorted();
}
