/**
 * Shows where the server spends processor time under a load, by function: in its own code, in the
 * runtime's native code on its behalf, and in the system.
 *
 * Needs Linux and, unless `--exits` is given, its `perf`. A sampling profiler inside the runtime
 * attributes short native calls to the wrong functions. This one samples from outside, and uses
 * the runtime's own records to locate each compiled function. Times are in microseconds per
 * request, on a machine that also runs the load: they allow comparisons between functions, not
 * between machines. With `--exits`, the script instead counts how many times optimised code was
 * left, and why, once the server is warm.
 *
 *     insert  single rows of 64 clients          same  one query, followed by 1,000
 *     bulk    statements of 1,000 rows, by row   own   1,000 users who follow their own rows
 *     point   reads by key of 64 clients
 *
 * Two runs of the same tree differ by several percent, so compare several runs of each side.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countOption, flag, oneOf, readOptions } from "../support/arguments.ts";
import { runLoad, takeIds } from "./compare/jobs.ts";
import type { LoadJob, LoadResult } from "./compare/load.ts";
import { exitsIn } from "./profile/exits.ts";
import { JitDump } from "./profile/jit_dump.ts";
import { type Spot, samplesIn } from "./profile/samples.ts";
import { startTidemark } from "./systems/start_systems.ts";

const JOBS = ["insert", "bulk", "point", "same", "own"] as const;

const WARM_ROUNDS = 4;
const WARM_SECONDS = 2;
/**
 * How long the load runs before sampling starts, in milliseconds, because its sockets must open
 * first.
 */
const LEAD_MS = 2000;
const SAMPLES_PER_SECOND = 4000;
const FOLLOWERS = 1000;
const ROWS = 100_000;

const {
  job: kind,
  seconds,
  top,
  exits: countsExits,
} = readOptions({
  job: oneOf(JOBS, "the load", "insert"),
  seconds: countOption("how long samples are taken", 4),
  top: countOption("how many functions are shown", 40),
  exits: flag("instead counts how often optimised code was left, and why"),
});
if (!countsExits && Bun.which("perf") === null) {
  fail("Cannot profile: perf is not installed (Debian: linux-perf)");
}

const directory = mkdtempSync(join(tmpdir(), "tidemark-profile-"));
process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
const begun = await startTidemark(
  kind === "own" ? FOLLOWERS : 0,
  countsExits
    ? { BUN_JSC_printEachOSRExit: "1" }
    : { BUN_JSC_useJITDump: "1", BUN_JSC_jitDumpDirectory: directory },
);
const { system: tidemark } = begun;
await using server = begun.server;
if (kind === "point") {
  await runLoad({ kind: "bulk", system: tidemark, id: 1, rowCount: ROWS, batchRows: 1000 });
}
for (let round = 0; round < WARM_ROUNDS; round += 1) await load(kind, WARM_SECONDS);

if (countsExits) await countExits(kind);
else await profile(kind);

async function load(job: (typeof JOBS)[number], loadSeconds: number): Promise<LoadResult> {
  if (job !== "bulk") return await runLoad(jobOf(job, loadSeconds));
  const startMs = performance.now();
  let rows = 0;
  do {
    await runLoad({
      kind: "bulk",
      system: tidemark,
      id: takeIds(ROWS),
      rowCount: ROWS,
      batchRows: 1000,
    });
    rows += ROWS;
  } while (performance.now() - startMs < loadSeconds * 1000);
  return { rate: (rows * 1000) / (performance.now() - startMs) };
}

function jobOf(job: Exclude<(typeof JOBS)[number], "bulk">, loadSeconds: number): LoadJob {
  const common = { system: tidemark, seconds: loadSeconds };
  if (job === "point") return { ...common, kind: "point", clientCount: 64, id: ROWS };
  const id = takeIds(10_000_000);
  if (job === "insert") return { ...common, kind: "insert", clientCount: 64, id };
  const rate = job === "own" ? 64 : 4;
  return { ...common, kind: "capacity", topic: job, subscriberCount: FOLLOWERS, rate, id };
}

async function countExits(job: (typeof JOBS)[number]): Promise<void> {
  const before = server.output.length;
  await load(job, seconds);
  const exits = exitsIn(server.output.slice(before));
  for (const { count, what } of exits.slice(0, top)) print(`${count}`.padStart(7), what);
  print(`${exits.reduce((sum, { count }) => sum + count, 0)} exits from optimised code`);
}

async function profile(job: (typeof JOBS)[number]): Promise<void> {
  const loaded = load(job, seconds + (2 * LEAD_MS) / 1000);
  await Bun.sleep(LEAD_MS);
  const recording = join(directory, "recording");
  const how = ["-k", "mono", "-e", "cpu-clock", "-F", String(SAMPLES_PER_SECOND), "-g"];
  const what = ["-o", recording, "-p", String(server.pid), "--", "sleep", String(seconds)];
  await perf("record", ...how, ...what);
  report(
    await loaded,
    await perf("script", "-i", recording, "--ns", "-F", "comm,tid,time,ip,sym,dso"),
  );
}

function report(result: LoadResult, text: string): void {
  const requests = (result["rate"] ?? result["writes"] ?? 0) * seconds;
  const usOf = (samples: number): number => (samples * 1e6) / SAMPLES_PER_SECOND / requests;
  const name = readdirSync(directory).find((file) => file.endsWith(".dump"));
  if (name === undefined)
    fail("Cannot profile: the runtime wrote no file that lists its compiled code");
  const byThread = new Map<string, number>();
  const byFunction = new Map<string, Record<Spot, number>>();
  for (const sample of samplesIn(text, new JitDump(readFileSync(join(directory, name))))) {
    const isMain = sample.threadId === server.pid;
    const thread = isMain ? "main thread" : sample.threadName;
    byThread.set(thread, (byThread.get(thread) ?? 0) + 1);
    if (!isMain) continue;
    const nearest = sample.nearest ?? "(the runtime by itself)";
    const counts = byFunction.get(nearest) ?? { own: 0, native: 0, system: 0 };
    counts[sample.spot] += 1;
    byFunction.set(nearest, counts);
  }
  print(`${Math.round(requests / seconds)} requests/s; microseconds a request`);
  const us = (samples: number): string => usOf(samples).toFixed(2).padStart(8);
  for (const [thread, count] of sorted(byThread, (own) => own)) print(us(count), thread);
  print(["all", "own", "native", "system"].map((head) => head.padStart(8)).join(""));
  for (const [nearest, counts] of sorted(byFunction, total).slice(0, top)) {
    const { native, own, system } = counts;
    print([total(counts), own, native, system].map(us).join(""), nearest);
  }
}

function total({ native, own, system }: Readonly<Record<Spot, number>>): number {
  return own + native + system;
}

/** Sorts entries by value, the largest first. */
function sorted<T>(map: ReadonlyMap<string, T>, size: (value: T) => number): [string, T][] {
  return [...map].toSorted(([, left], [, right]) => size(right) - size(left));
}

async function perf(...words: readonly string[]): Promise<string> {
  const child = Bun.spawn(["perf", ...words], { stdout: "pipe", stderr: "pipe" });
  const [text, complaint, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) fail(`Cannot profile: perf ${words[0]} ended with ${code}\n${complaint}`);
  return text;
}

function print(...parts: readonly string[]): void {
  process.stdout.write(`${parts.join(" ")}\n`);
}

function fail(message: string, code = 1): never {
  process.stderr.write(`${message}\n`);
  process.exit(code);
}
