/**
 * Runs the queue in PostgreSQL, with its default autovacuum, over its own protocol without a front
 * end, and with an index in place of Tidemark's `_seq`.
 */
import type { Queue, Target } from "./measured_queue.ts";

const CONNECTIONS = 16;

export class PostgresQueue implements Queue {
  readonly newestColumn = "rev";
  readonly #table: string;
  readonly ownerCount: number;
  readonly restart = undefined;
  readonly #hasOwners: boolean;
  readonly #sql: Bun.SQL;

  private constructor(sql: Bun.SQL, { owners, table }: { owners: number; table: string }) {
    this.#sql = sql;
    this.#table = table;
    this.#hasOwners = owners > 0;
    this.ownerCount = Math.max(1, owners);
  }

  static async open(
    url: string,
    options: { owners: number; table: string },
  ): Promise<PostgresQueue> {
    const queue = new PostgresQueue(new Bun.SQL(url, { max: CONNECTIONS }), options);
    await queue.#define();
    return queue;
  }

  target(owner: number): Target {
    const touched = `, rev = nextval('${this.#table}_rev_seq')`;
    return { table: this.#table, touched, ...(this.#hasOwners ? { owner } : {}) };
  }

  async run(statements: readonly string[]): Promise<readonly number[]> {
    // Each statement is a transaction of its own, as it is in Tidemark.
    for (const statement of statements) await this.#sql.unsafe(statement);
    return [];
  }

  async renew(): Promise<void> {
    await this.#sql.unsafe(`DROP TABLE ${this.#table}`);
    await this.#define();
  }

  async ask(sql: string): Promise<number> {
    const rows: readonly unknown[] = await this.#sql.unsafe(sql);
    return rows.length;
  }

  async snapshot(owner: number): Promise<number> {
    const own = this.#hasOwners ? ` WHERE owner = ${owner}` : "";
    return await this.ask(`SELECT id, kind, qty, body FROM ${this.#table}${own}`);
  }

  /** Does not wait. Autovacuum decides by itself when to work, so its end cannot be observed. */
  async settled(): Promise<void> {}

  async stop(): Promise<void> {
    await this.#sql.close();
  }

  async #define(): Promise<void> {
    const table = this.#table;
    const [owner, key] = this.#hasOwners ? ["owner INTEGER, ", "owner, "] : ["", ""];
    await this.#sql.unsafe(
      `CREATE TABLE ${table} (${owner}id BIGINT, kind TEXT, qty INTEGER, body TEXT, ` +
        `rev BIGSERIAL, PRIMARY KEY (${key}id)); CREATE INDEX ${table}_rev ON ${table} (${key}rev)`,
    );
  }
}
