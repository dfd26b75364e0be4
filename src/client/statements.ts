/** Sends SQL and reads the responses, either directly or within an open transaction. */
import type { StatementEntry } from "../protocol/mod.ts";
import { type ExecutionPart, partsOfBody, partsOfWhole } from "./answer_parts.ts";
import {
  ANYTHING,
  type Call,
  FILLED_TEXT,
  type FieldRules,
  kindOf,
  requireOptions,
  SIGNAL,
  TEXT,
  type ValueRule,
} from "./checks.ts";
import { entriesIn, errorFromBody, ServerError, withResults } from "./errors.ts";
import { type Parameter, sentParameters } from "./parameters.ts";
import { isRead } from "./repeats.ts";
import { type RequestAnswer, RequestData } from "./requests.ts";
import type { Session } from "./session.ts";
import { type CellObject, readEntries, type Values } from "./values.ts";

const EXECUTE: Call = { doing: "execute", example: "execute(sql, { params: [1] })" };

const FILES: ValueRule = {
  should: "an object of files, as in { photo: input.files[0] }",
  holds: (value) =>
    typeof value === "object" && value !== null && Object.values(value).every(isFile),
};

const EXECUTE_RULES: FieldRules = {
  params: ANYTHING,
  files: FILES,
  namespace: TEXT,
  idempotencyKey: FILLED_TEXT,
  signal: SIGNAL,
};

const QUERY: Call = { doing: "query", example: "query(sql, [1], { signal })" };

const { params: _, ...QUERY_RULES } = EXECUTE_RULES;

export interface ExecuteOptions {
  readonly params?: readonly Parameter[];
  /** The namespace in which unqualified names are looked up. */
  readonly namespace?: string;
  /**
   * A key of 1 to 128 printable ASCII characters. Use a new key for each request. A request with a
   * key runs at most once, no matter how many times it is sent.
   */
  readonly idempotencyKey?: string;
  /**
   * Files to upload with the statement, under the names by which the statement refers to them.
   *
   *     await db.execute("INSERT INTO shop.photos (photo) VALUES (FILE('photo'))", { files: { photo } });
   */
  readonly files?: Readonly<Record<string, Blob>>;
  readonly signal?: AbortSignal;
}

/** The response to a request of one or more statements, all of which succeeded. */
export interface Execution {
  readonly results: readonly StatementEntry[];
  readonly tookMs: number;
}

export type RowObject = CellObject;

/** The client methods that run statements. */
export interface Statements {
  /**
   * Runs statements. All methods throw a `TypeError` if an argument has the wrong JavaScript type.
   *
   * @throws {ServerError} If a statement fails. The error contains the entries of the statements
   *   before it.
   */
  execute(sql: string, options?: ExecuteOptions): Promise<Execution>;
  /**
   * Runs statements and returns the response part by part, on demand. If the caller stops reading,
   * the statements pause, and the server ends them after a minute. Leaving the loop ends them at
   * once. `timeout` limits only the time until the response begins.
   *
   *     for await (const part of db.stream(sql)) if (part.kind === "rows") show(part.rows);
   *
   * @throws {ServerError} Possibly after the first rows.
   */
  stream(sql: string, options?: ExecuteOptions): AsyncGenerator<ExecutionPart, void>;
  /**
   * Runs statements and returns the rows of the last one as objects with a property for each
   * column. The caller declares the type of the rows; the client does not check it.
   */
  query<Row extends object = RowObject>(
    sql: string,
    params?: readonly Parameter[],
    options?: Omit<ExecuteOptions, "params">,
  ): Promise<Row[]>;
}

/** The functions of a client that send statements. */
export interface Sending {
  readonly session: Session;
  readonly values: Values;
  /**
   * Returns the headers for each request.
   *
   * @throws {TypeError} If statements can no longer be sent.
   */
  readonly headers?: () => Readonly<Record<string, string>>;
}

export function statementsBy(sending: Sending): Statements {
  const execute = executeBy(sending);
  return {
    execute,
    stream: streamBy(sending),
    async query<Row extends object>(
      sql: string,
      params: readonly Parameter[] = [],
      given: Omit<ExecuteOptions, "params"> = {},
    ) {
      requireOptions(QUERY, given, QUERY_RULES);
      const { results } = await execute(sql, { ...given, params });
      return rowObjects(results.at(-1)) as Row[];
    },
  };
}

/** Sends SQL. @param given The caller's argument, not yet checked. */
async function send(
  { headers, session }: Sending,
  sql: string,
  given: ExecuteOptions,
  { isStreamed }: { isStreamed: boolean },
): Promise<RequestAnswer> {
  requireText(sql);
  requireOptions(EXECUTE, given, EXECUTE_RULES);
  const { files, idempotencyKey, namespace, params, signal } = given;
  const body = {
    sql,
    ...(params === undefined ? {} : { params: sentParameters(sql, params) }),
    ...(namespace === undefined ? {} : { namespace_id: namespace }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
  };
  const isRepeatable = idempotencyKey !== undefined || isRead(sql);
  return await session.call("/v1/api/sql", files === undefined ? body : formOf(body, files), {
    signal,
    isRepeatable,
    isStreamed,
    headers: headers?.(),
  });
}

/** Returns a form that contains the fields of a request and its files. */
function formOf(fields: object, files: Readonly<Record<string, Blob>>): RequestData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    form.set(name, typeof value === "string" ? value : JSON.stringify(value));
  }
  for (const [name, file] of Object.entries(files)) form.set(`file:${name}`, file);
  return new RequestData(form);
}

function isFile(value: unknown): boolean {
  return typeof value === "object" && value !== null && "size" in value && "stream" in value;
}

/** Returns a function that sends SQL and reads the results. */
function executeBy(sending: Sending): Statements["execute"] {
  const { session, values } = sending;
  return async (sql: string, given: ExecuteOptions = {}): Promise<Execution> => {
    try {
      const answer = await send(sending, sql, given, { isStreamed: false });
      return wholeExecution(session, answer, values);
    } catch (error) {
      throw withCellsRead(error, values);
    }
  };
}

/** Returns a function that sends SQL and reads the response as it arrives. */
function streamBy(sending: Sending): Statements["stream"] {
  const { session, values } = sending;
  return async function* (sql: string, given: ExecuteOptions = {}) {
    try {
      const answer = await send(sending, sql, given, { isStreamed: true });
      const { body } = answer;
      if (body === undefined) yield* partsOfWhole(wholeExecution(session, answer, values));
      else yield* partsOfBody(body, { values, signal: given.signal, session, answer });
    } catch (error) {
      throw withCellsRead(error, values);
    }
  };
}

function wholeExecution(session: Session, answer: RequestAnswer, values: Values): Execution {
  const execution = executionFrom(answer);
  if (execution === undefined) throw session.foreign(answer);
  return { ...execution, results: readEntries(execution.results, values) };
}

function withCellsRead(error: unknown, values: Values): unknown {
  if (!(error instanceof ServerError) || error.results.length === 0) return error;
  return withResults(error, readEntries(error.results, values));
}

/** Requires that the SQL is a string. @throws {TypeError} */
export function requireText(sql: unknown): void {
  if (typeof sql === "string") return;
  throw new TypeError(`Cannot send the statement: it is ${kindOf(sql)}, but must be a string`);
}

/**
 * Reads the results from a response.
 * @returns Undefined if the response does not come from Tidemark.
 */
function executionFrom(answer: RequestAnswer): Execution | undefined {
  const { results, status, took } = answer.fields;
  // If a statement fails after its first rows have been sent, the error arrives with HTTP status
  // 200.
  if (status === "error") throw errorFromBody(answer.fields, answer.status);
  const entries = entriesIn(results);
  if (status !== "success" || entries === undefined) return undefined;
  return { results: entries, tookMs: Number(took) };
}

function rowObjects(entry: StatementEntry | undefined): RowObject[] {
  const names = (entry?.schema ?? []).map(({ name }) => name);
  return (entry?.rows ?? []).map((cells) =>
    Object.fromEntries(names.map((name, index) => [name, cells[index]])),
  );
}
