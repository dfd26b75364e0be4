/**
 * Runs one kind of attack on a new server. The victim starts, the statements run alongside it, and
 * then the statements, the victim and the server are judged.
 */

import { mebibytes, residentBytes } from "../../../scripts/support/memory.ts";
import {
  type ServerProcess,
  type SqlBody,
  type SqlError,
  startReadyServer,
} from "../../support/server_process.ts";
import { startVictim } from "../abuse/beside.ts";
import { fillWall, findingsOf } from "../abuse/run.ts";
import type { VictimReport } from "../abuse/victim.ts";
import { type Attack, type AttackName, attacksOf } from "./attacks.ts";

/** The memory limit of a statement. */
export const BUDGET_BYTES: number = 64 * 2 ** 20;

/** The number of bytes that the server may use beyond the memory limit of a statement. */
const MEMORY_BYTES_MAX = 200_000_000;

/** How many bytes of an endless response are read. */
const READ_BYTES_MAX = 256 * 2 ** 20;

const SAMPLE_MS = 20;

/** The status codes with which the server may refuse a statement as too expensive or invalid. */
export const REFUSALS: ReadonlySet<number> = new Set([400, 408, 409, 413, 422, 504]);

export interface ExhaustionOptions {
  readonly name: AttackName;
  readonly seconds: number;
  /** The time limit of a statement. A product of 10^9 rows takes longer and must be refused. */
  readonly statementSeconds: number;
  readonly rowCount: number;
  readonly p99MsMax: number;
}

interface Outcome {
  readonly title: string;
  count: number;
  /** How the statement last ended: "answered", or the code and reason of its refusal. */
  ended: string;
  longestMs: number;
  /**
   * The server's peak memory while the statement ran, including the time since the previous
   * statement.
   */
  peakMiB: number;
}

/** Samples the memory of the server, and reports its peak since the last call, in bytes. */
export class PeakMemory {
  readonly #pid: number;
  readonly #sampling: Timer;
  #bytes = 0;

  constructor(pid: number) {
    this.#pid = pid;
    this.#sampling = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  take(): number {
    this.#sample();
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }

  stop(): void {
    clearInterval(this.#sampling);
  }

  #sample(): void {
    this.#bytes = Math.max(this.#bytes, residentBytes(this.#pid));
  }
}

export interface ExhaustionReport {
  readonly outcomes: readonly Outcome[];
  readonly victim: VictimReport;
  readonly memory: { readonly beforeMiB: number; readonly peakMiB: number };
  /** The requirements that the server violated; empty if there are none. */
  readonly held: readonly string[];
}

export async function runAttack(options: ExhaustionOptions): Promise<ExhaustionReport> {
  const { name, p99MsMax, rowCount, seconds, statementSeconds } = options;
  await using server = await startReadyServer({
    config: {
      performance: { query_memory_bytes: BUDGET_BYTES, request_timeout: statementSeconds },
    },
  });
  await fillWall(server);
  const token = await server.createUser("victim");
  const victim = startVictim({ url: server.url, token });
  await victim.ready();
  // By now the server has responded to requests and read the rows of the large table, so its
  // caches are warm.
  const before = residentBytes(server.pid);
  const memory = new PeakMemory(server.pid);
  const held: string[] = [];
  const attacks = attacksOf(name, rowCount);
  const outcomes = await attackFor(server, { attacks, seconds, held, memory });
  const report = await victim.stop();
  const lastMiB = mebibytes(memory.take());
  memory.stop();

  held.push(...report.errors.slice(0, 5).map((error) => `the victim saw: ${error}`));
  for (const [kind, ms] of Object.entries(report.p99Ms)) {
    if (ms > p99MsMax) held.push(`p99 of the victim's ${kind}: ${ms.toFixed(0)} ms`);
  }
  if (report.missed > 0) held.push(`the victim never received ${report.missed} changes`);
  const boundMiB = mebibytes(before + BUDGET_BYTES + MEMORY_BYTES_MAX);
  const peakMiB = Math.max(lastMiB, ...outcomes.map((outcome) => outcome.peakMiB));
  if (peakMiB > boundMiB) held.push(`memory grew to ${peakMiB} of ${boundMiB} MiB`);
  held.push(...(await findingsOf(server)));
  return { outcomes, victim: report, memory: { beforeMiB: mebibytes(before), peakMiB }, held };
}

interface AttackUnderWay {
  readonly attacks: readonly Attack[];
  readonly seconds: number;
  readonly held: string[];
  readonly memory: PeakMemory;
}

async function attackFor(
  server: ServerProcess,
  { attacks, held, memory, seconds }: AttackUnderWay,
): Promise<readonly Outcome[]> {
  const outcomes = attacks.map(({ title }): Outcome => {
    return { title, count: 0, ended: "", longestMs: 0, peakMiB: 0 };
  });
  const start = performance.now();
  do {
    for (const [index, attack] of attacks.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) continue;
      const startMs = performance.now();
      const { ended, fault } =
        attack.isEndless === true ? await readSome(server, attack) : await ask(server, attack);
      outcome.longestMs = Math.max(outcome.longestMs, performance.now() - startMs);
      outcome.peakMiB = Math.max(outcome.peakMiB, mebibytes(memory.take()));
      outcome.count += 1;
      outcome.ended = ended;
      if (fault !== undefined) held.push(`${attack.title}: ${fault}`);
    }
  } while (performance.now() - start < seconds * 1000);
  return outcomes;
}

interface Ending {
  readonly ended: string;
  readonly fault?: string;
}

async function ask(server: ServerProcess, { answer, sql }: Attack): Promise<Ending> {
  const { body, status } = await server.sql(sql);
  const { error } = body;
  if (error !== undefined) return refused(status, error);
  const cell = body.results.at(-1)?.rows?.[0]?.[0];
  const isRight = answer === undefined || String(cell) === String(answer);
  return isRight
    ? { ended: "answered" }
    : { ended: "answered wrongly", fault: `${String(cell)} instead of ${String(answer)}` };
}

/** A refusal is as good as a result, provided that it states the reason. */
function refused(status: number, { code, message, reason }: SqlError): Ending {
  const ended = `${code}${reason === undefined ? "" : ` (${reason})`}`;
  const said = `${status} ${code}: ${message.slice(0, 200)}`;
  return REFUSALS.has(status) && message !== "" ? { ended } : { ended, fault: said };
}

/**
 * Reads part of a response that is streamed while its query is running, and then closes the
 * connection.
 */
async function readSome(server: ServerProcess, { sql }: Attack): Promise<Ending> {
  const response = await fetch(`${server.url}/v1/api/sql`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    body: JSON.stringify({ sql }),
  });
  if (!response.ok) {
    const { error } = (await response.json()) as SqlBody;
    if (error !== undefined) return refused(response.status, error);
    return { ended: "failed", fault: `${response.status} without an error` };
  }
  let byteCount = 0;
  for await (const chunk of response.body ?? []) {
    byteCount += chunk.length;
    if (byteCount >= READ_BYTES_MAX) return { ended: "streamed until its reader left" };
  }
  return { ended: `streamed ${mebibytes(byteCount)} MiB in its time` };
}
