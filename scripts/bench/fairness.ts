/**
 * Measures how a demanding statement affects other clients: how long an INSERT of a single row and
 * the delivery of a change take while the statement runs, and how soon KILL QUERY ends it.
 *
 * Starts the real server and loads a table of `--rows` rows. While each of the statements runs,
 * another client inserts a row into a table of its own every few milliseconds, and a third client
 * follows that table. A statement is killed after `--seconds`, unless it is meant to finish.
 * Afterwards the rows are counted: a killed change must have changed nothing. With `--strict`, the
 * script exits with 1 if a figure misses its target: 25 ms at the 99th percentile, and 250 ms for
 * the end of a killed statement. Only a quiet machine gives meaningful figures.
 */
import { startServer } from "../../tests/support/server_process.ts";
import { countOption, flag, readOptions, textOption } from "../support/arguments.ts";
import { askBeside } from "./fairness/asker.ts";
import { type Load, loadsOver } from "./fairness/loads.ts";
import { beginProbe, type Probe } from "./fairness/probe.ts";

/** The number of rows per INSERT while the table is being loaded. */
const LOADED_AT_ONCE = 500_000;

const PERCENTILE_MS_MAX = 25;
const KILL_MS_MAX = 250;

/** How long to wait for a statement that is meant to finish, in milliseconds. */
const END_MS_MAX = 300_000;

const { rows, seconds, only, strict } = readOptions({
  rows: countOption("the number of rows of the table", 10_000_000),
  seconds: countOption("the number of seconds after which a statement is killed", 4),
  only: textOption("<part>", "runs only the statements whose name contains this text", ""),
  strict: flag("exits with 1 if a figure misses its target"),
});
let misses = 0;

await using server = await startServer({
  config: {
    performance: { query_memory_bytes: 4_294_967_296, request_timeout: 0 },
  },
});
await server.setup();
await server.rows(
  "CREATE NAMESPACE f; " +
    "CREATE SHARED TABLE f.big (id BIGINT PRIMARY KEY, a INT, v TEXT); " +
    "CREATE SHARED TABLE f.copy (id BIGINT PRIMARY KEY, a INT, v TEXT); " +
    "CREATE SHARED TABLE f.victim (id BIGINT PRIMARY KEY, sent DOUBLE)",
);
for (let from = 1; from <= rows; from += LOADED_AT_ONCE) {
  const to = Math.min(rows, from + LOADED_AT_ONCE - 1);
  const series = `generate_series(${from}, ${to}) AS s(g)`;
  await ask(
    `INSERT INTO f.big SELECT g, g % 1000, 'text ' || (g::BIGINT * 7919) % 1000003 FROM ${series}`,
  );
}
await ask("STORAGE FLUSH TABLE f.big");
print(`${rows} rows loaded; milliseconds at the median / 99th percentile / maximum`);
const probe = await beginProbe(server);
await measure({ name: "nothing", sql: "SELECT 1", ends: true, stays: undefined });
for (const load of loadsOver(rows)) if (load.name.includes(only)) await measure(load);
await probe.end();
process.exit(strict && misses > 0 ? 1 : 0);

async function measure(load: Load): Promise<void> {
  const before = load.stays === undefined ? undefined : await ask(load.stays);
  probe.begin();
  const startMs = performance.now();
  const { token, url } = server;
  const running = askBeside({ url, token, sql: load.sql, timeoutMs: END_MS_MAX });
  let killMs: number | undefined;
  if (load.ends) {
    await running;
    await Bun.sleep(load.name === "nothing" ? 1000 * seconds : 1000);
  } else {
    await Promise.race([running, Bun.sleep(1000 * seconds)]);
    const killedAtMs = await kill();
    const { readAtMs } = await running;
    killMs = killedAtMs === undefined ? undefined : readAtMs - killedAtMs;
  }
  const tookMs = performance.now() - startMs;
  const { end, isSuccess } = await running;
  report(load, { figures: probe.take(), killMs, tookMs, end });
  if (load.stays === undefined || isSuccess) return;
  const after = await ask(load.stays);
  if (JSON.stringify(after) !== JSON.stringify(before)) {
    misses += 1;
    print(`  NOT ATOMIC: ${JSON.stringify(before)} became ${JSON.stringify(after)}`);
  }
}

/**
 * Kills the measured statement, but not the query that looks for it. Returns the time of the kill;
 * undefined if the measured statement is not running.
 */
async function kill(): Promise<number | undefined> {
  const listed = await ask("SELECT query_id FROM system.queries WHERE sql NOT LIKE '%system.%'");
  const [queryId] = listed.flat().map(String);
  if (queryId === undefined) return undefined;
  const atMs = Date.now();
  await server.sql(`KILL QUERY '${queryId}'`);
  return atMs;
}

function report(
  { name }: Load,
  outcome: {
    figures: ReturnType<Probe["take"]>;
    killMs: number | undefined;
    tookMs: number;
    end: string;
  },
): void {
  const { figures, killMs, tookMs, end } = outcome;
  const isSlow = Object.values(figures).some(({ p99 }) => p99 > PERCENTILE_MS_MAX);
  const isStubborn = killMs !== undefined && killMs > KILL_MS_MAX;
  if (isSlow || isStubborn) misses += 1;
  const shown = Object.entries(figures).map(
    ([what, { count, max, p50, p99 }]) =>
      `${what} ${[p50, p99, max].map((ms) => ms.toFixed(1)).join(" / ")} (${count})`,
  );
  const killed = killMs === undefined ? "" : `; killed in ${killMs.toFixed(0)}`;
  const verdict = isSlow || isStubborn ? "  MISSED" : "";
  print(`${name}: ${shown.join("; ")}; ${(tookMs / 1000).toFixed(1)} s, ${end}${killed}${verdict}`);
}

async function ask(sql: string): Promise<readonly (readonly unknown[])[]> {
  const { body } = await server.sql(sql, { fields: { timeout_ms: END_MS_MAX } });
  if (body.error === undefined) return body.results.at(-1)?.rows ?? [];
  throw new Error(`Cannot run ${sql.slice(0, 100)}: ${body.error.message}`);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
