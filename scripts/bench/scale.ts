/**
 * Shows that memory, startup time and read times do not grow with the number of rows on disk.
 *
 * It fills a SHARED table with rows and a USER table with owners, alongside two small tables of a
 * million rows, in-process through the store. Then it starts the real server on the directory and
 * reads rows by key and by owner over HTTP, from the large and the small tables in turn. It prints
 * each target with the measured value, and exits with 1 if a target is missed. 50 million rows and
 * a million owners need 2 GB of disk and some minutes. Everything is removed at the end.
 */
import { readFileSync } from "node:fs";
import { type ServerProcess, startReadyServer } from "../../tests/support/server_process.ts";
import { countOption, readOptions } from "../support/arguments.ts";
import { median } from "../support/statistics.ts";
import { definitionOf, fillKeyed, fillOwned, openStopped, untilQuiet } from "./scale/tables.ts";

const {
  rows: rowCount,
  owners: ownerCount,
  "owner-rows": rowsPerOwner,
  reads: readCount,
} = readOptions({
  rows: countOption("the number of rows of the SHARED table", 50_000_000),
  owners: countOption("the number of owners of the USER table", 1_000_000),
  "owner-rows": countOption("the number of rows of each owner", 20),
  reads: countOption("the number of reads of each kind", 2000),
});

const SMALL_ROWS = 1_000_000;
const SMALL_OWNERS: number = SMALL_ROWS / rowsPerOwner;

/** The number of users who each read only their own rows. */
const READERS = 10;

/** The number of different keys to read. */
const KEYS = 500;

const ANON_MIB_MAX = 300;
const READY_MS_MAX = 2000;
const OWNER_READ_MS_MAX = 2;
const FILES_MAX = 32;

/**
 * The maximum factor by which reads of the large table may be slower than reads of the small one,
 * including measurement noise.
 */
const RATIO_MAX = 1.5;

let brokenCount = 0;

await using server = await startReadyServer();
const tokens = await prepare(server);
await fill(server);
await measure(server);
process.exitCode = brokenCount > 0 ? 1 : 0;

async function prepare(system: ServerProcess): Promise<string[]> {
  await system.rows("CREATE NAMESPACE scale");
  for (const size of ["small", "large"]) {
    await system.rows(definitionOf(`scale.keyed_${size}`, "SHARED"));
    await system.rows(definitionOf(`scale.owned_${size}`, "USER"));
  }
  const users: string[] = [];
  for (let i = 0; i < READERS; i += 1) users.push(await system.createUser(`reader${i}`));
  return users;
}

async function fill(system: ServerProcess): Promise<void> {
  system.kill("SIGTERM");
  await system.exited();
  const database = await openStopped(system.dataPath);
  const small = { ownerCount: SMALL_OWNERS, rowsPerOwner };
  await timed(`${SMALL_ROWS} rows by key`, () =>
    fillKeyed(database, { name: "scale.keyed_small", rowCount: SMALL_ROWS }),
  );
  await timed(`${SMALL_OWNERS} owners`, () =>
    fillOwned(database, { name: "scale.owned_small", ...small }),
  );
  await timed(`${rowCount} rows by key`, () =>
    fillKeyed(database, { name: "scale.keyed_large", rowCount }),
  );
  await timed(`${ownerCount} owners`, () =>
    fillOwned(database, { name: "scale.owned_large", ownerCount, rowsPerOwner }),
  );
  await timed("the last merges", () => untilQuiet(database));
  await database.close();
}

async function timed(what: string, work: () => Promise<void>): Promise<void> {
  const startMs = performance.now();
  await work();
  say(`wrote ${what}: ${((performance.now() - startMs) / 1000).toFixed(0)} s`);
}

async function measure(system: ServerProcess): Promise<void> {
  const startMs = performance.now();
  await system.start();
  await system.rows("SELECT 1");
  const readyMs = performance.now() - startMs;
  say(`the process had used ${cpuMs(system)} ms of a processor when it was ready`);
  judge("ready, from the start of the process", readyMs, { max: READY_MS_MAX, unit: "ms" });
  await judgeFiles(system, { name: "keyed_large", rows: rowCount });
  await judgeFiles(system, { name: "owned_large", rows: ownerCount * rowsPerOwner });
  judgeMemory(system, "after the start");
  // The keys to read, as fractions of a table's key range. The first read of a block also verifies
  // the block's checksum, so a large table, which has more blocks, needs more reads to warm up.
  const ids = Array.from({ length: KEYS }, () => Math.random());
  const byKey = (isLarge: boolean, turn: number): Question => ({
    where: "WHERE id = $1",
    params: [1 + Math.floor((ids[turn % KEYS] ?? 0) * (isLarge ? rowCount : SMALL_ROWS))],
  });
  say(`the first ${KEYS} reads by key`);
  await byTurns("keyed", { rowsExpected: 1, reads: KEYS }, byKey);
  say("the same keys again");
  const keyed = await byTurns("keyed", { rowsExpected: 1, reads: readCount }, byKey);
  const ratio = { max: RATIO_MAX, unit: "×" };
  judge("row by key, times the small table's", keyed.large / keyed.small, ratio);
  const owned = await byTurns("owned", { rowsExpected: rowsPerOwner, reads: readCount }, () => ({
    where: "",
    params: [],
  }));
  judge("rows of an owner, times the small table's", owned.large / owned.small, ratio);
  judge("rows of an owner, median", owned.large, { max: OWNER_READ_MS_MAX, unit: "ms" });
  judgeMemory(system, "after the reads");
}

async function judgeFiles(
  system: ServerProcess,
  { name, rows }: { name: string; rows: number },
): Promise<void> {
  const [found = []] = await system.rows(
    `SELECT COUNT(*), SUM(row_count), SUM(size_bytes) FROM system.segments WHERE table_name = '${name}'`,
  );
  const [files, stored, bytes] = found.map(Number);
  if (stored !== rows) throw new Error(`Cannot trust ${name}: it has ${stored} rows`);
  say(
    `${name}: ${rows.toLocaleString("en")} rows, ${((bytes ?? 0) / rows).toFixed(1)} bytes a row`,
  );
  judge(`files of ${name}`, files ?? Number.NaN, { max: FILES_MAX, unit: "files" });
}

/**
 * Returns the processor time of the server process in milliseconds. The system counts it in
 * hundredths of a second.
 */
function cpuMs({ pid }: ServerProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/**
 * Checks that the memory allocated by the process is within its bound. Pages of mapped files are
 * not counted, because the system can reclaim them.
 */
function judgeMemory({ pid }: ServerProcess, when: string): void {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mebibytes = Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1024;
  judge(`memory of the process ${when}`, mebibytes, { max: ANON_MIB_MAX, unit: "MiB" });
}

interface Question {
  readonly where: string;
  readonly params: readonly unknown[];
}

/** Queries the small and the large table alternately. Returns the medians in milliseconds. */
async function byTurns(
  kind: "keyed" | "owned",
  { rowsExpected, reads }: { rowsExpected: number; reads: number },
  question: (isLarge: boolean, turn: number) => Question,
): Promise<{ small: number; large: number }> {
  const smallTimes: number[] = [];
  const largeTimes: number[] = [];
  for (let i = 0; i < 2 * reads; i += 1) {
    const isLarge = i % 2 === 1;
    const { params, where } = question(isLarge, Math.floor(i / 2));
    const sql = `SELECT id, kind, qty, amount FROM scale.${kind}_${isLarge ? "large" : "small"} ${where}`;
    const token = kind === "owned" ? tokens[i % tokens.length] : undefined;
    const startMs = performance.now();
    const rows = await server.rows(sql, token === undefined ? { params } : { params, token });
    (isLarge ? largeTimes : smallTimes).push(performance.now() - startMs);
    if (rows.length !== rowsExpected) throw new Error(`Cannot trust ${sql}: ${rows.length} rows`);
  }
  const small = median(smallTimes);
  const large = median(largeTimes);
  say(`${kind} by turns: small ${small.toFixed(3)} ms, large ${large.toFixed(3)} ms`);
  return { small, large };
}

function judge(what: string, found: number, { max, unit }: { max: number; unit: string }): void {
  const isKept = found <= max;
  if (!isKept) brokenCount += 1;
  const shown = found.toLocaleString("en", { maximumFractionDigits: found < 10 ? 2 : 0 });
  say(`${isKept ? "ok    " : "BROKEN"} ${what}: ${shown} ${unit} (at most ${max})`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
