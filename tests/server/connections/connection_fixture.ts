/**
 * Provides what connection tests share: a simulated socket and clock, the real identity component,
 * and the real live engine on the model store.
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Auth, type Caller } from "../../../src/auth/mod.ts";
import { silentLog } from "../../../src/base/log.ts";
import { CatalogDatabase } from "../../../src/catalog/mod.ts";
import type { LiveLimits, LocalLiveEngine } from "../../../src/live/mod.ts";
import type { ServerMessage } from "../../../src/protocol/mod.ts";
import { Connection } from "../../../src/server/connections/connection.ts";
import type { ConnectionRequest } from "../../../src/server/connections/connection_options.ts";
import { MessageTimeSlices } from "../../../src/server/connections/message_time_slices.ts";
import type { OutboxSocket } from "../../../src/server/connections/outbox.ts";
import { SocketFlusher } from "../../../src/server/connections/socket_flusher.ts";
import { authSettings, type ConfigChange, serverConfig } from "../../support/http.ts";
import {
  fixtureOver,
  MESSAGES,
  message,
  messagesTable,
  settle,
} from "../../support/live_fixture.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { ModelStore } from "../../support/model_store.ts";
import { noBugs } from "../../support/no_bugs.ts";
import { NO_TOPICS } from "../../support/no_topics.ts";
import { SeededRandom } from "../../support/seeded_random.ts";

const PASSWORDS = { ada: "correct horse 9", root: "battery staple 7" } as const;

const LOCAL: Caller = { address: "127.0.0.1", isLocal: true };

/**
 * A socket that records the frames sent to it. Bytes beyond `capacity` wait until `take` is
 * called.
 */
class SimulatedSocket implements OutboxSocket {
  readonly frames: (string | Uint8Array)[] = [];
  closed: { code: number; reason: string } | undefined;
  isTerminated = false;
  pingCount = 0;
  corkCount = 0;
  /** The number of bytes that the network accepts before the client reads. */
  capacity: number = Infinity;
  /** Whether the socket drops all frames, as the runtime does beyond its own limit. */
  isDropping = false;
  #buffered = 0;

  send(frame: string | Uint8Array): number {
    if (this.isDropping) return 0;
    this.frames.push(frame);
    const bytes = typeof frame === "string" ? Buffer.byteLength(frame) : frame.length;
    if (this.#buffered + bytes <= this.capacity) return bytes;
    this.#buffered += bytes;
    return -1;
  }

  cork(write: () => void): void {
    this.corkCount += 1;
    write();
  }

  getBufferedAmount(): number {
    return this.#buffered;
  }

  ping(): number {
    this.pingCount += 1;
    return 1;
  }

  close(code: number, reason: string): void {
    this.closed ??= { code, reason };
  }

  terminate(): void {
    this.isTerminated = true;
  }

  /** Lets the client read everything, so that no bytes are waiting. */
  take(): void {
    this.#buffered = 0;
  }

  messages(): ServerMessage[] {
    return this.frames
      .filter((frame) => typeof frame === "string")
      .map((frame) => JSON.parse(frame) as ServerMessage);
  }

  /** Returns the messages that the socket has received since the last call of this function. */
  drain(): ServerMessage[] {
    const messages = this.messages();
    this.frames.length = 0;
    return messages;
  }
}

/** Creates a subscribe message. */
export function subscribe(
  id: string,
  options?: object | null,
  sql = "SELECT * FROM chat.messages",
): object {
  const subscription = { id, sql, ...(options === undefined ? {} : { options }) };
  return { type: "subscribe", subscription };
}

export interface OpenOptions {
  config?: ConfigChange;
  request?: Partial<ConnectionRequest>;
  as?: Auth;
}

export interface Opened {
  readonly connection: Connection;
  readonly socket: SimulatedSocket;
  /** Sends a text frame on behalf of the client. */
  readonly say: (message: object) => void;
}

/**
 * An identity component with its own clock. All tests share it, because password hashing is slow
 * on purpose.
 */
export class Identity {
  readonly auth: Auth;
  readonly owner: number;
  readonly #catalog: CatalogDatabase;
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
    const path = join(directory, "catalog.sqlite");
    this.#catalog = CatalogDatabase.open({ path, clock: new ManualClock(), log: silentLog });
    this.auth = this.at(new ManualClock());
    this.owner = this.#catalog.accounts.ownerNumber("ada", { create: true }) ?? 0;
  }

  /** Creates an identity with the user "ada", a DBA. */
  static async make(): Promise<Identity> {
    const identity = new Identity(mkdtempSync(join(tmpdir(), "tidemark-connection-")));
    const setup = { user: "ada", password: PASSWORDS.ada, root_password: PASSWORDS.root };
    await identity.auth.setup(setup, LOCAL);
    return identity;
  }

  /**
   * Returns an Auth with the same users and a different clock. By default, the number of attempts
   * per address is unlimited.
   */
  at(clock: ManualClock, attemptsPerSecond = 0): Auth {
    const random = new SeededRandom(1);
    const settings = { ...authSettings(), attemptsPerSecond };
    return new Auth({
      catalog: this.#catalog,
      clock,
      random,
      log: silentLog,
      settings,
      onAudit: () => undefined,
      onNotice: () => undefined,
    });
  }

  async logIn({
    at,
    user = "ada",
  }: {
    at?: ManualClock;
    user?: keyof typeof PASSWORDS;
  } = {}): Promise<string> {
    const auth = at === undefined ? this.auth : this.at(at);
    const login = await auth.login({ user, password: PASSWORDS[user] }, LOCAL);
    return login.access_token;
  }

  close(): void {
    this.#catalog.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** A store with one table, its live engine, and connections to it. */
export class ConnectionFixture {
  readonly clock: ManualClock = new ManualClock();
  readonly slices: MessageTimeSlices = new MessageTimeSlices(this.clock, (error) => {
    throw error;
  });
  readonly live: LocalLiveEngine;
  readonly #identity: Identity;
  readonly #store: ModelStore;
  readonly #token: string;

  constructor(identity: Identity, token: string, limits: Partial<LiveLimits> = {}) {
    this.#identity = identity;
    this.#token = token;
    this.#store = new ModelStore(this.clock);
    this.#store.defineTable(messagesTable());
    this.live = fixtureOver(this.#store, this.clock, limits).engine;
  }

  open({ config = {}, request = {}, as = this.#identity.auth }: OpenOptions = {}): Opened {
    const socket = new SimulatedSocket();
    const settings = serverConfig(config);
    const budgetBytes = settings.websocket.send_queue_bytes;
    const connection = new Connection({
      number: 1,
      socket,
      request: {
        caller: LOCAL,
        bearer: undefined,
        format: { serialization: "json", isGzipOn: false },
        isGzipForbidden: false,
        peer: undefined,
        ...request,
      },
      parts: {
        config: settings,
        auth: as,
        live: this.live,
        topics: NO_TOPICS,
        onBug: noBugs,
        clock: this.clock,
        log: silentLog,
        slices: this.slices,
        outbox: { budgetBytes, flusher: new SocketFlusher(this.clock, noBugs) },
      },
    });
    connection.open();
    return { connection, socket, say: (it) => connection.receive(JSON.stringify(it)) };
  }

  openAuthenticated(options: OpenOptions = {}): Opened {
    const opened = this.open(options);
    opened.say({ type: "authenticate", token: this.#token });
    expect(opened.socket.drain()).toMatchObject([{ type: "auth_success", user: "ada" }]);
    return opened;
  }

  /**
   * Writes `count` messages of ada with consecutive ids, beginning with `from`, in one commit
   * each.
   */
  async insert(from: number, count: number, body = ""): Promise<void> {
    const { owner } = this.#identity;
    for (let id = from; id < from + count; id += 1) {
      const rows = [message(id, "lobby", 0, body)];
      this.#store.write({ tableId: MESSAGES, owner, operation: "insert", rows });
    }
    await settle();
  }
}
