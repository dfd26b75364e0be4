/**
 * Verifies that dumps of a film rental database, written by the pg_dump of a real PostgreSQL in
 * both formats, load unchanged over HTTP. Afterwards, every table and view has the same rows as in
 * PostgreSQL.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { type Postgres, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { describeUnless } from "../support/requirements.ts";
import { type ServerProcess, startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";

const programs = postgresPrograms();
const missing =
  programs === undefined
    ? "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    : undefined;
const FIXTURES = join(import.meta.dir, "../fixtures/rentals");

const RELATIONS = [
  "language",
  "country",
  "city",
  "film",
  "actor",
  "film_actor",
  "customer",
  "rental",
  "payment",
  "visit_log",
  "film_list",
  "paid_by_customer",
];

describeUnless(onlyThorough ?? missing)("a dump of pg_dump", () => {
  let postgres: Postgres;

  beforeAll(async () => {
    postgres = await startPostgres();
    run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", "ALTER ROLE bench SET timezone = 'UTC'");
    for (const name of ["schema.sql", "rows.sql"]) {
      run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", join(FIXTURES, name));
    }
  });

  afterAll(async () => {
    await postgres.stop();
  });

  function run(program: string, ...options: string[]): string {
    const ran = Bun.spawnSync([join(programs ?? "", program), postgres.url, ...options]);
    if (!ran.success) throw new Error(ran.stderr.toString());
    return ran.stdout.toString();
  }

  /** Returns all rows of a relation in PostgreSQL's text format, sorted. */
  const theirRows = (name: string): string[] =>
    run("psql", "-X", "-q", "-c", `COPY (SELECT * FROM ${name}) TO STDOUT`).split("\n").toSorted();

  async function ourRows(server: ServerProcess, name: string): Promise<string[]> {
    const { results } = (
      await server.sql(`SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'
        AND table_name = '${name}' AND column_name NOT LIKE '\\_%' ORDER BY ordinal_position`)
    ).body;
    const columns = (results?.[0]?.rows ?? []).map(([column]) => `"${String(column)}"`);
    const copy = `COPY (SELECT ${columns.join(", ")} FROM public.${name}) TO STDOUT`;
    const response = await fetch(`${server.url}/v1/api/copy?sql=${encodeURIComponent(copy)}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${server.token}` },
    });
    expect([name, response.status]).toEqual([name, 200]);
    return (await response.text()).split("\n").toSorted();
  }

  async function expectConstraints(server: ServerProcess): Promise<void> {
    const counts = `SELECT constraint_type, count(*) FROM information_schema.table_constraints
      WHERE table_schema = 'public' AND constraint_type <> 'CHECK' GROUP BY 1 ORDER BY 1`;
    const theirs = run("psql", "-X", "-q", "-A", "-t", "-c", counts).trim().split("\n");
    const ours = await server.rows(counts);
    expect(ours.map((row) => row.join("|"))).toEqual(theirs);
    const reasonOf = async (sql: string): Promise<unknown> =>
      (await server.sql(sql, { namespace: "public" })).body.error?.reason;
    const row = "INSERT INTO film (film_id, title, language_id) VALUES";
    expect(await reasonOf(`${row} (7, 'again', 1)`)).toBe("duplicate_key");
    expect(await reasonOf(`${row} (7000, 'lost', 99)`)).toBe("foreign_key");
    expect(await reasonOf("UPDATE film SET rental_rate = -1 WHERE film_id = 7")).toBe("check");
    const [[made] = []] = await server.rows(
      "INSERT INTO public.film (title, language_id) VALUES ('new', 1) RETURNING film_id",
    );
    expect(made).toBe(61);
    await server.rows("DELETE FROM public.film WHERE film_id = 61");
    expect(
      await server.rows("SELECT table_comment FROM system.tables WHERE table_name = 'film'"),
    ).toEqual([["What the shop's customers rent"]]);
  }

  test.each([
    ["with COPY", []],
    ["with --inserts", ["--inserts"]],
  ])("the dump of %s loads unchanged", async (_form, options) => {
    await using server = await startReadyServer({
      config: { performance: { request_timeout: 0 } },
    });
    // The user who loads a dump is accepted as the owner of its tables.
    const token = await server.createUser("bench", "dba");
    const dump = run("pg_dump", ...options);
    const { body } = await server.sql(dump, { token });
    expect(body.error).toBeUndefined();
    let count = 0;
    for (const name of RELATIONS) {
      const rows = theirRows(name);
      expect([name, await ourRows(server, name)]).toEqual([name, rows]);
      count += rows.length;
    }
    expect(count).toBeGreaterThan(650);
    await expectConstraints(server);
  });
});
