/**
 * Runs COPY in a test engine: sends data in pieces of any size, and returns the bytes of a
 * response.
 */
import type { CopyBody, SqlResponse } from "../../src/sql/mod.ts";
import type { TestEngine } from "./sql_engine.ts";

/** Returns a COPY body that sends the bytes in pieces. */
function bodyOf(data: Uint8Array, pieceBytes: number = data.length || 1): CopyBody {
  let at = 0;
  return {
    next: () => {
      if (at >= data.length) return Promise.resolve(undefined);
      const piece = data.subarray(at, at + pieceBytes);
      at += pieceBytes;
      return Promise.resolve(piece);
    },
    cancel: () => undefined,
  };
}

const EMPTY = bodyOf(new Uint8Array(0));

export interface CopyInOptions {
  /** The size of the pieces in bytes. By default, there is a single piece. */
  readonly pieceBytes?: number;
}

/** Runs a COPY FROM with the given data. */
export function askCopyIn(
  engine: TestEngine,
  sql: string,
  data: string | Uint8Array,
  { pieceBytes }: CopyInOptions = {},
): Promise<SqlResponse> {
  const bytes = typeof data === "string" ? Buffer.from(data) : data;
  return engine.ask(sql, { copy: { body: bodyOf(bytes, pieceBytes) } });
}

/** Runs a COPY FROM that must succeed. Returns the number of copied rows. */
export async function copyIn(
  engine: TestEngine,
  sql: string,
  data: string | Uint8Array,
  options: CopyInOptions = {},
): Promise<number> {
  const { error, results } = await askCopyIn(engine, sql, data, options);
  if (error !== undefined) throw new Error(`${error.code}: ${error.message}`, { cause: error });
  return results[0]?.rowCount ?? -1;
}

/** Returns the error message of a COPY FROM that must fail. */
export async function copyFailure(
  engine: TestEngine,
  sql: string,
  data: string | Uint8Array,
): Promise<string> {
  const { error, results } = await askCopyIn(engine, sql, data);
  if (error === undefined) return `succeeded with ${JSON.stringify(results)}`;
  return `${error.code}: ${error.message}`;
}

/** Returns the bytes that a COPY TO produces. */
export async function copyOut(engine: TestEngine, sql: string): Promise<Buffer> {
  const { error, results } = await engine.ask(sql, { copy: { body: EMPTY } });
  if (error !== undefined) throw new Error(`${error.code}: ${error.message}`, { cause: error });
  return Buffer.concat(results[0]?.copied ?? []);
}
