/**
 * Creates the client, which has one session, sends statements over HTTP, and follows live queries
 * over a single WebSocket.
 *
 *     const db = createClient({ url: "http://127.0.0.1:2900" });
 *     await db.session.login("ada", "correct horse 9");
 *     const rows = await db.query("SELECT id, text FROM chat.messages WHERE room = $1", ["lobby"]);
 *     const live = db.live("SELECT * FROM chat.messages", { onEvent: (event) => show(event) });
 *     live.close();
 */
import { type AccountCalls, accountsBy } from "./accounts.ts";
import {
  ANYTHING,
  type Call,
  COUNT,
  FILLED_TEXT,
  type FieldRules,
  HANDLER,
  OBJECT,
  oneOf,
  requireOptions,
  requireRule,
} from "./checks.ts";
import { type ConnectionState, LiveConnection } from "./connection.ts";
import type { ConsumeOptions, MessageHandler } from "./consumer.ts";
import { type Copies, copiesBy } from "./copy.ts";
import { type Credentials, requireCredentials } from "./credentials.ts";
import { type ClientEnvironment, globalEnvironment, withLongTimers } from "./environment.ts";
import { exportData } from "./exports.ts";
import { type Files, filesBy } from "./files.ts";
import { guarded } from "./handlers.ts";
import type { LiveQuery } from "./live.ts";
import type { LiveOptions } from "./live_options.ts";
import { type PositionStorage, STORAGE } from "./positions.ts";
import { type Presence, type PresenceOptions, Rooms } from "./presence.ts";
import { refreshTokenPlace, type SessionPlace } from "./refresh_token.ts";
import { type Duration, msFromDuration } from "./repeats.ts";
import { serverUrlFrom } from "./server_url.ts";
import { Session } from "./session.ts";
import { requireText, type Statements, statementsBy } from "./statements.ts";
import { runTransaction, type TransactionClient, type TransactionSettings } from "./transaction.ts";
import type { CellObject, Values } from "./values.ts";

export interface ClientOptions {
  /** The base URL of the server, either http or https. */
  readonly url: string;
  /**
   * Credentials for automatic login: a token, a user and a password, or a function that returns a
   * token. The function is called again when the server no longer accepts its token.
   */
  readonly auth?: Credentials;
  /**
   * Where the refresh token is kept: "memory" (the default); "storage", so that a session survives
   * a reload of the page; or "cookie", for pages that the server itself delivers.
   */
  readonly session?: SessionPlace;
  /** Called when the session has ended without a logout. */
  readonly onSignedOut?: () => void;
  /** Called whenever the state of the live connection changes. */
  readonly onConnection?: (state: ConnectionState) => void;
  /**
   * How many times to resend a request that did not reach the server or was refused for a
   * temporary reason; defaults to 3. Only reads and requests with an idempotency key are resent.
   */
  readonly maxRetries?: number;
  /** The time limit for a request; no limit if omitted. */
  readonly timeout?: Duration;
  /**
   * The form of returned values: "javascript" for Date, bytes and parsed JSON; "wire" for
   * unconverted values. Defaults to "javascript".
   */
  readonly values?: Values;
  /**
   * The storage for the positions of live queries with a `resumeKey`, and for the refresh token if
   * `session` is "storage"; defaults to localStorage.
   */
  readonly storage?: PositionStorage;
  readonly environment?: ClientEnvironment;
}

const RETRIES = 3;

const CREATE: Call = {
  doing: "create a client",
  example: 'createClient({ url: "http://127.0.0.1:2900", auth: { user, password } })',
};

const CLIENT_RULES: FieldRules = {
  // Options checked by the modules that use them, which have their own error messages.
  url: ANYTHING,
  auth: ANYTHING,
  timeout: ANYTHING,
  session: oneOf("cookie", "memory", "storage"),
  onSignedOut: HANDLER,
  onConnection: HANDLER,
  maxRetries: COUNT,
  values: oneOf("javascript", "wire"),
  storage: STORAGE,
  environment: OBJECT,
};

/** A topic, identified by its name, for example "shop.work". */
export interface Topic {
  /**
   * Joins a group as a consumer: runs the handler for each message, and acknowledges the message
   * once the handler has succeeded. A message whose handler throws is delivered again after a
   * pause. The consumer continues after lost connections. Once `signal` is aborted, running
   * handlers finish, their messages are acknowledged, and the promise resolves.
   *
   * @throws {ServerError} If the topic does not exist, if the user lacks the right, or after
   *   KILL CONSUMER.
   */
  consume(options: ConsumeOptions, handler: MessageHandler): Promise<void>;
}

export interface Client extends Statements, Copies {
  readonly session: Session;
  /** The operations that people perform on their own accounts, if the server permits them. */
  readonly account: AccountCalls;
  readonly files: Files;
  /**
   * Runs `work` in a transaction, and commits the transaction if `work` succeeds. If `work`
   * throws, everything is undone, and the error is rethrown. If another transaction changed the
   * same rows first, `work` runs again in a new transaction, up to `maxRetries` times, so it
   * should change nothing but the database.
   *
   *     const left = await db.transaction(async (tx) => {
   *       const [{ stock }] = await tx.query("SELECT stock FROM shop.items WHERE id = $1", [7]);
   *       await tx.execute("UPDATE shop.items SET stock = $1 WHERE id = 7", { params: [stock - 1] });
   *       return stock - 1;
   *     });
   *
   * @throws {ServerError} COMMIT_UNKNOWN if the connection was lost during the commit, and the
   *   server no longer knows the outcome.
   */
  transaction<Result>(
    work: (tx: TransactionClient) => Promise<Result>,
    options?: TransactionSettings,
  ): Promise<Result>;
  /**
   * Follows a query: delivers its current rows, then every change, even across lost connections.
   * Logging out ends the live query. If another user logs in, it starts over with that user's
   * rows.
   */
  live<Row extends object = CellObject>(sql: string, options: LiveOptions<Row>): LiveQuery<Row>;
  /**
   * Enters a room, and reports who else is in it. A room consists of the rows of a STREAM table
   * that contain its name. A tab that is closed or loses its connection leaves the room when its
   * row expires.
   *
   *     const presence = db.presence("lobby", { table: "chat.presence", onChange: show });
   *     presence.set({ typing: true });
   */
  presence<State = unknown>(room: string, options: PresenceOptions<State>): Presence<State>;
  /** Returns a topic. Its `consume` method processes the topic's messages. */
  topic(name: string): Topic;
  /** Interrupts the live connection for a while, to demonstrate how live queries resume. */
  interrupt(durationMs: number): void;
  /**
   * Ends the live queries, closes their connection, and leaves the rooms. The user stays logged
   * in.
   */
  close(): void;
}

/**
 * Creates a client for a server.
 * @throws {TypeError} If an option has an unknown name or an invalid value.
 */
export function createClient(options: ClientOptions): Client {
  requireOptions(CREATE, options, CLIENT_RULES);
  if (options.auth !== undefined) requireCredentials(options.auth);
  const environment = withLongTimers(options.environment ?? globalEnvironment);
  const url = serverUrlFrom(options.url);
  const values = options.values ?? "javascript";
  const tellSignedOut = guarded(environment, () => options.onSignedOut?.());
  const session = new Session({
    url,
    hasCookie: options.session === "cookie",
    refreshToken: refreshTokenPlace(options.session ?? "memory", { url, storage: options.storage }),
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
  const statements = statementsBy({ session, values });
  const rooms = new Rooms({
    environment,
    statements,
    session,
    values,
    live: (sql, given) => connection.open(sql, given),
  });
  const retries = { environment, maxRetries: options.maxRetries ?? RETRIES };
  return {
    session,
    account: accountsBy(session, {
      serverUrl: url,
      exportData: () => exportData(url, statements, environment),
    }),
    files: filesBy(url, statements),
    ...statements,
    ...copiesBy(session),
    transaction: (work, given = {}) => runTransaction(work, given, { session, values, retries }),
    live<Row extends object>(sql: string, given: LiveOptions<Row>) {
      requireText(sql);
      // The cast is needed because only the caller knows the type of the rows.
      return connection.open(sql, given as unknown as LiveOptions) as unknown as LiveQuery<Row>;
    },
    presence<State>(room: string, given: PresenceOptions<State>) {
      // The cast is needed because only the caller knows the type of the states.
      return rooms.enter(room, given as PresenceOptions) as Presence<State>;
    },
    topic(name) {
      requireRule("the topic", name, FILLED_TEXT);
      return { consume: (given, handler) => connection.consume(name, given, handler) };
    },
    interrupt(durationMs) {
      requireRule("the duration", durationMs, COUNT);
      connection.interrupt(durationMs);
    },
    close() {
      rooms.leaveAll();
      connection.close();
    },
  };
}
