/**
 * Tests restores to a point in time after the clock was ahead for a while. Such a restore includes
 * all commits made before that time according to the clock, even if ids run ahead of it. The times
 * of the seqs may come from the stopped server, from its archive alone, or from the running
 * server.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { HOUR_MS } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import type { Database } from "../../src/database.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import { openAt } from "../support/database.ts";
import { freshDirectory, removeDirectories } from "../support/maintenance.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { principalFor } from "../support/principal_for.ts";
import { until } from "../support/until.ts";

const MINUTE_MS = 60_000;

afterAll(removeDirectories);

/** A database whose clock was ahead for a while between rows 1 and 3. */
class JumpedDatabase {
  readonly clock = new ManualClock();
  readonly startMs = this.clock.nowMs();
  readonly directory = freshDirectory();
  readonly data = join(this.directory, "data");
  readonly archive = join(this.directory, "archive");
  readonly backup = join(this.directory, "backups", "base");
  #database: Database | undefined;

  static async make(): Promise<JumpedDatabase> {
    const made = new JumpedDatabase();
    const { clock, startMs } = made;
    mkdirSync(join(made.directory, "backups"));
    mkdirSync(made.archive);
    await made.open();
    await made.ask(
      "CREATE SHARED TABLE t (id INT PRIMARY KEY, filler TEXT); INSERT INTO t VALUES (1, '')",
    );
    await made.ask(`BACKUP DATABASE TO '${made.backup}'`);
    clock.setWall(startMs + HOUR_MS);
    await made.ask("INSERT INTO t VALUES (2, '')");
    for (const id of [3, 4, 5]) {
      clock.setWall(startMs + (id - 2) * MINUTE_MS);
      await made.ask(`INSERT INTO t VALUES (${id}, '')`);
    }
    return made;
  }

  async open(data: string = this.data): Promise<void> {
    this.#database = await openAt(data, {
      clock: this.clock,
      config: [
        "storage.ballast_bytes = 0",
        "storage.wal_segment_bytes = 1048576",
        "limits.max_row_bytes = 65536",
        `storage.allowed_roots = ${JSON.stringify([join(this.directory, "backups")])}`,
        `storage.archive_path = ${JSON.stringify(this.archive)}`,
      ].join("\n"),
    });
  }

  async close(): Promise<void> {
    await this.#database?.close();
  }

  async ask(sql: string): Promise<readonly unknown[]> {
    const database = this.#opened();
    const { error, results } = await database.sql.execute(principalFor(database, "root"), {
      sql,
      params: [],
    });
    if (error !== undefined) throw error;
    return results.at(-1)?.rows ?? [];
  }

  /** Fills the current log file, and waits until it is in the archive. */
  async fillLog(): Promise<void> {
    await this.ask(
      "INSERT INTO t SELECT 100 + g, (SELECT string_agg(md5((g * 1000 + h)::text), '') FROM generate_series(1, 1000) h) FROM generate_series(1, 80) g",
    );
    await until(() => this.#opened().archiveLag()?.files === 0);
  }

  /**
   * Returns the time that is the given number of minutes after the start, in a format that the
   * command accepts.
   */
  moment(minutes: number): string {
    return new Date(this.startMs + minutes * MINUTE_MS).toISOString();
  }

  /** Runs `tidemark restore`. */
  async restore(target: string, ...point: readonly string[]): Promise<string> {
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const parts = { disk: bunDisk, clock: this.clock, random: systemRandom, log: silentLog };
    const code = await runRestore([this.backup, target, ...point], { ...parts, say, tell: say });
    return code === 0 ? "restored" : lines.join("\n");
  }

  async idsIn(data: string): Promise<unknown[]> {
    await this.open(data);
    const rows = await this.ask("SELECT id FROM t WHERE id < 100 ORDER BY id");
    await this.close();
    return rows.flat();
  }

  #opened(): Database {
    if (this.#database === undefined) throw new Error("Cannot ask: the database is not open");
    return this.#database;
  }
}

test("the catalog of a stopped server supplies the times of its log", async () => {
  const jumped = await JumpedDatabase.make();
  await jumped.close();
  expect(await jumped.restore(jumped.data, "--to-timestamp", jumped.moment(2))).toBe("restored");
  expect(await jumped.idsIn(jumped.data)).toEqual([1, 2, 3, 4]);
});

test("the archive alone supplies the times of its contents", async () => {
  const jumped = await JumpedDatabase.make();
  await jumped.fillLog();
  await jumped.close();
  renameSync(jumped.data, `${jumped.data}.lost`);
  const point = ["--archive", jumped.archive, "--to-timestamp", jumped.moment(1)];
  expect(await jumped.restore(jumped.data, ...point)).toBe("restored");
  expect(await jumped.idsIn(jumped.data)).toEqual([1, 2, 3]);
});

test("the running server supplies the times of its log, and its refusals show times by the clock", async () => {
  const jumped = await JumpedDatabase.make();
  await jumped.ask(`RESTORE DATABASE FROM '${jumped.backup}' TO TIMESTAMP '${jumped.moment(2)}'`);
  await jumped.close();
  expect(await jumped.idsIn(jumped.data)).toEqual([1, 2, 3, 4]);

  const late = await JumpedDatabase.make();
  await late.close();
  const refused = await late.restore(late.data, "--to-timestamp", late.moment(30));
  expect(refused).toContain(`(${late.moment(30).slice(0, 19)}`);
  expect(refused).toMatch(/reaches only _seq \d+ \(.*T01:03:/);
});
