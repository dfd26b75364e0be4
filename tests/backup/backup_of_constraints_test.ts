/**
 * Tests backups of tables with indexes, sequences and foreign keys. The restored database finds
 * the same rows through its indexes, issues no sequence number twice, and enforces its foreign
 * keys.
 */
import { afterAll, expect } from "bun:test";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import { freshDirectory, maintain, removeDirectories, serverOn } from "../support/maintenance.ts";
import { testThoroughly } from "../support/requirements.ts";
import { startReadyServer } from "../support/server_process.ts";

afterAll(removeDirectories);

testThoroughly("a restored database keeps its unique index, sequence and foreign key", async () => {
  const root = freshDirectory();
  await using server = await startReadyServer({ config: { storage: { allowed_roots: [root] } } });
  await server.rows(`CREATE SHARED TABLE teams (id SERIAL PRIMARY KEY, code TEXT UNIQUE)`);
  await server.rows(`CREATE SHARED TABLE members (id SERIAL PRIMARY KEY,
    team TEXT REFERENCES teams (code) ON UPDATE CASCADE)`);
  await server.rows("CREATE INDEX members_team ON members (team, id)");
  await server.rows(
    "INSERT INTO teams (code) SELECT 'team ' || g FROM generate_series(1, 50) x(g)",
  );
  await server.rows(
    "INSERT INTO members (team) SELECT 'team ' || (1 + g % 50) FROM generate_series(1, 500) x(g)",
  );
  // Some rows are in segments with index files, and others only in the log.
  for (const table of ["teams", "members"]) await server.rows(`STORAGE FLUSH TABLE ${table}`);
  await server.rows("UPDATE teams SET code = 'moved' WHERE code = 'team 7'");
  // After a restore, the numbers of a sequence may have gaps.
  const moved = await server.rows("SELECT id FROM teams WHERE code = 'moved'");
  await server.rows("INSERT INTO teams (code) VALUES ('late')");
  await server.rows(`BACKUP DATABASE TO '${join(root, "saved")}'`);
  await server.rows("INSERT INTO teams (code) VALUES ('lost')");

  const target = join(freshDirectory(), "data");
  const say = (): void => undefined;
  const parts = { disk: bunDisk, clock: systemClock, random: systemRandom, log: silentLog };
  expect(await runRestore([join(root, "saved"), target], { ...parts, say, tell: say })).toBe(0);
  expect(maintain("verify", [target])).toMatchObject({ code: 0 });

  await using restored = await serverOn(target);
  const reasonOf = async (sql: string): Promise<unknown> =>
    (await restored.sql(sql)).body.error?.reason;
  expect(moved).toHaveLength(1);
  expect(await restored.rows("SELECT id FROM teams WHERE code = 'moved'")).toEqual([...moved]);
  expect(await restored.rows("SELECT count(*) FROM members WHERE team = 'moved'")).toEqual([[10]]);
  expect(await restored.rows("SELECT count(*) FROM teams WHERE code = 'lost'")).toEqual([[0]]);
  expect(await reasonOf("INSERT INTO teams (code) VALUES ('late')")).toBe("duplicate_key");
  expect(await reasonOf("INSERT INTO members (team) VALUES ('team 7')")).toBe("foreign_key");
  expect(await reasonOf("DELETE FROM teams WHERE code = 'moved'")).toBe("foreign_key");
  await restored.rows("UPDATE teams SET code = 'again' WHERE code = 'moved'");
  expect(await restored.rows("SELECT count(*) FROM members WHERE team = 'again'")).toEqual([[10]]);
  const [[id] = []] = await restored.rows("INSERT INTO teams (code) VALUES ('new') RETURNING id");
  expect(Number(id)).toBeGreaterThan(51);
});
