/**
 * The client: one session, statements over HTTP, live queries over one WebSocket.
 *
 *     const db = createClient({ url: "http://127.0.0.1:2900" });
 *     await db.session.login("ada", "correct horse 9");
 *     const rows = await db.query("SELECT id, text FROM chat.messages WHERE room = $1", ["lobby"]);
 *     const live = db.live("SELECT * FROM chat.messages", { onEvent: (event) => show(event) });
 *     live.close();
 */
import type { Cell, SqlResponseBody, StatementEntry } from "../protocol/mod.ts";
import { type ConnectionState, LiveConnection } from "./connection.ts";
import { type ClientEnvironment, globalEnvironment } from "./environment.ts";
import { errorFromBody } from "./errors.ts";
import { guarded } from "./handlers.ts";
import type { LiveOptions, LiveQuery } from "./live.ts";
import { countOption, kindOf, type Parameter, sentParameters } from "./parameters.ts";
import { type Duration, isRead, msFromDuration } from "./repeats.ts";
import { serverUrlFrom } from "./server_url.ts";
import { Session } from "./session.ts";

export interface ClientOptions {
  /** Base address of the server, of http or https. */
  readonly url: string;
  /** Where the refresh token is kept, *memory*; `cookie` in pages that the server itself serves. */
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
  readonly environment?: ClientEnvironment;
}

const RETRIES = 3;

export interface ExecuteOptions {
  readonly params?: readonly Parameter[];
  /** Of unqualified names. */
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

export type RowObject = Readonly<Record<string, Cell>>;

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
   * Runs statements and gives the rows of the last by column name. What they are is for the caller
   * to say, who wrote the statement: it is not looked at.
   */
  query<Row extends object = RowObject>(sql: string, params?: readonly Parameter[]): Promise<Row[]>;
  /**
   * Follows a query: its rows now, then every change, through losses of the connection. A log-out
   * ends it; when somebody else logs in it starts anew, with the rows of that user.
   */
  live(sql: string, options: LiveOptions): LiveQuery;
  /** Cuts the live connection and stays away for a while, to show what a resume does. */
  interrupt(durationMs: number): void;
  /** Ends the live queries and their connection; the session stays. */
  close(): void;
}

/** @throws {TypeError} If the address is none, or the time. */
export function createClient(options: ClientOptions): Client {
  const environment = options.environment ?? globalEnvironment;
  const url = serverUrlFrom(options.url);
  const tellSignedOut = guarded(environment, () => options.onSignedOut?.());
  const session = new Session({
    url,
    keepIn: options.session ?? "memory",
    environment,
    maxRetries: countOption("maxRetries", options.maxRetries) ?? RETRIES,
    timeoutMs: options.timeout === undefined ? undefined : msFromDuration(options.timeout),
    onSignedOut: () => tellSignedOut(undefined),
    onLogout: () => connection.signedOut(),
    onOtherUser: () => connection.startAnew(),
  });
  const connection = new LiveConnection({
    url: `${url.replace(/^http/, "ws")}/v1/ws`,
    session,
    environment,
    onState: guarded<ConnectionState>(environment, (state) => options.onConnection?.(state)),
  });
  const execute = async (sql: string, given: ExecuteOptions = {}): Promise<Execution> => {
    requireText(sql);
    const { idempotencyKey, namespace, params, signal } = given;
    const body = {
      sql,
      ...(params === undefined ? {} : { params: sentParameters(params) }),
      ...(namespace === undefined ? {} : { namespace_id: namespace }),
      ...(idempotencyKey === undefined ? {} : { idempotency_key: idempotencyKey }),
    };
    const isRepeatable = idempotencyKey !== undefined || isRead(sql);
    const answer = await session.post("/v1/api/sql", body, { signal, isRepeatable });
    return executionFrom(answer as SqlResponseBody);
  };
  return {
    session,
    execute,
    async query<Row extends object>(sql: string, params: readonly Parameter[] = []) {
      const { results } = await execute(sql, { params });
      return rowObjects(results.at(-1)) as Row[];
    },
    live(sql, given) {
      requireText(sql);
      return connection.open(sql, given);
    },
    interrupt: (durationMs) => connection.interrupt(durationMs),
    close: () => connection.close(),
  };
}

function requireText(sql: unknown): void {
  if (typeof sql === "string") return;
  throw new TypeError(`Cannot send the statement: it is ${kindOf(sql)}, and should be text`);
}

function executionFrom(answer: SqlResponseBody): Execution {
  // A failure while rows are on their way comes with status 200.
  if (answer.status !== "success") throw errorFromBody(answer, 200);
  return { results: answer.results, tookMs: answer.took };
}

function rowObjects(entry: StatementEntry | undefined): RowObject[] {
  const names = (entry?.schema ?? []).map(({ name }) => name);
  return (entry?.rows ?? []).map((cells) =>
    Object.fromEntries(names.map((name, index) => [name, cells[index] as Cell])),
  );
}
