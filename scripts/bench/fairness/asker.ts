/**
 * Sends the measured statement from a separate thread. Otherwise, reading a result of a million
 * rows would delay the clients that measure, and the delay would be attributed to the server.
 */

export interface Question {
  readonly url: string;
  readonly token: string;
  readonly sql: string;
  readonly timeoutMs: number;
}

export interface Ending {
  readonly isSuccess: boolean;
  /** The outcome of the statement: "done", or an error code. */
  readonly end: string;
  /**
   * The clock time at which the last byte of the response arrived. Parsing is not included,
   * because parsing a million rows takes longer than a kill.
   */
  readonly readAtMs: number;
}

/** Sends a statement, and resolves once its entire response has been read. */
export async function askBeside(question: Question): Promise<Ending> {
  const thread = new Worker(new URL("asker.ts", import.meta.url));
  try {
    return await new Promise<Ending>((resolve, reject) => {
      thread.addEventListener("message", ({ data }: MessageEvent<Ending>) => resolve(data));
      thread.addEventListener("error", ({ message }) => reject(new Error(message)));
      thread.postMessage(question, []);
    });
  } finally {
    thread.terminate();
  }
}

async function ask({ sql, timeoutMs, token, url }: Question): Promise<Ending> {
  const response = await fetch(`${url}/v1/api/sql`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ sql, timeout_ms: timeoutMs }),
  });
  const text = await response.text();
  const readAtMs = Date.now();
  const body = JSON.parse(text) as { status: string; error?: { code: string } };
  return { isSuccess: body.status === "success", end: body.error?.code ?? "done", readAtMs };
}

if (!Bun.isMainThread) {
  globalThis.addEventListener("message", ({ data }: MessageEvent<Question>) => {
    void ask(data).then((ending) => postMessage(ending));
  });
}
