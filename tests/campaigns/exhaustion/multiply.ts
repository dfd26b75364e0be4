/**
 * Repeats each construct of the grammar until it is refused or the SQL reaches the length limit.
 * In the meantime, measures how long a read by key waits.
 */

import { chanceFromSeed } from "../../../scripts/support/chance.ts";
import { mebibytes, residentBytes } from "../../../scripts/support/memory.ts";
import {
  bundleCommand,
  type ServerProcess,
  type SqlError,
  startReadyServer,
} from "../../support/server_process.ts";
import { startVictim } from "../abuse/beside.ts";
import { fillWall, findingsOf } from "../abuse/run.ts";
import type { Construct } from "./grammar/construct.ts";
import { CONSTRUCTS } from "./grammar/constructs.ts";
import { BUDGET_BYTES, PeakMemory, REFUSALS } from "./run.ts";

/**
 * The maximum number of repetitions of a construct. Long before this number, its SQL exceeds a
 * mebibyte.
 */
const COUNT_MAX = 2 ** 20;

const TEXT_LENGTH_MAX = 2 ** 20;

const TIMEOUT_MS = 5000;

/**
 * The number of milliseconds by which a statement may exceed its time limit before the delay
 * counts as a fault.
 */
const LATE_MS_MAX = 1000;

const WATCH_PERIOD_MS = 3;

export interface GrammarOptions {
  /** The initial number of repetitions, which is then multiplied by `factor` again and again. */
  readonly from: number;
  readonly factor: number;
  /** Only constructs whose titles contain this text run. */
  readonly like: string;
  /** For how many seconds new constructs are started; 0 runs all constructs. */
  readonly seconds: number;
  /** The seed for the order of the constructs. */
  readonly seed: number;
  /**
   * The longest that a read may wait while a request runs, and the limit on the 99th percentile
   * over all requests, in milliseconds.
   */
  readonly waitMsMax: number;
  readonly p99MsMax: number;
  /** The memory that the server may use in addition to a statement's budget. */
  readonly memoryBytesMax: number;
  /**
   * The injected fault: "hold" stops the server for half a second at intervals, and "memory" makes
   * its memory grow; undefined if no fault is injected.
   */
  readonly injected: string | undefined;
}

/** The outcome of a construct. */
interface Multiplied {
  readonly title: string;
  count: number;
  ended: string;
  longestMs: number;
  waitMs: number;
  peakMiB: number;
}

interface Attacked {
  readonly server: ServerProcess;
  readonly userToken: string;
  readonly memory: PeakMemory;
  readonly held: string[];
  readonly options: GrammarOptions;
}

/** Runs the constructs of the grammar. Returns the faults found. */
export async function multiplyGrammar(options: GrammarOptions): Promise<readonly string[]> {
  await using server = await startReadyServer({
    config: { performance: { query_memory_bytes: BUDGET_BYTES } },
    command: bundleCommand(injecting(options.injected)),
    env: { INJECTED_FAULT: options.injected },
  });
  await fillWall(server);
  const victim = startVictim({ url: server.url, token: await server.createUser("victim") });
  await victim.ready();
  const userToken = await server.createUser("mallory");
  const before = residentBytes(server.pid);
  const memory = new PeakMemory(server.pid);
  const held: string[] = [];
  let peakMiB = 0;
  const chosen = shuffled(CONSTRUCTS, options.seed).filter(({ title }) =>
    title.includes(options.like),
  );
  const endMs =
    options.seconds === 0 ? Number.POSITIVE_INFINITY : performance.now() + options.seconds * 1000;
  let count = 0;
  for (const construct of chosen) {
    if (performance.now() > endMs) break;
    count += 1;
    const outcome = await multiply(construct, { server, userToken, memory, held, options });
    peakMiB = Math.max(peakMiB, outcome.peakMiB);
    const boundMiB = mebibytes(before + BUDGET_BYTES + options.memoryBytesMax);
    if (outcome.peakMiB > boundMiB) {
      held.push(`${outcome.title}: memory grew to ${outcome.peakMiB} of ${boundMiB} MiB`);
    }
    print(outcome);
  }
  const { answers, errors, missed, p99Ms } = await victim.stop();
  memory.stop();
  held.push(...errors.slice(0, 5).map((error) => `the victim saw: ${error}`));
  if (missed > 0) held.push(`the victim never received ${missed} changes`);
  for (const [kind, ms] of Object.entries(p99Ms)) {
    if (ms > options.p99MsMax) held.push(`p99 of the victim's ${kind}: ${ms.toFixed(0)} ms`);
  }
  held.push(...(await findingsOf(server)));
  const work = Object.entries(p99Ms).map(([kind, ms]) => `${kind} ${ms.toFixed(1)}`);
  process.stdout.write(
    `grammar: ${count} of ${chosen.length} constructs, seed ${options.seed}; victim ${answers} answers, ${errors.length} errors, p99 ms: ${work.join(", ")}; ` +
      `memory ${mebibytes(before)} → ${peakMiB} MiB\n`,
  );
  for (const finding of held) process.stdout.write(`  HELD: ${finding}\n`);
  return held;
}

function shuffled(all: readonly Construct[], seed: number): Construct[] {
  const chance = chanceFromSeed(seed);
  const drawn = all.map((construct) => ({ construct, place: chance.below(2 ** 30) }));
  return drawn.toSorted((a, b) => a.place - b.place).map(({ construct }) => construct);
}

function injecting(injected: string | undefined): readonly string[] {
  if (injected === undefined) return [];
  const script = Bun.fileURLToPath(new URL("./injected_fault.ts", import.meta.url));
  return ["--preload", script];
}

async function multiply(construct: Construct, attacked: Attacked): Promise<Multiplied> {
  const { server, options } = attacked;
  const { title } = construct;
  const outcome = { title, count: 0, ended: "", longestMs: 0, waitMs: 0, peakMiB: 0 };
  let lastSql = "";
  for (let count = options.from; count <= COUNT_MAX; count *= options.factor) {
    const sql = construct.sql(count);
    // A construct that limits its own repetitions returns the same SQL again.
    if (sql === lastSql) break;
    lastSql = sql;
    // SQL that exceeds the length limit is refused without being read, so one such request is
    // enough.
    const isLast = sql.length > TEXT_LENGTH_MAX;
    if (isLast && outcome.count > 0) break;
    if (construct.before !== undefined) await server.rows(construct.before(count));
    const isRefused = await attack({ construct, count, sql, outcome }, attacked);
    if (construct.after !== undefined) await server.rows(construct.after);
    if (isRefused || isLast) break;
  }
  return outcome;
}

interface Text {
  readonly construct: Construct;
  readonly count: number;
  readonly sql: string;
  readonly outcome: Multiplied;
}

/** Sends one request and watches the server. Returns whether the request was refused. */
async function attack(
  { construct, count, outcome, sql }: Text,
  attacked: Attacked,
): Promise<boolean> {
  const { held, memory, options, server, userToken } = attacked;
  const token = construct.isDefining === true ? server.token : userToken;
  const params = construct.params?.(count) ?? [];
  const watch = startWatch(server, userToken);
  const startMs = performance.now();
  const error =
    construct.isLive === true
      ? await subscribe(server, { sql, token })
      : await run(server, { sql, token, params });
  const tookMs = performance.now() - startMs;
  const waitMs = await watch();
  const where = `${construct.title}, ${count} times`;
  outcome.count = count;
  outcome.ended = error === undefined ? "answered" : `${error.code}: ${error.message}`;
  outcome.longestMs = Math.max(outcome.longestMs, tookMs);
  outcome.waitMs = Math.max(outcome.waitMs, waitMs);
  outcome.peakMiB = Math.max(outcome.peakMiB, mebibytes(memory.take()));
  if (waitMs > options.waitMsMax) held.push(`${where}: a read waited for ${waitMs.toFixed(0)} ms`);
  if (tookMs > TIMEOUT_MS + LATE_MS_MAX) held.push(`${where}: took ${tookMs.toFixed(0)} ms`);
  if (error !== undefined && !REFUSALS.has(error.status)) {
    held.push(`${where}: ${error.status} ${error.code}: ${error.message.slice(0, 200)}`);
  }
  return error !== undefined;
}

interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

async function run(
  server: ServerProcess,
  { params, sql, token }: { sql: string; token: string; params: readonly unknown[] },
): Promise<Refusal | undefined> {
  const answer = await server.post(
    "/v1/api/sql",
    { sql, params, timeout_ms: TIMEOUT_MS },
    { Authorization: `Bearer ${token}` },
  );
  const body = (await answer.json()) as { error?: SqlError };
  const { error } = body;
  return error === undefined ? undefined : { ...error, status: answer.status };
}

/**
 * Subscribes over a WebSocket, because the SQL may be too long for a URL, and then closes the
 * socket.
 */
function subscribe(
  server: ServerProcess,
  { sql, token }: { sql: string; token: string },
): Promise<Refusal | undefined> {
  const { promise, reject, resolve } = Promise.withResolvers<Refusal | undefined>();
  const socket = new WebSocket(server.webSocketUrl, {
    headers: { Authorization: `Bearer ${token}` },
  });
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () =>
    socket.send(JSON.stringify({ type: "subscribe", subscription: { id: "s", sql } })),
  );
  socket.addEventListener("close", ({ code }) =>
    reject(new Error(`Cannot subscribe: closed with ${code}`)),
  );
  socket.addEventListener("message", ({ data }) => {
    // The server sends long messages compressed.
    const text =
      typeof data === "string" ? data : Buffer.from(Bun.gunzipSync(data as ArrayBuffer)).toString();
    const message = JSON.parse(text) as { type: string; code?: string; message?: string };
    if (message.type === "subscription_ack") resolve(undefined);
    else if (message.code !== undefined) {
      resolve({ status: 400, code: message.code, message: message.message ?? "" });
    }
  });
  return promise.finally(() => socket.terminate());
}

/**
 * Reads a row repeatedly. Returns a function that stops the reads and returns the longest wait.
 */
function startWatch(server: ServerProcess, token: string): () => Promise<number> {
  const state = { isOver: false, longestMs: 0 };
  const watching = readUntilOver(server, token, state);
  return async () => {
    state.isOver = true;
    await watching;
    return state.longestMs;
  };
}

async function readUntilOver(
  server: ServerProcess,
  token: string,
  state: { isOver: boolean; longestMs: number },
): Promise<void> {
  while (!state.isOver) {
    const startMs = performance.now();
    await server.rows("SELECT body FROM app.wall WHERE id = 7", { token });
    state.longestMs = Math.max(state.longestMs, performance.now() - startMs);
    await Bun.sleep(WATCH_PERIOD_MS);
  }
}

function print({ count, ended, longestMs, peakMiB, title, waitMs }: Multiplied): void {
  const most = `${longestMs.toFixed(0)} ms, a read waited ${waitMs.toFixed(0)} ms, ${peakMiB} MiB`;
  process.stdout.write(`  ${title} × ${count}: ${most}; ${ended.slice(0, 150)}\n`);
}
