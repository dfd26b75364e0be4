/**
 * Implements the measured consumer with a Tidemark topic. It sends requests that wait for
 * messages, over connections that stay open.
 */
import type { ServerProcess } from "../../../tests/support/server_process.ts";
import { HttpConnection } from "../systems/http_connection.ts";
import { sqlRequest } from "../systems/measured_system.ts";
import { startSecretServer } from "../systems/start_systems.ts";
import type { ConsumerSystem, OnBody } from "./consumer_system.ts";

const ROWS_PER_INSERT = 10_000;

const WAIT_SECONDS = 30;

interface Consumed {
  readonly messages: readonly { readonly offset: number; readonly payload: string }[];
}

export class TidemarkConsumer implements ConsumerSystem {
  readonly name = "Tidemark";
  readonly #server: ServerProcess;
  readonly #writer: HttpConnection;
  readonly #reader: HttpConnection;
  readonly #acker: HttpConnection;
  #nextId = 1;

  private constructor(
    server: ServerProcess,
    [writer, reader, acker]: readonly [HttpConnection, HttpConnection, HttpConnection],
  ) {
    this.#server = server;
    this.#writer = writer;
    this.#reader = reader;
    this.#acker = acker;
  }

  static async start(): Promise<TidemarkConsumer> {
    const server = await startSecretServer();
    await server.rows(
      "CREATE NAMESPACE bench; CREATE TABLE bench.jobs (id BIGINT PRIMARY KEY, body TEXT); " +
        "CREATE TOPIC bench.work; ALTER TOPIC bench.work ADD SOURCE bench.jobs ON INSERT",
    );
    const open = (): Promise<HttpConnection> => HttpConnection.open(server.url);
    return new TidemarkConsumer(server, [await open(), await open(), await open()]);
  }

  get pid(): number {
    return this.#server.pid;
  }

  async fill(count: number): Promise<void> {
    for (let left = count; left > 0; left -= ROWS_PER_INSERT) {
      const last = this.#nextId + Math.min(left, ROWS_PER_INSERT) - 1;
      await this.#server.rows(
        `INSERT INTO bench.jobs SELECT g, 'job ' || g FROM generate_series(${this.#nextId}, ${last}) AS s(g)`,
      );
      this.#nextId = last + 1;
    }
  }

  async write(body: string): Promise<void> {
    const id = this.#nextId;
    this.#nextId += 1;
    const request = sqlRequest("INSERT INTO bench.jobs VALUES ($1, $2)", [id, body]);
    await this.#post(this.#writer, request.path, request.body);
  }

  async take(count: number, { batch, onBody }: { batch: number; onBody?: OnBody }): Promise<void> {
    const system = { topic_id: "bench.work", group_id: "bench" };
    const asked = { ...system, start: "Earliest", limit: batch, timeout_seconds: WAIT_SECONDS };
    const body = JSON.stringify(asked);
    let acking: Promise<unknown> = Promise.resolve();
    for (let left = count; left > 0; ) {
      const text = await this.#post(this.#reader, "/v1/api/topics/consume", body);
      const { messages } = JSON.parse(text) as Consumed;
      const last = messages.at(-1);
      if (last === undefined) throw new Error("Cannot read a topic: messages are missing");
      for (const { payload } of messages) {
        const row = JSON.parse(Buffer.from(payload, "base64").toString()) as { body: string };
        onBody?.(row.body);
      }
      left -= messages.length;
      await acking;
      const ack = JSON.stringify({ ...system, upto_offset: last.offset });
      acking = this.#post(this.#acker, "/v1/api/topics/ack", ack);
    }
    await acking;
  }

  async #post(connection: HttpConnection, path: string, body: string): Promise<string> {
    const answer = await connection.post(path, this.#server.token, body);
    if (answer.status !== 200) throw new Error(`Cannot post: ${answer.status} ${answer.body}`);
    return answer.body;
  }

  async stop(): Promise<void> {
    for (const connection of [this.#writer, this.#reader, this.#acker]) connection.close();
    await this.#server.stop();
  }
}
