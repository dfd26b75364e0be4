/**
 * One run of the checker: the real server in a process of its own, four writers over HTTP, sixteen
 * subscribers over WebSocket, tables flushed meanwhile; at the end each view beside a SELECT.
 */
import { SeededRandom } from "../../tests/support/seeded_random.ts";
import { ADMIN, type ServerProcess, startReadyServer } from "../../tests/support/server_process.ts";
import { type Faults, Judge } from "./judge.ts";
import { Ledger } from "./ledger.ts";
import { isDamaged, type Plant, Tamperer } from "./plants.ts";
import { FOLLOWED, type Followed, partitionName, USERS } from "./queries.ts";
import { Reader } from "./reader.ts";
import { write } from "./writer.ts";

/** How long subscribers may take to come to the end once the writers are done. */
const CATCH_UP_MS_MAX = 60_000;

/** How much of the server's output is shown when a run breaks off. */
const OUTPUT_LENGTH_MAX = 4000;

const JUDGE_EVERY_MS = 100;
const PROGRESS_EVERY_MS = 5000;
const FLUSH_EVERY_MS = 1500;

export interface CheckOptions {
  readonly changes: number;
  readonly seed: number;
  readonly plant: Plant | undefined;
  readonly onProgress: (report: CheckReport) => void;
}

export interface CheckReport {
  readonly written: number;
  readonly delivered: number;
  readonly snapshotRows: number;
  readonly reconnects: number;
  readonly faults: Faults;
  readonly findings: readonly string[];
}

interface Pair {
  readonly followed: Followed;
  readonly judge: Judge;
  readonly reader: Reader;
}

export async function checkLive(options: CheckOptions): Promise<CheckReport> {
  await using server = await startReadyServer({
    config: {
      // Small, so that long replays are cut short here and not only in production.
      websocket: { replay_changes: 100 },
      logging: { level: "warn" },
    },
  });
  try {
    return await run(server, options);
  } catch (error) {
    const said = server.output.slice(-OUTPUT_LENGTH_MAX);
    throw new Error(`The run broke off; the server's last words:\n${said}`, { cause: error });
  }
}

async function run(server: ServerProcess, options: CheckOptions): Promise<CheckReport> {
  const random = new SeededRandom(options.seed);
  const ledger = new Ledger();
  const tokens = await prepare(server);
  const pairs = FOLLOWED.map((followed) =>
    pairFor(followed, { server, ledger, random, tokens, options }),
  );
  const judging = setInterval(() => judgeAll(pairs, ledger), JUDGE_EVERY_MS);
  const telling = setInterval(() => options.onProgress(report(pairs, ledger)), PROGRESS_EVERY_MS);
  const flushing = flushNowAndThen(server);
  try {
    // Some are there from the start, the others come while rows are written.
    for (const [index, { reader }] of pairs.entries()) {
      if (index % 2 === 0) reader.start();
      else setTimeout(() => reader.start(), random.between(100, 3000));
    }
    await writeAll(server, { ledger, random, tokens, changes: options.changes });
    ledger.close();
    await catchUp(pairs, ledger);
    judgeAll(pairs, ledger);
    for (const pair of pairs) await compareAtEnd(server, pair, { ledger, tokens });
  } finally {
    clearInterval(judging);
    clearInterval(telling);
    for (const { reader } of pairs) reader.stop();
    await flushing.stop();
  }
  return report(pairs, ledger);
}

/** Makes the tables and the users. Returns the tokens by user. */
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

interface PairOptions {
  readonly server: ServerProcess;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly tokens: ReadonlyMap<string, string>;
  readonly options: CheckOptions;
}

function pairFor(
  followed: Followed,
  { server, ledger, random, tokens, options }: PairOptions,
): Pair {
  const { table, user } = followed;
  const judge = new Judge(followed, ledger.partition(partitionName(table, user)));
  const { plant } = options;
  const reader = new Reader({
    url: server.webSocketUrl,
    token: tokens.get(user) ?? "",
    followed,
    random: new SeededRandom(random.u32()),
    onEvent: (event) => judge.add(event),
    ...(plant !== undefined && isDamaged(followed) ? { tamperer: new Tamperer(plant) } : {}),
  });
  return { followed, judge, reader };
}

/** Two writers on one partition, one on another, one on the shared table. */
async function writeAll(
  server: ServerProcess,
  {
    ledger,
    random,
    tokens,
    changes,
  }: {
    ledger: Ledger;
    random: SeededRandom;
    tokens: ReadonlyMap<string, string>;
    changes: number;
  },
): Promise<void> {
  const writers = [
    { user: "alice", table: "items" },
    { user: "alice", table: "items" },
    { user: "bob", table: "items" },
    { user: ADMIN, table: "board" },
  ] as const;
  await Promise.all(
    writers.map(({ user, table }, index) => {
      const token = tokens.get(user) ?? "";
      const mark = `${"abcd".charAt(index)}-`;
      const own = new SeededRandom(random.u32());
      return write({ server, ledger, random: own, token, user, table, mark }, changes);
    }),
  );
}

function flushNowAndThen(server: ServerProcess): { stop: () => Promise<void> } {
  let flushing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    flushing = flushing.then(() =>
      server.rows("STORAGE FLUSH TABLE live.items; STORAGE FLUSH TABLE live.board"),
    );
  }, FLUSH_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await flushing;
    },
  };
}

/** Waits until every subscriber has been told that it has everything. */
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

/** What the subscriber holds, what the ledger says, and what SELECT says, must be one. */
async function compareAtEnd(
  server: ServerProcess,
  { followed, judge }: Pair,
  { ledger, tokens }: { ledger: Ledger; tokens: ReadonlyMap<string, string> },
): Promise<void> {
  judge.finish(ledger.acknowledgedSeq);
  const { table, user, query } = followed;
  const text = query.sql.replace(/^SELECT .* FROM/, "SELECT id, _seq FROM");
  const options = { token: tokens.get(user) ?? "", params: query.params ?? [] };
  const selected = await server.rows(text, options);
  const seqs = new Map(selected.map(([id, seq]) => [Number(id), Number(seq)]));
  const kept = ledger
    .partition(partitionName(table, user))
    .rowsAt(ledger.acknowledgedSeq)
    .filter(({ row }) => query.keeps(row));
  const isSame =
    kept.length === seqs.size && kept.every(({ row, seq }) => seqs.get(row.id) === seq);
  if (!isSame) throw new Error(`SELECT and the ledger disagree: ${followed.name}`);
}

function report(pairs: readonly Pair[], ledger: Ledger): CheckReport {
  const faults: Faults = { missed: 0, doubled: 0, outOfOrder: 0, aboveBoundary: 0, wrong: 0 };
  for (const { judge } of pairs) {
    faults.missed += judge.faults.missed;
    faults.doubled += judge.faults.doubled;
    faults.outOfOrder += judge.faults.outOfOrder;
    faults.aboveBoundary += judge.faults.aboveBoundary;
    faults.wrong += judge.faults.wrong;
  }
  return {
    written: ledger.versionCount,
    delivered: pairs.reduce((sum, { judge }) => sum + judge.changeCount, 0),
    snapshotRows: pairs.reduce((sum, { judge }) => sum + judge.snapshotRowCount, 0),
    reconnects: pairs.reduce((sum, { reader }) => sum + reader.reconnects, 0),
    faults,
    findings: pairs.flatMap(({ judge }) => judge.findings),
  };
}
