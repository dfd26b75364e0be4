/**
 * A single run of the checker: the real server in its own process, writers over HTTP, and
 * subscribers over WebSocket. During the run, tables are flushed, and the server is stopped and
 * killed. At random moments, and at the end, each view is compared with a SELECT at the same seq.
 */
import { SeededRandom } from "../../support/seeded_random.ts";
import { ADMIN, type ServerProcess, startReadyServer } from "../../support/server_process.ts";
import { canBeDamaged, FOUND_AS, type InjectedFault, Tamperer } from "./injected_faults.ts";
import { type Faults, Judge, noFaults } from "./judge.ts";
import { Ledger } from "./ledger.ts";
import { type Cells, type Followed, followedBy, partitionName, USERS } from "./queries.ts";
import { Reader } from "./reader.ts";
import { type Signal, spread, World } from "./world.ts";
import { write } from "./writer.ts";

/** How long subscribers may take to catch up once the writers have finished. */
const CATCH_UP_MS_MAX = 60_000;

/** How long a checkpoint waits for subscribers that are disconnecting and resuming. */
const CHECKPOINT_MS_MAX = 10_000;

const LAST_WORDS_MS = 500;

/** How many characters of the server's output are shown when a run is aborted. */
const OUTPUT_LENGTH_MAX = 4000;

const JUDGE_EVERY_MS = 100;
const PROGRESS_EVERY_MS = 5000;
const FLUSH_EVERY_MS = 1500;

export interface CheckOptions {
  readonly changes: number;
  readonly writers: number;
  readonly subscriptions: number;
  readonly restarts: number;
  readonly checkpoints: number;
  readonly seed: number;
  /** The faults to inject. Each fault damages its own additional subscriptions. */
  readonly injected: readonly InjectedFault[];
  readonly onProgress: (report: CheckReport) => void;
}

export interface CheckReport {
  readonly written: number;
  readonly delivered: number;
  readonly snapshotRows: number;
  readonly reconnects: number;
  readonly restarts: Readonly<Record<Signal, number>>;
  /** How many times a subscription lost its server. */
  readonly outages: number;
  /** How many views were compared with a SELECT during the run. */
  readonly comparedViews: number;
  /** The faults found in the subscriptions that are not damaged. */
  readonly faults: Faults;
  readonly findings: readonly string[];
  /** The injected faults that were found in the subscriptions they damaged. */
  readonly noticed: readonly InjectedFault[];
}

interface Pair {
  readonly followed: Followed;
  readonly judge: Judge;
  readonly reader: Reader;
  /** The fault that damages the subscription; undefined if the subscription is not damaged. */
  readonly injected: InjectedFault | undefined;
}

/** The state shared by the parts of a run. */
interface Run {
  readonly world: World;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly tokens: ReadonlyMap<string, string>;
  readonly options: CheckOptions;
  comparedViews: number;
}

export async function checkLive(options: CheckOptions): Promise<CheckReport> {
  await using server = await startReadyServer({
    config: {
      // The limit is low, so that long replays are also cut short in this campaign.
      websocket: { replay_changes: 100 },
      limits: { subscriptions_per_user: 0 },
      logging: { level: "warn" },
    },
  });
  try {
    const tokens = await prepare(server);
    return await check({
      world: new World(server),
      ledger: new Ledger(),
      random: new SeededRandom(options.seed),
      tokens,
      options,
      comparedViews: 0,
    });
  } catch (error) {
    // The last output of an exiting process may arrive a moment after it exits.
    await Bun.sleep(LAST_WORDS_MS);
    const said = server.output.slice(-OUTPUT_LENGTH_MAX);
    const message = `The run broke off; the server, ${server.condition}, last said:\n${said}`;
    throw new Error(message, { cause: error });
  }
}

async function check(run: Run): Promise<CheckReport> {
  const { ledger, options, random } = run;
  const all = followedBy(options.subscriptions);
  const pairs = [undefined, ...options.injected].flatMap((injected) =>
    all
      .filter((followed) => injected === undefined || canBeDamaged(followed))
      .map((followed) => pairFor(followed, run, injected)),
  );
  const judging = setInterval(() => judgeAll(pairs, ledger), JUDGE_EVERY_MS);
  const telling = setInterval(() => options.onProgress(report(pairs, run)), PROGRESS_EVERY_MS);
  const flushing = flushNowAndThen(run);
  try {
    // Some subscribers start at once. The others join while rows are being written.
    for (const [index, { reader }] of pairs.entries()) {
      if (index % 2 === 0) reader.start();
      else setTimeout(() => reader.start(), random.between(100, 3000));
    }
    await Promise.all([writeAll(run), disturb(pairs, run)]);
    ledger.close();
    await catchUp(pairs, ledger);
    judgeAll(pairs, ledger);
    for (const pair of pairs) await compareAtEnd(pair, run);
  } finally {
    clearInterval(judging);
    clearInterval(telling);
    for (const { reader } of pairs) reader.stop();
    await flushing.stop();
  }
  return report(pairs, run);
}

/** Restarts the server and runs checkpoints, in a random order at random moments. */
function disturb(pairs: readonly Pair[], run: Run): Promise<void> {
  const { ledger, options, random, world } = run;
  const restarts = Array.from({ length: options.restarts }, (_, index) => {
    const signal = index % 2 === 0 ? "SIGKILL" : "SIGTERM";
    return () => world.restart(signal);
  });
  const checkpoints = Array.from({ length: options.checkpoints }, () => {
    return () => world.inSilence(() => checkpoint(pairs, run));
  });
  const progress = (): number => ledger.versionCount / options.changes;
  return spread([...restarts, ...checkpoints], { progress, random });
}

/**
 * While no writer is active, compares each subscriber that is ready and caught up with a SELECT.
 */
async function checkpoint(pairs: readonly Pair[], run: Run): Promise<void> {
  const { ledger } = run;
  const deadlineMs = Date.now() + CHECKPOINT_MS_MAX;
  const left = new Set(sampleOf(pairs, run));
  while (left.size > 0 && Date.now() < deadlineMs) {
    for (const pair of left) {
      const { followed, injected, judge, reader } = pair;
      if (!reader.isReady || reader.position < ledger.acknowledgedSeq) {
        reader.ping();
        continue;
      }
      left.delete(pair);
      judgeAll(pairs, ledger);
      const [held] = judge.held.keys();
      if (injected === "view" && held !== undefined) judge.held.delete(held);
      // The client's rows and the rows of the SELECT are both the result at the newest seq.
      judge.compareWith(await selected(followed, run));
      run.comparedViews += 1;
    }
    await Bun.sleep(5);
  }
}

/** Returns a random quarter of the subscribers, plus all subscribers whose rows are damaged. */
function sampleOf(pairs: readonly Pair[], { random }: Run): Pair[] {
  const quarter = random.shuffle([...pairs]).slice(0, Math.ceil(pairs.length / 4));
  return [...quarter, ...pairs.filter(({ injected }) => injected === "view")];
}

/** Returns the rows of a subscription's query, with the columns that a subscription adds. */
async function selected({ query, user }: Followed, { tokens, world }: Run): Promise<Cells[]> {
  const text = query.sql.replace(/^SELECT (.*) FROM/, (_all, list: string) =>
    list === "*" ? "SELECT * FROM" : `SELECT ${list}, id, _seq FROM`,
  );
  const token = tokens.get(user) ?? "";
  const { body } = await world.server.sql(text, { token, params: query.params ?? [] });
  const [result] = body.results;
  if (result?.rows === undefined) throw new Error(`Cannot run ${text}: ${JSON.stringify(body)}`);
  const names = (result.schema ?? []).map(({ name }) => name);
  return result.rows.map(
    (cells) => Object.fromEntries(names.map((name, index) => [name, cells[index]])) as Cells,
  );
}

/** Creates the tables and the users. Returns the tokens by user. */
async function prepare(server: ServerProcess): Promise<ReadonlyMap<string, string>> {
  const columns = "(id BIGINT PRIMARY KEY, room TEXT, n INT, body TEXT)";
  await server.rows("CREATE NAMESPACE live");
  await server.rows(`CREATE TABLE live.items ${columns} WITH (TYPE = 'USER')`);
  const shared = "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC')";
  await server.rows(`CREATE TABLE live.board ${columns} ${shared}`);
  const tokens = new Map([[ADMIN, server.token]]);
  for (const user of USERS) tokens.set(user, await server.createUser(user));
  return tokens;
}

function pairFor(followed: Followed, run: Run, injected: InjectedFault | undefined): Pair {
  const { ledger, random, tokens, world } = run;
  const { table, user } = followed;
  const judge = new Judge(followed, ledger.partition(partitionName(table, user)));
  const reader = new Reader({
    world,
    token: tokens.get(user) ?? "",
    followed,
    random: new SeededRandom(random.u32()),
    onEvent: (event) => judge.add(event),
    newestSeq: () => ledger.acknowledgedSeq,
    ...(injected !== undefined && { tamperer: new Tamperer(injected) }),
  });
  return { followed, judge, reader, injected };
}

/**
 * Runs the writers. Half of them write to one partition, a quarter to another, and a quarter to
 * the shared table.
 */
async function writeAll({ ledger, options, random, tokens, world }: Run): Promise<void> {
  const places = [
    { user: "alice", table: "items" },
    { user: ADMIN, table: "board" },
    { user: "bob", table: "items" },
    { user: "alice", table: "items" },
  ] as const;
  const busyByPlace = new Map<string, Set<number>>();
  await Promise.all(
    Array.from({ length: options.writers }, async (_, index) => {
      const place = places[index % places.length] ?? places[0];
      const { table, user } = place;
      const name = partitionName(table, user);
      const busy = busyByPlace.get(name) ?? new Set<number>();
      busyByPlace.set(name, busy);
      const own = new SeededRandom(random.u32());
      const token = tokens.get(user) ?? "";
      const mark = `${index.toString(36)}-`;
      await write({ world, ledger, random: own, token, user, table, mark, busy }, options.changes);
    }),
  );
}

function flushNowAndThen({ world }: Run): { stop: () => Promise<void> } {
  let flushing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    flushing = flushing.then(() => world.atWork(() => flush(world)));
  }, FLUSH_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await flushing;
    },
  };
}

async function flush(world: World): Promise<void> {
  const { life } = world;
  try {
    await world.server.rows("STORAGE FLUSH TABLE live.items; STORAGE FLUSH TABLE live.board");
  } catch (error) {
    // A restart may have interrupted the statement. Any other error is a server fault.
    if (life !== undefined && world.life === life) throw error;
  }
}

/** Waits until the server has confirmed to every subscriber that everything has been sent. */
async function catchUp(pairs: readonly Pair[], ledger: Ledger): Promise<void> {
  const deadlineMs = Date.now() + CATCH_UP_MS_MAX;
  for (const { reader } of pairs) reader.settleDown();
  while (Date.now() < deadlineMs) {
    for (const { reader } of pairs) if (reader.error !== undefined) throw reader.error;
    const isDone = pairs.every(
      ({ reader }) => reader.isReady && reader.position >= ledger.acknowledgedSeq,
    );
    if (isDone) return;
    for (const { reader } of pairs) reader.ping();
    await Bun.sleep(50);
  }
}

function judgeAll(pairs: readonly Pair[], ledger: Ledger): void {
  const completeSeq = ledger.settle();
  for (const { judge, reader } of pairs) {
    if (reader.error !== undefined) throw reader.error;
    judge.judge(completeSeq);
  }
}

/** Requires that the subscriber's rows, the ledger's rows and the rows of the SELECT are equal. */
async function compareAtEnd({ followed, judge }: Pair, run: Run): Promise<void> {
  const { ledger } = run;
  judge.finish(ledger.acknowledgedSeq);
  const { table, user, query } = followed;
  const rows = await selected(followed, run);
  judge.compareWith(rows);
  const seqs = new Map(rows.map((row) => [Number(row["id"]), Number(row["_seq"])]));
  const kept = ledger
    .partition(partitionName(table, user))
    .rowsAt(ledger.acknowledgedSeq)
    .filter(({ row }) => query.keeps(row));
  const isSame =
    kept.length === seqs.size && kept.every(({ row, seq }) => seqs.get(row.id) === seq);
  if (!isSame) throw new Error(`SELECT and the ledger disagree: ${followed.name}`);
}

function report(pairs: readonly Pair[], { comparedViews, ledger, world }: Run): CheckReport {
  const faults = noFaults();
  const sound = pairs.filter(({ injected }) => injected === undefined);
  for (const { judge } of sound) {
    for (const fault of Object.keys(faults) as (keyof Faults)[]) {
      faults[fault] += judge.faults[fault];
    }
  }
  return {
    written: ledger.versionCount,
    delivered: pairs.reduce((sum, { judge }) => sum + judge.changeCount, 0),
    snapshotRows: pairs.reduce((sum, { judge }) => sum + judge.snapshotRowCount, 0),
    reconnects: pairs.reduce((sum, { reader }) => sum + reader.reconnects, 0),
    restarts: { ...world.restarts },
    outages: pairs.reduce((sum, { reader }) => sum + reader.outages, 0),
    comparedViews,
    faults,
    findings: sound.flatMap(({ judge }) => judge.findings),
    noticed: pairs.flatMap(({ injected, judge }) =>
      injected !== undefined && FOUND_AS[injected].some((fault) => judge.faults[fault] > 0)
        ? [injected]
        : [],
    ),
  };
}
