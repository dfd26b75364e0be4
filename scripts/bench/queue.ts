/**
 * Shows that history does not slow down current work. The script compares a table that is written
 * like a queue and keeps its history with a fresh table that has the same rows and no history.
 *
 * 20,000 rows are live. Each round inserts 2,000 rows at the front, deletes as many at the end,
 * and updates a tenth of all rows, until `--rows` versions have been written. With `--owners`, a
 * USER table has a queue of 20 rows for each owner. After each million versions, and at the end,
 * every job is measured alternately with the fresh table, which is on a second server. The script
 * prints the medians, and the factor by which the queue takes longer, which may not exceed two.
 * Then live queries resume from random positions in the history, and the changes that they receive
 * are checked by arithmetic alone.
 *
 * With `--postgres`, the same workload runs in PostgreSQL, with its autovacuum. Exits with 1 if a
 * bound is missed, unless `--no-bounds` is given, or if a resume is wrong. With `--inject`, a
 * change is damaged before it is checked, and the script exits with 0 only if the damage is
 * noticed.
 */
import { startPostgres } from "../../tests/support/postgres.ts";
import { countOption, flag, optionalOneOf, readOptions } from "../support/arguments.ts";
import {
  type Figures,
  fillAlike,
  forOwners,
  measureByTurns,
  type Progress,
  runRound,
} from "./queue/measure.ts";
import { JOBS, type Queue } from "./queue/measured_queue.ts";
import { PostgresQueue } from "./queue/postgres.ts";
import { isReplayFault, REPLAY_FAULTS, replayFaults } from "./queue/replay.ts";
import { aliveAfter, insertSql, STATEMENTS_PER_ROUND, versionsPerRound } from "./queue/rounds.ts";
import { TABLE, TidemarkQueue } from "./queue/tidemark.ts";

const options = readOptions({
  rows: countOption("the number of versions to write", 10_000_000),
  owners: countOption(
    "the number of owners of a USER table, each with a queue of 20 rows; 0 for a SHARED table",
    0,
  ),
  every: countOption("the number of versions between two measurements", 1_000_000),
  replays: countOption("the number of resumes from random positions of the history", 8),
  postgres: flag("runs the same in PostgreSQL"),
  "no-bounds": flag("only reports how many times longer the queue takes"),
  inject: optionalOneOf(REPLAY_FAULTS, "damages a change, and requires that the damage is noticed"),
});
const { rows: rowCount, owners, every, replays: replayCount, inject: injected } = options;

const RATIO_MAX = 2;

/**
 * The number of owners whose statements are recorded, so that their history can be replayed later.
 */
const FOLLOWED_OWNERS = 4;

const REPLAYED_ROUNDS = 3;

const shape = owners === 0 ? { live: 20_000, step: 2000 } : { live: 20, step: 10 };

interface Checkpoint {
  readonly millions: number;
  readonly queue: Figures;
  readonly fresh: Figures;
}

const queue = await TidemarkQueue.start(owners);
const fresh = await TidemarkQueue.start(owners);
const written = progressOf(queue);
const checkpoints = await writeAndMeasure([written, progressOf(fresh)]);
const faults = await replayed();
await queue.stop();
await fresh.stop();
const peers = options.postgres ? await postgresCheckpoints() : [];
process.stdout.write(`\n${tableOf(checkpoints)}\n`);
if (peers.length > 0) process.stdout.write(`\nPostgreSQL\n\n${tableOf(peers)}\n`);
process.exitCode = verdict();

function progressOf(of: Queue): Progress {
  const followed = Math.min(of.ownerCount, FOLLOWED_OWNERS);
  const lastSeqs = new Map(Array.from({ length: followed }, (_, owner) => [owner, []]));
  return { queue: of, shape, round: 0, lastSeqs };
}

async function writeAndMeasure([old, alike]: readonly [Progress, Progress]): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  const ownerCount = old.queue.ownerCount;
  const [firstId, lastId] = aliveAfter(shape, 0);
  await forOwners(ownerCount, async (owner) => {
    await old.queue.run([insertSql({ firstId, lastId }, old.queue.target(owner))], owner);
  });
  const perRound = versionsPerRound(shape) * ownerCount;
  let next = Math.min(every, rowCount);
  const startMs = performance.now();
  for (;;) {
    await forOwners(ownerCount, (owner) => runRound(old, owner));
    old.round += 1;
    const versions = old.round * perRound;
    if (versions < next) continue;
    await fillAlike(alike, old.round);
    const [measured, beside] = await measureByTurns([old, alike]);
    const checkpoint = { millions: versions / 1_000_000, queue: measured, fresh: beside };
    found.push(checkpoint);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(0);
    process.stderr.write(`${seconds} s, ${lineOf(checkpoint)}\n`);
    if (versions >= rowCount) return found;
    next = Math.min(next + every, rowCount);
  }
}

async function replayed(): Promise<string[]> {
  const found: string[] = [];
  for (let replay = 0; replay < replayCount; replay += 1) {
    const owner = replay % written.lastSeqs.size;
    const lastSeqs = written.lastSeqs.get(owner) ?? [];
    const rounds = Math.min(REPLAYED_ROUNDS, written.round - 1);
    const last = lastSeqs.length - 1 - rounds * STATEMENTS_PER_ROUND;
    // The first replay starts at the oldest existing history. Each later replay starts at a random
    // position.
    const after = replay === 0 ? 0 : Math.floor(Math.random() * (last + 1));
    const { webSocketUrl } = queue.server;
    const followed = { webSocketUrl, token: queue.tokenOf(owner), table: TABLE, shape, lastSeqs };
    const damage =
      replay === 0 && injected !== undefined && isReplayFault(injected) ? injected : undefined;
    found.push(...(await replayFaults(followed, { after, rounds, injected: damage })));
  }
  return found;
}

async function postgresCheckpoints(): Promise<Checkpoint[]> {
  const postgres = await startPostgres();
  const [old, alike] = await Promise.all(
    ["queue_old", "queue_fresh"].map((table) =>
      PostgresQueue.open(postgres.url, { owners, table }),
    ),
  );
  if (old === undefined || alike === undefined) throw new Error("there are two queues");
  const found = await writeAndMeasure([progressOf(old), progressOf(alike)]);
  await old.stop();
  await alike.stop();
  await postgres.stop();
  return found;
}

function ratioOf({ fresh: beside, queue: old }: Checkpoint, job: (typeof JOBS)[number]): number {
  return (old[job] ?? Number.NaN) / (beside[job] ?? Number.NaN);
}

function lineOf(checkpoint: Checkpoint): string {
  const measured = JOBS.filter((job) => checkpoint.queue[job] !== undefined);
  const ratios = measured.map((job) => `${job} ${ratioOf(checkpoint, job).toFixed(2)} ×`);
  return `${checkpoint.millions.toFixed(1)} M versions: ${ratios.join(", ")}`;
}

function tableOf(found: readonly Checkpoint[]): string {
  const head = ["job", ...found.map(({ millions }) => `${millions.toFixed(1)} M`), "fresh", "then"];
  const rows = JOBS.filter((job) => found[0]?.queue[job] !== undefined).map((job) => {
    const last = found.at(-1);
    const times = [last?.fresh[job], last?.queue[job]].map((ms) => `${(ms ?? 0).toFixed(2)} ms`);
    const ratios = found.map((each) => `${ratioOf(each, job).toFixed(2)} ×`);
    const cells: string[] = [job];
    return cells.concat(ratios, times);
  });
  const rule = head.map((_, index) => (index === 0 ? "---" : "---:"));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Prints the faults and the missed bounds, and returns the exit code. */
function verdict(): number {
  for (const fault of faults) process.stdout.write(`  ${fault}\n`);
  if (injected !== undefined) {
    process.stdout.write(`injected ${injected}: ${faults.length > 0 ? "found" : "NOT FOUND"}\n`);
    return faults.length > 0 ? 0 : 1;
  }
  process.stdout.write(faults.length === 0 ? "every resume replays exactly\n" : "NOT SOUND\n");
  const missed = JOBS.filter((job) => checkpoints.some((each) => ratioOf(each, job) > RATIO_MAX));
  if (missed.length > 0) process.stdout.write(`above ${RATIO_MAX} ×: ${missed.join(", ")}\n`);
  return faults.length > 0 || (missed.length > 0 && !options["no-bounds"]) ? 1 : 0;
}
