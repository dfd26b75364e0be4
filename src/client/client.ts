/**
 * The client: one session, statements over HTTP, live queries over one WebSocket.
 *
 *     const db = createClient({ url: "http://127.0.0.1:2900" });
 *     await db.session.login("ada", "correct horse 9");
 *     const rows = await db.query("SELECT id, text FROM chat.messages WHERE room = $1", ["lobby"]);
 *     const live = db.live("SELECT * FROM chat.messages", { onEvent: (event) => show(event) });
 *     live.close();
 */
import type { StatementEntry } from "../protocol/mod.ts";
import { type ExecutionPart, partsOfBody, partsOfWhole } from "./answer_parts.ts";
import {
  ANYTHING,
  type Call,
  COUNT,
  FILLED_TEXT,
  HANDLER,
  kindOf,
  OBJECT,
  oneOf,
  type Rules,
  requireOptions,
  requireRule,
  SIGNAL,
  TEXT,
} from "./checks.ts";
import { type ConnectionState, LiveConnection } from "./connection.ts";
import { type Credentials, requireCredentials } from "./credentials.ts";
import { type ClientEnvironment, globalEnvironment, withLongTimers } from "./environment.ts";
import { entriesIn, errorFromBody, ServerError, withResults } from "./errors.ts";
import { guarded } from "./handlers.ts";
import type { LiveQuery } from "./live.ts";
import type { LiveOptions } from "./live_options.ts";
import { type Parameter, sentParameters } from "./parameters.ts";
import { type PositionStorage, STORAGE } from "./positions.ts";
import { type Duration, isRead, msFromDuration } from "./repeats.ts";
import type { Answer } from "./requests.ts";
import { serverUrlFrom } from "./server_url.ts";
import { Session } from "./session.ts";
import { type CellObject, readEntries, type Values } from "./values.ts";

export interface ClientOptions {
  /** Base address of the server, of http or https. */
  readonly url: string;
  /**
   * Credentials for automatic login: a token, a user and a password, or a function that returns a
   * token. The function is called again when the server no longer accepts its token.
   */
  readonly auth?: Credentials;
  /** The place of the refresh token: *memory*, or `cookie` in pages of the server itself. */
  readonly session?: "cookie" | "memory";
  /** Told when the session has ended without having been asked to. */
  readonly onSignedOut?: () => void;
  /** Told of every change of the live connection. */
  readonly onConnection?: (state: ConnectionState) => void;
  /**
   * How often a request is sent again that did not reach the server, or was refused for what passes
   * by itself; *3*. Only reads are, and what has an idempotency key.
   */
  readonly maxRetries?: number;
  /** How long one request may take; as long as it does when left out. */
  readonly timeout?: Duration;
  /**
   * The form of returned values, *javascript*: Date, bytes and parsed JSON; or "wire", unconverted.
   */
  readonly values?: Values;
  /** The storage in which live queries with a `resumeKey` keep their positions, *localStorage*. */
  readonly storage?: PositionStorage;
  readonly environment?: ClientEnvironment;
}

const RETRIES = 3;

const CREATE: Call = {
  doing: "create a client",
  example: 'createClient({ url: "http://127.0.0.1:2900", auth: { user, password } })',
};

const CLIENT_RULES: Rules = {
  // Checked elsewhere, with their own messages.
  url: ANYTHING,
  auth: ANYTHING,
  timeout: ANYTHING,
  session: oneOf("cookie", "memory"),
  onSignedOut: HANDLER,
  onConnection: HANDLER,
  maxRetries: COUNT,
  values: oneOf("javascript", "wire"),
  storage: STORAGE,
  environment: OBJECT,
};

const EXECUTE: Call = { doing: "execute", example: "execute(sql, { params: [1] })" };

const EXECUTE_RULES: Rules = {
  params: ANYTHING,
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
   * 1 to 128 printable characters, new for each request: what has it runs once, sent how often
   * ever.
   */
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** The answer to a text of one or more statements, all of which succeeded. */
export interface Execution {
  readonly results: readonly StatementEntry[];
  readonly tookMs: number;
}

export type RowObject = CellObject;

export interface Client {
  readonly session: Session;
  /**
   * Runs statements. Here and below, what JavaScript gives in place of text or parameters, and they
   * cannot be, is a `TypeError`.
   *
   * @throws {ServerError} With the entries of those before the failing one.
   */
  execute(sql: string, options?: ExecuteOptions): Promise<Execution>;
  /**
   * Runs statements and gives their answer part by part, on demand. A caller that stops reading
   * pauses the statements, and the server ends them after a minute. Leaving the loop ends them at
   * once. `timeout` limits the time to the beginning of the answer.
   *
   *     for await (const part of db.stream(sql)) if (part.kind === "rows") show(part.rows);
   *
   * @throws {ServerError} Possibly after the first rows.
   */
  stream(sql: string, options?: ExecuteOptions): AsyncGenerator<ExecutionPart, void>;
  /**
   * Runs statements and returns the rows of the last one by column name. The caller states their
   * type; the client does not check it.
   */
  query<Row extends object = RowObject>(
    sql: string,
    params?: readonly Parameter[],
    options?: Omit<ExecuteOptions, "params">,
  ): Promise<Row[]>;
  /**
   * Follows a query: its rows now, then every change, through losses of the connection. A log-out
   * ends it; when somebody else logs in it starts anew, with the rows of that user.
   */
  live<Row extends object = CellObject>(sql: string, options: LiveOptions<Row>): LiveQuery<Row>;
  /** Cuts the live connection and stays away for a while, to show what a resume does. */
  interrupt(durationMs: number): void;
  /** Ends the live queries and their connection; the session stays. */
  close(): void;
}

/** @throws {TypeError} If an option has an unknown name or an unusable value. */
export function createClient(options: ClientOptions): Client {
  requireOptions(CREATE, options, CLIENT_RULES);
  if (options.auth !== undefined) requireCredentials(options.auth);
  const environment = withLongTimers(options.environment ?? globalEnvironment);
  const url = serverUrlFrom(options.url);
  const values = options.values ?? "javascript";
  const tellSignedOut = guarded(environment, () => options.onSignedOut?.());
  const session = new Session({
    url,
    keepIn: options.session ?? "memory",
    credentials: options.auth,
    environment,
    maxRetries: options.maxRetries ?? RETRIES,
    timeoutMs: options.timeout === undefined ? undefined : msFromDuration(options.timeout),
    onSignedOut: () => tellSignedOut(undefined),
    onLogout: () => connection.loggedOut(),
    onOtherUser: () => connection.startAnew(),
  });
  const connection = new LiveConnection({
    url: `${url.replace(/^http/, "ws")}/v1/ws`,
    session,
    environment,
    values,
    storage: options.storage,
    onState: guarded<ConnectionState>(environment, (state) => options.onConnection?.(state)),
  });
  const execute = executeBy(session, values);
  return {
    session,
    execute,
    stream: streamBy(session, values),
    async query<Row extends object>(
      sql: string,
      params: readonly Parameter[] = [],
      given: Omit<ExecuteOptions, "params"> = {},
    ) {
      requireOptions(QUERY, given, QUERY_RULES);
      const { results } = await execute(sql, { ...given, params });
      return rowObjects(results.at(-1)) as Row[];
    },
    live<Row extends object>(sql: string, given: LiveOptions<Row>) {
      requireText(sql);
      // The caller declares the type of the rows.
      return connection.open(sql, given as unknown as LiveOptions) as unknown as LiveQuery<Row>;
    },
    interrupt(durationMs) {
      requireRule("the duration", durationMs, COUNT);
      connection.interrupt(durationMs);
    },
    close: () => connection.close(),
  };
}

/** Sends a text of statements. @param given The unchecked argument of the caller. */
async function send(
  session: Session,
  sql: string,
  given: ExecuteOptions,
  { isStreamed }: { isStreamed: boolean },
): Promise<Answer> {
  requireText(sql);
  requireOptions(EXECUTE, given, EXECUTE_RULES);
  const { idempotencyKey, namespace, params, signal } = given;
  const body = {
    sql,
    ...(params === undefined ? {} : { params: sentParameters(sql, params) }),
    ...(namespace === undefined ? {} : { namespace_id: namespace }),
    ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
  };
  const isRepeatable = idempotencyKey !== undefined || isRead(sql);
  return await session.call("/v1/api/sql", body, { signal, isRepeatable, isStreamed });
}

/** Sends a text of statements and reads the results. */
function executeBy(session: Session, values: Values): Client["execute"] {
  return async (sql: string, given: ExecuteOptions = {}): Promise<Execution> => {
    try {
      const answer = await send(session, sql, given, { isStreamed: false });
      return wholeExecution(session, answer, values);
    } catch (error) {
      throw withCellsRead(error, values);
    }
  };
}

/** Sends a text of statements and reads the answer as it arrives. */
function streamBy(session: Session, values: Values): Client["stream"] {
  return async function* (sql: string, given: ExecuteOptions = {}) {
    try {
      const answer = await send(session, sql, given, { isStreamed: true });
      const { body } = answer;
      if (body === undefined) yield* partsOfWhole(wholeExecution(session, answer, values));
      else yield* partsOfBody(body, { values, signal: given.signal, session, answer });
    } catch (error) {
      throw withCellsRead(error, values);
    }
  };
}

function wholeExecution(session: Session, answer: Answer, values: Values): Execution {
  const execution = executionFrom(answer);
  if (execution === undefined) throw session.foreign(answer);
  return { ...execution, results: readEntries(execution.results, values) };
}

function withCellsRead(error: unknown, values: Values): unknown {
  if (!(error instanceof ServerError) || error.results.length === 0) return error;
  return withResults(error, readEntries(error.results, values));
}

function requireText(sql: unknown): void {
  if (typeof sql === "string") return;
  throw new TypeError(`Cannot send the statement: it is ${kindOf(sql)}, and should be text`);
}

/** @returns Undefined if the answer does not come from Tidemark. */
function executionFrom(answer: Answer): Execution | undefined {
  const { results, status, took } = answer.fields;
  // A failure while rows are on their way comes with status 200.
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
