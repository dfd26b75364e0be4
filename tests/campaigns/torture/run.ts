/** Runs the torture test: load, kill, start and compare, repeatedly. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Chance, chanceFromSeed } from "../../../scripts/support/chance.ts";
import { compileChangedServer } from "../../support/changed_server.ts";
import { type ServerProcess, startServer } from "../../support/server_process.ts";
import type { KillPoint } from "./kill_points.ts";
import { Ledger, type ObservedRow, SeqWatch } from "./ledger.ts";
import { Definer, type Scope, type Tally, Writer } from "./load.ts";
import { UPLOADS_TABLE, Uploader } from "./uploads.ts";

/**
 * Faults that a run can inject into the data that it reads back, to show that such faults would be
 * found.
 */
export const INJECTED_FAULTS = [
  "lost",
  "invented",
  "altered",
  "reused",
  "upload",
  /** An index does not find a row. */
  "misindexed",
] as const;

export type InjectedFault = (typeof INJECTED_FAULTS)[number];

export interface TortureOptions {
  /**
   * The number of times that the server is killed at random moments. Used if no rounds are given.
   */
  killCount: number;
  /** The number of times that the server is killed at each named point. */
  rounds: number;
  /** The named points at which the server is killed. */
  points: readonly KillPoint[];
  /**
   * The number of minutes for which random kills alternate with rounds over the named points;
   * absent for a single round.
   */
  minutes?: number | undefined;
  /** Called after each kill. Returns true if the run can end. */
  isEnough?: () => boolean;
  seed: number;
  injected: InjectedFault | undefined;
  onMinute: (state: TortureReport) => void;
}

export interface TortureReport {
  kills: number;
  acknowledged: number;
  refused: number;
  rowsRead: number;
  lost: number;
  invented: number;
  torn: number;
  reused: number;
  /** The number of tables or columns that differ from the acknowledged definitions. */
  defined: number;
  /** The number of uploaded files that differ from the acknowledged uploads. */
  files: number;
  /** The named points that no server reached. */
  unreached: string[];
  startMsMedian: number;
  startMsMax: number;
  findings: string[];
  /** The server's directory. It is removed if no fault was found. */
  directory: string;
}

export function faultCountOf(report: TortureReport): number {
  const { defined, files, invented, lost, reused, torn, unreached } = report;
  return lost + invented + torn + reused + defined + files + unreached.length;
}

/**
 * The shortest and the longest time that a server runs under load, in milliseconds. The shortest
 * time is often too short for a flush, and the longest allows several flushes.
 */
const LIFE_MS_MIN = 30;
const LIFE_MS_MAX = 1500;

/** The number of keys, and the number of texts, that are looked up after each kill. */
const LOOKUPS_PER_SCOPE = 10;

const MINUTE_MS = 60_000;

/** The number of random kills between two rounds over the named points in a long run. */
const KILLS_BETWEEN_ROUNDS = 100;

/** How long a server under load may take to reach a named point, in milliseconds. */
const POINT_MS_MAX = 90_000;

/**
 * How long to wait for the exit of a server whose end the writers have already noticed, in
 * milliseconds.
 */
const END_MS_MAX = 2000;

/** The exit code of a process ended by SIGKILL. */
const KILLED = 137;

/**
 * The number of characters of the server's output that are shown if it fails without having been
 * killed.
 */
const OUTPUT_SHOWN = 4000;

export async function torture(options: TortureOptions): Promise<TortureReport> {
  const chance = chanceFromSeed(options.seed);
  const env: Record<string, string> = {};
  const elsewhere = mkdtempSync(join(tmpdir(), "tidemark-storage-"));
  const first = join(import.meta.dir, "killing_disk.ts");
  const server = await startServer({
    env,
    ...((options.rounds > 0 || options.minutes !== undefined) && {
      command: await compileChangedServer(`${elsewhere}/program`, { first }),
    }),
    config: {
      // The files are small, so that the log is recycled and flushed many times in a run.
      storage: {
        wal_segment_bytes: 1_048_576,
        wal_max_bytes: 8_388_608,
        allowed_roots: [elsewhere],
      },
      // The row limit is reduced, so that the largest row fits into a small log file.
      limits: { max_row_bytes: 65_536 },
      performance: { request_timeout: 60 },
    },
  });
  await server.setup();
  const scopes = await makeScopes(server, `${elsewhere}/storage`);
  const run = new Run(server, scopes, { ...options, chance, env });
  const report = await run.toTheEnd().catch((error: unknown) => {
    server.keepDirectory();
    const said = `${server.output.slice(-OUTPUT_SHOWN)}\nthe data is kept in ${server.directory}`;
    throw new Error(`Cannot continue after ${run.killCount} kills:\n${said}`, { cause: error });
  });
  const isClean = report.findings.length === 0;
  server.kill("SIGKILL");
  await server.exited();
  if (isClean || options.injected !== undefined) {
    await server.stop();
    rmSync(elsewhere, { recursive: true });
  } else {
    server.keepDirectory();
  }
  return report;
}

/**
 * Creates the tables. Two writers share a SHARED table. Two other writers use the same keys for
 * separate rows, in a table with segments in another storage.
 */
async function makeScopes(server: ServerProcess, path: string): Promise<Scope[]> {
  const policy = "FLUSH_POLICY = 'rows:400,interval:2'";
  await server.rows(
    `CREATE NAMESPACE torture; CREATE STORAGE elsewhere TYPE filesystem PATH '${path}'; ` +
      `CREATE TABLE torture.pool (id BIGINT PRIMARY KEY, v TEXT) WITH (${policy}); ` +
      "CREATE INDEX ON torture.pool (v); " +
      "CREATE TABLE torture.recorded (name TEXT PRIMARY KEY, columns TEXT NOT NULL); " +
      `CREATE USER TABLE torture.own (id BIGINT PRIMARY KEY, v TEXT) WITH (${policy}, COMPRESSION='zstd', STORAGE_ID='elsewhere'); ` +
      "CREATE INDEX ON torture.own (v); " +
      `CREATE TABLE ${UPLOADS_TABLE} (id BIGINT PRIMARY KEY, file FILE)`,
  );
  const tokens = { ann: await server.createUser("ann"), ben: await server.createUser("ben") };
  return [
    { table: "torture.pool", user: "the administrator", token: server.token },
    { table: "torture.own", user: "ann", token: tokens.ann },
    { table: "torture.own", user: "ben", token: tokens.ben },
  ].map((scope) => Object.assign({ ledger: new Ledger(), seqs: new SeqWatch() }, scope));
}

interface RunOptions extends TortureOptions {
  readonly chance: Chance;
  /** The environment for the next server process. */
  readonly env: Record<string, string>;
}

class Run {
  readonly #server: ServerProcess;
  readonly #scopes: readonly Scope[];
  readonly #options: RunOptions;
  readonly #tally: Tally = { acknowledged: 0, refused: 0, lastRefusal: "" };
  readonly #writers: readonly Writer[];
  readonly #definer: Definer;
  readonly #uploader: Uploader;
  readonly #startMs: number[] = [];
  readonly #report: TortureReport;

  constructor(server: ServerProcess, scopes: readonly Scope[], options: RunOptions) {
    this.#server = server;
    this.#scopes = scopes;
    this.#options = options;
    const { chance } = options;
    const tally = this.#tally;
    const [pool] = scopes;
    if (pool === undefined) throw new Error("Cannot run the load: there are no scopes");
    this.#writers = [pool, ...scopes].map(
      (scope, index) =>
        new Writer({
          server,
          scope,
          // The two owners use the same keys, so that the comparison notices if one owner's row
          // becomes visible to the other.
          writer: index < 2 ? index : 2,
          chance: chanceFromSeed(chance.below(2 ** 31)),
          tally,
        }),
    );
    const tables = [...new Set(scopes.map((scope) => scope.table))];
    this.#definer = new Definer({
      server,
      tables,
      tally,
      chance: chanceFromSeed(chance.below(2 ** 31)),
    });
    this.#uploader = new Uploader({ server, tally, chance: chanceFromSeed(chance.below(2 ** 31)) });
    this.#report = {
      kills: 0,
      acknowledged: 0,
      refused: 0,
      rowsRead: 0,
      lost: 0,
      invented: 0,
      torn: 0,
      reused: 0,
      defined: 0,
      files: 0,
      unreached: [],
      startMsMedian: 0,
      startMsMax: 0,
      findings: [],
      directory: server.directory,
    };
  }

  get killCount(): number {
    return this.#report.kills;
  }

  async toTheEnd(): Promise<TortureReport> {
    const { injected, onMinute } = this.#options;
    let minuteEndsMs = Date.now() + MINUTE_MS;
    for (const point of this.#deaths()) {
      if (point === undefined) await this.#liveAndDie();
      else await this.#dieAt(point);
      await this.#restart();
      await this.#compare();
      if (this.#options.isEnough?.() === true) break;
      if (injected !== undefined && faultCountOf(this.#report) > 0) break;
      if (Date.now() >= minuteEndsMs) {
        minuteEndsMs += MINUTE_MS;
        onMinute(this.#report);
      }
    }
    if (this.#tally.refused > 0) this.#find(`refused: ${this.#tally.lastRefusal}`);
    return this.#report;
  }

  /** Yields the point at which each server dies; undefined stands for a random moment. */
  *#deaths(): Generator<KillPoint | undefined> {
    const { killCount, minutes, points, rounds } = this.#options;
    if (minutes !== undefined) {
      const endMs = Date.now() + minutes * MINUTE_MS;
      while (Date.now() < endMs) {
        for (let kill = 0; kill < KILLS_BETWEEN_ROUNDS && Date.now() < endMs; kill += 1) {
          yield undefined;
        }
        for (const point of points) if (Date.now() < endMs) yield point;
      }
    } else if (rounds === 0) {
      for (let kill = 0; kill < killCount; kill += 1) yield undefined;
    } else {
      for (let round = 0; round < rounds; round += 1) yield* points;
    }
  }

  async #liveAndDie(): Promise<void> {
    const { chance } = this.#options;
    const load = this.#load();
    const lifeMs = LIFE_MS_MIN + chance.below(LIFE_MS_MAX - LIFE_MS_MIN);
    await Promise.race([Bun.sleep(lifeMs), Promise.all(load)]);
    this.#server.kill("SIGKILL");
    await Promise.all([this.#server.exited(), ...load]);
    this.#report.kills += 1;
  }

  /** Starts a server that kills itself at a point, possibly during startup. */
  async #dieAt({ name, often }: KillPoint): Promise<void> {
    const { chance, env } = this.#options;
    this.#server.kill("SIGKILL");
    await this.#server.exited();
    env["KILL_AT"] = name;
    env["KILL_COUNT"] = String(1 + chance.below(often));
    try {
      await this.#server.start();
      const load = this.#load();
      await Promise.race([Bun.sleep(POINT_MS_MAX), Promise.all(load)]);
      const code = await Promise.race([this.#server.exited(), Bun.sleep(END_MS_MAX)]);
      if (code !== KILLED) {
        this.#report.unreached.push(name);
        this.#server.kill("SIGKILL");
      }
      await Promise.all([this.#server.exited(), ...load]);
    } catch (error) {
      if ((await this.#server.exited()) !== KILLED) throw error;
    }
    env["KILL_AT"] = "";
    this.#report.kills += 1;
  }

  #load(): Promise<void>[] {
    const loads = [...this.#writers, this.#definer, this.#uploader];
    return loads.map((load) => load.run());
  }

  async #restart(): Promise<void> {
    const startedMs = Date.now();
    await this.#server.start();
    this.#startMs.push(Date.now() - startedMs);
    const sorted = this.#startMs.toSorted((a, b) => a - b);
    this.#report.startMsMedian = sorted[sorted.length >> 1] ?? 0;
    this.#report.startMsMax = sorted.at(-1) ?? 0;
  }

  async #compare(): Promise<void> {
    const report = this.#report;
    for (const scope of this.#scopes) {
      const observed = await this.#read(scope);
      this.#inject(observed);
      for (const [key, { text, seq }] of observed) {
        scope.seqs.seen(seq, `${key}: ${text}`);
      }
      const verdict = scope.ledger.judge(observed);
      report.lost += verdict.lost;
      report.invented += verdict.invented;
      report.torn += verdict.torn;
      report.rowsRead += observed.size;
      for (const finding of verdict.findings)
        this.#find(`${scope.table} of ${scope.user}: ${finding}`);
      await this.#lookUp(scope, observed);
      await this.#lookUpTexts(scope, observed);
      scope.seqs.raiseFloor();
    }
    for (const fault of await this.#definer.faults()) {
      report.defined += 1;
      this.#find(fault);
    }
    for (const fault of await this.#uploader.faults(this.#options.injected === "upload")) {
      report.files += 1;
      this.#find(fault);
    }
    report.reused = this.#scopes.reduce((sum, scope) => sum + scope.seqs.reusedCount, 0);
    report.acknowledged = this.#tally.acknowledged;
    report.refused = this.#tally.refused;
  }

  async #read({ table, token }: Scope): Promise<Map<number, ObservedRow>> {
    const rows = await this.#server.rows(`SELECT id, v, _seq FROM ${table}`, { token });
    const observed = new Map<number, ObservedRow>();
    for (const [id, text, seq] of rows) {
      if (observed.has(Number(id))) {
        this.#report.invented += 1;
        this.#find(`${table}: key ${String(id)} exists twice`);
      }
      observed.set(Number(id), { text: String(text), seq: Number(seq) });
    }
    return observed;
  }

  /** Reads rows by key, which must return the same rows as the scan. */
  async #lookUp(scope: Scope, observed: ReadonlyMap<number, ObservedRow>): Promise<void> {
    const keys = [...observed.keys()];
    for (let count = 0; count < LOOKUPS_PER_SCOPE && keys.length > 0; count += 1) {
      const key = this.#options.chance.pick(keys);
      const sql = `SELECT v FROM ${scope.table} WHERE id = $1`;
      const [row] = await this.#server.rows(sql, { token: scope.token, params: [key] });
      if (this.#options.injected === undefined && row?.[0] !== observed.get(key)?.text) {
        this.#report.lost += 1;
        this.#find(
          `${scope.table}: key ${key} returns another row when it is read by key: ${JSON.stringify(row)}`,
        );
      }
    }
  }

  /** Reads rows through the secondary index, which must find the same rows as the scan. */
  async #lookUpTexts(scope: Scope, observed: ReadonlyMap<number, ObservedRow>): Promise<void> {
    const { chance, injected } = this.#options;
    if (injected !== undefined && injected !== "misindexed") return;
    const texts = [...observed.values()].map(({ text }) => text);
    for (let count = 0; count < LOOKUPS_PER_SCOPE && texts.length > 0; count += 1) {
      const text = chance.pick(texts);
      const sql = `SELECT id FROM ${scope.table} WHERE v = $1`;
      const rows = await this.#server.rows(sql, { token: scope.token, params: [text] });
      const found = rows.map(([id]) => Number(id)).toSorted((a, b) => a - b);
      if (injected === "misindexed") found.pop();
      const expected = [...observed].flatMap(([id, row]) => (row.text === text ? id : []));
      if (found.join() === expected.toSorted((a, b) => a - b).join()) continue;
      this.#report.lost += 1;
      this.#find(
        `${scope.table}: the index finds keys ${found.join()} of a text of ${expected.join()}`,
      );
    }
  }

  /** Damages the rows that were read, if the run is meant to show that it finds damage. */
  #inject(observed: Map<number, ObservedRow>): void {
    const { injected } = this.#options;
    const [first, second] = observed;
    if (injected === undefined || first === undefined || second === undefined) return;
    const [key, row] = first;
    if (injected === "lost") observed.delete(key);
    else if (injected === "invented")
      observed.set(-1, { text: "from nowhere", seq: row.seq + 0.5 });
    else if (injected === "reused") observed.set(key, { ...row, seq: second[1].seq });
    else if (injected === "altered") observed.set(key, { ...row, text: row.text.slice(0, -1) });
  }

  #find(finding: string): void {
    this.#report.findings.push(`kill ${this.#report.kills}: ${finding}`);
  }
}
