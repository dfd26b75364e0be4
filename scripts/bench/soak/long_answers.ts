/**
 * Reads long responses as fast as they arrive, from a server with little memory. Each run starts a
 * server, reads several responses at a time, and checks that the server is still alive.
 */
import {
  type ServerOptions,
  type ServerProcess,
  startReadyServer,
} from "../../../tests/support/server_process.ts";
import { openMemoryLimit } from "./memory_limit.ts";
import { heldBytes } from "./target.ts";

export interface LongAnswers {
  /** Whether the server was still responding after the last reader had finished. */
  readonly isAlive: boolean;
  /** The number of complete responses. */
  readonly completeCount: number;
  /** The error codes of the incomplete responses. */
  readonly codes: readonly string[];
  /** The peak memory of the server, in bytes. */
  readonly heldBytes: number;
  readonly tookMs: number;
}

/** The number of responses that each reader reads one after another, one for each row size. */
export const ANSWERS_PER_READER = 3;

const LOOK_MS = 20;

/**
 * Reads long responses until all readers have finished.
 * @param options.atOnce The number of readers.
 * @param options.limitBytes The server's memory limit.
 * @param options.answerBytes The approximate size of each response.
 */
export async function readLongAnswers(
  { answerBytes, atOnce, limitBytes }: { answerBytes: number; atOnce: number; limitBytes: number },
  options: ServerOptions = {},
): Promise<LongAnswers> {
  using limit = openMemoryLimit(limitBytes);
  await using server = await startReadyServer({ ...options, wrapper: limit.wrapper });
  const { pid } = server;
  limit.hold(pid);
  let held = 0;
  const timer = setInterval(() => {
    held = Math.max(held, heldBytes([pid]));
  }, LOOK_MS);
  const startMs = performance.now();
  const codes: string[] = [];
  let completeCount = 0;
  const queries = queriesOf(answerBytes);
  const readAll = async (reader: number): Promise<void> => {
    for (const index of queries.keys()) {
      const code = await codeOf(server, queries[(reader + index) % queries.length] ?? "");
      if (code === undefined) completeCount += 1;
      else codes.push(code);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, reader) => readAll(reader)));
  clearInterval(timer);
  const tookMs = performance.now() - startMs;
  return { isAlive: await isAlive(server), completeCount, codes, heldBytes: held, tookMs };
}

/**
 * Returns queries whose responses have the given size, with rows of 100, 1,000 and a million
 * bytes.
 */
function queriesOf(answerBytes: number): readonly string[] {
  return [100, 1000, 1_000_000].map(
    (length) =>
      `SELECT n, repeat('x', ${length}) AS t ` +
      `FROM generate_series(1, ${Math.ceil(answerBytes / length)}) AS g(n)`,
  );
}

/** Reads a response. Returns its error code; undefined if it is complete. */
async function codeOf({ token, url }: ServerProcess, sql: string): Promise<string | undefined> {
  try {
    const answer = await fetch(`${url}/v1/api/sql`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        "Content-Type": "application/json",
        Accept: "application/x-ndjson",
      },
      body: JSON.stringify({ sql }),
    });
    const end = new TextDecoder().decode(await endOf(answer));
    const last = end.trimEnd().split("\n").at(-1) ?? "";
    const { error, status } = JSON.parse(last) as { status: string; error?: { code: string } };
    return status === "success" ? undefined : (error?.code ?? "no code");
  } catch (error) {
    return `interrupted: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Returns the end of a response body, including its last line, and discards the rest. */
async function endOf({ body }: Response): Promise<Uint8Array> {
  const bytesMax = 4096;
  let end: Uint8Array = new Uint8Array(0);
  for await (const part of body ?? []) {
    end = Buffer.concat([end, part.subarray(-bytesMax)]).subarray(-bytesMax);
  }
  return end;
}

async function isAlive(server: ServerProcess): Promise<boolean> {
  try {
    return (await server.rows("SELECT 1")).length === 1;
  } catch {
    // The error need not be reported, because the end of the server is itself a result of the run.
    return false;
  }
}
