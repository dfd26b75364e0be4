/** Runs the queue in a separate Tidemark server, over one HTTP connection and one WebSocket. */
import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import { sqlRequest } from "../systems/measured_system.ts";
import { makeUsers, startSecretServer } from "../systems/start_systems.ts";
import type { Queue, Target } from "./measured_queue.ts";

export const TABLE = "queue.jobs";

const SNAPSHOT_ROWS = 1000;

/** The number of requests in flight while the owners' rows are being written. */
const CONNECTIONS = 16;

interface SqlAnswer {
  readonly status: string;
  readonly error?: unknown;
  readonly results: readonly { readonly row_count: number; readonly last_seq?: number | null }[];
}

export class TidemarkQueue implements Queue {
  readonly newestColumn = "_seq";
  readonly server: ServerProcess;
  readonly ownerCount: number;
  readonly #tokens: readonly string[];
  #idle: HttpConnection[] = [];

  private constructor(server: ServerProcess, tokens: readonly string[]) {
    this.server = server;
    this.#tokens = tokens;
    this.ownerCount = Math.max(1, tokens.length);
  }

  /**
   * Starts a server, and creates the queue's table.
   * @param owners The number of owners; 0 for a table that all users share.
   */
  static async start(owners: number): Promise<TidemarkQueue> {
    const server = await startSecretServer();
    await server.rows("CREATE NAMESPACE queue");
    const queue = new TidemarkQueue(server, await makeUsers(server, owners));
    await queue.#define();
    return queue;
  }

  target(): Target {
    return { table: TABLE };
  }

  readonly restart = async (): Promise<void> => {
    for (const connection of this.#idle.splice(0)) connection.close();
    await this.server.restart("SIGKILL");
  };

  async run(statements: readonly string[], owner: number): Promise<readonly number[]> {
    const { results } = await this.#post(statements.join("; "), owner);
    return results.map(({ last_seq }) => Number(last_seq));
  }

  async renew(): Promise<void> {
    await this.server.rows(`DROP TABLE ${TABLE}`);
    await this.#define();
  }

  async ask(sql: string, owner: number): Promise<number> {
    const { results } = await this.#post(sql, owner);
    return results.at(-1)?.row_count ?? 0;
  }

  tokenOf(owner: number): string {
    return this.#tokens[owner] ?? this.server.token;
  }

  async snapshot(owner: number): Promise<number> {
    const done = Promise.withResolvers<number>();
    const socket = new WebSocket(`${this.server.webSocketUrl}?compress=false`, {
      headers: { Authorization: `Bearer ${this.tokenOf(owner)}` },
    });
    let count = 0;
    socket.addEventListener("open", () => {
      const sql = `SELECT id, kind, qty, body FROM ${TABLE}`;
      const subscription = { id: "s", sql, options: { batch_size: SNAPSHOT_ROWS } };
      socket.send(JSON.stringify({ type: "subscribe", subscription }));
    });
    socket.addEventListener("close", ({ code }) => done.reject(new Error(`closed with ${code}`)));
    socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
      const message = JSON.parse(data) as Batch;
      if (message.type === "error") done.reject(new Error(data));
      if (message.type === "subscription_ack" && !message.batch_control.has_more) done.resolve(0);
      if (message.type !== "initial_data_batch") return;
      count += message.rows.length;
      if (!message.batch_control.has_more) done.resolve(count);
      else socket.send('{"type":"next_batch","subscription_id":"s"}');
    });
    try {
      return await done.promise;
    } finally {
      done.promise.catch(() => undefined);
      socket.close();
    }
  }

  /** Waits until the server is running no jobs. */
  async settled(): Promise<void> {
    for (;;) {
      const running = await this.server.rows(
        "SELECT COUNT(*) FROM system.jobs WHERE status IN ('queued', 'running')",
      );
      if (Number(running[0]?.[0]) === 0) return;
      await Bun.sleep(50);
    }
  }

  async stop(): Promise<void> {
    for (const connection of this.#idle.splice(0)) connection.close();
    await this.server.stop();
  }

  async #define(): Promise<void> {
    const kind = this.#tokens.length === 0 ? "SHARED" : "USER";
    const columns = "(id BIGINT PRIMARY KEY, kind TEXT, qty INTEGER, body TEXT)";
    await this.server.rows(`CREATE ${kind} TABLE ${TABLE} ${columns}`);
  }

  async #post(sql: string, owner: number): Promise<SqlAnswer> {
    this.#idle = this.#idle.filter(({ isOpen }) => isOpen);
    const connection = this.#idle.pop() ?? (await HttpConnection.open(this.server.url));
    const { body: text, path } = sqlRequest(sql);
    const { body } = await connection.post(path, this.tokenOf(owner), text);
    if (this.#idle.length < CONNECTIONS) this.#idle.push(connection);
    else connection.close();
    const answer = JSON.parse(body) as SqlAnswer;
    if (answer.status !== "success") {
      throw new Error(`Cannot run ${sql.slice(0, 200)}: ${JSON.stringify(answer.error)}`);
    }
    return answer;
  }
}

interface Batch {
  readonly type: string;
  readonly rows: readonly unknown[];
  readonly batch_control: { readonly has_more: boolean };
}
