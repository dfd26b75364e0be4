/**
 * Generates the load under which a server is killed: writers that insert, update, delete and
 * commit several statements at once, and a writer that flushes and changes definitions. Each
 * writer records changes in the ledger before it sends them, and records the response afterwards.
 */

import type { Chance } from "../../../scripts/support/chance.ts";
import type { ServerProcess } from "../../support/server_process.ts";
import type { Changes, Ledger, SeqWatch } from "./ledger.ts";

/** A table as one user sees it. The user must read exactly the rows in the ledger. */
export interface Scope {
  readonly table: string;
  readonly user: string;
  readonly token: string;
  readonly ledger: Ledger;
  readonly seqs: SeqWatch;
}

/**
 * The number of keys above which a writer deletes more than it inserts, so that the tables stay
 * small enough to read.
 */
const KEYS_MAX = 1500;

const SHORT_TEXT_MAX = 60;
const LONG_TEXT_MAX = 6000;

/** The size of the key range that each writer has to itself. */
const WRITER_KEYS = 1_000_000;

export interface Tally {
  acknowledged: number;
  refused: number;
  /**
   * The last refused statement, for the report. A healthy server refuses nothing under this load.
   */
  lastRefusal: string;
}

export interface WriterOptions {
  server: ServerProcess;
  scope: Scope;
  writer: number;
  chance: Chance;
  tally: Tally;
}

/** A writer. Its keys ascend throughout the run. */
export class Writer {
  readonly #options: WriterOptions;
  readonly #own: number[] = [];
  #next: number;
  #version = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#next = options.writer * WRITER_KEYS;
  }

  /** Writes until the server has ended. */
  async run(): Promise<void> {
    const { scope, writer } = this.#options;
    this.#keepExisting();
    for (;;) {
      const { sql, changes } = this.#operation();
      scope.ledger.begin(writer, changes);
      const isThere = await this.#send(sql);
      if (!isThere) return;
      this.#keepExisting();
    }
  }

  /** After a crash, only the ledger knows which keys exist. */
  #keepExisting(): void {
    const existing = this.#own.filter((key) => this.#options.scope.ledger.has(key));
    this.#own.splice(0, this.#own.length, ...existing);
  }

  #operation(): { sql: string; changes: Changes } {
    const { chance } = this.#options;
    const kind = chance.below(10);
    if (this.#own.length < 10 || (kind < 4 && this.#own.length < KEYS_MAX)) {
      return this.#insert(chance.below(3) === 0 ? 1 + chance.below(50) : 1);
    }
    if (kind < 6) return this.#update();
    if (kind < 8) return this.#delete();
    return this.#transaction();
  }

  #insert(rowCount: number): { sql: string; changes: Changes } {
    const { table } = this.#options.scope;
    const changes = new Map<number, string>();
    for (let count = 0; count < rowCount; count += 1) changes.set(this.#newKey(), this.#newText());
    const values = [...changes].map(([key, text]) => `(${key}, '${text}')`).join(", ");
    return { sql: `INSERT INTO ${table} (id, v) VALUES ${values}`, changes };
  }

  #update(): { sql: string; changes: Changes } {
    const { chance, scope } = this.#options;
    const key = chance.pick(this.#own);
    const text = this.#newText();
    const sql = `UPDATE ${scope.table} SET v = '${text}' WHERE id = ${key}`;
    return { sql, changes: new Map([[key, text]]) };
  }

  #delete(): { sql: string; changes: Changes } {
    const { chance, scope } = this.#options;
    const keys = new Set([chance.pick(this.#own), chance.pick(this.#own), chance.pick(this.#own)]);
    const sql = `DELETE FROM ${scope.table} WHERE id IN (${[...keys].join(", ")})`;
    return { sql, changes: new Map([...keys].map((key) => [key, undefined])) };
  }

  #transaction(): { sql: string; changes: Changes } {
    const parts = [this.#insert(2), this.#update(), this.#update()];
    const changes = new Map(parts.flatMap((part) => [...part.changes]));
    const statements = ["BEGIN", ...parts.map((part) => part.sql), "COMMIT"];
    return { sql: statements.join("; "), changes };
  }

  #newKey(): number {
    this.#next += 1;
    this.#own.push(this.#next);
    return this.#next;
  }

  /**
   * Removes keys that do not exist from the writer's list. After a crash, only the ledger knows
   * which keys exist.
   */
  #newText(): string {
    const { chance, writer } = this.#options;
    this.#version += 1;
    // Long texts fill the log, so that most servers recycle it before they are killed.
    const lengthMax = chance.below(8) === 0 ? LONG_TEXT_MAX : SHORT_TEXT_MAX;
    return `w${writer}.${this.#version}.${chance.text(8 + chance.below(lengthMax))}`;
  }

  /**
   * Sends one of the writer's statements.
   * @returns Whether the server is still running.
   */
  async #send(sql: string): Promise<boolean> {
    const { server, scope, writer, tally } = this.#options;
    const answer = await server.sql(sql, { token: scope.token }).catch(() => undefined);
    if (answer === undefined) return false;
    const { body } = answer;
    if (body.status === "success") {
      scope.ledger.acknowledge(writer);
      tally.acknowledged += 1;
      const seq = body.results.at(-1)?.last_seq;
      if (typeof seq !== "number")
        throw new Error(`Cannot continue the load: the response has no last_seq for ${sql}`);
      scope.seqs.acknowledged(seq);
      return true;
    }
    // If the outcome is unknown, the change stays pending until the comparison after the restart
    // shows whether it was committed.
    if (body.error?.code === "COMMIT_UNKNOWN") return false;
    scope.ledger.refuse(writer);
    tally.refused += 1;
    tally.lastRefusal = `${sql.slice(0, 120)}: ${JSON.stringify(body.error)}`;
    return body.error?.code !== "SHUTTING_DOWN";
  }
}

export interface DefinerOptions {
  server: ServerProcess;
  chance: Chance;
  tables: readonly string[];
  tally: Tally;
}

/** Flushes and compacts, and creates, alters and drops side tables next to the writers' tables. */
export class Definer {
  readonly #options: DefinerOptions;
  /** The side tables that exist according to the acknowledgements, with their columns. */
  readonly #columnsByTable = new Map<string, string[]>();
  /**
   * The change that was sent but not answered. The states before and after it are both correct.
   */
  #unanswered: { table: string; before?: string[]; after?: string[] } | undefined;
  #tableCount = 0;

  constructor(options: DefinerOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    for (;;) {
      const isThere = await this.#step();
      if (!isThere) return;
      await Bun.sleep(this.#options.chance.below(60));
    }
  }

  /**
   * Compares the side tables with the acknowledged definitions.
   * @returns Descriptions of the faults.
   */
  async faults(): Promise<string[]> {
    const { server } = this.#options;
    const rows = await server.rows(
      "SELECT table_name, column_name FROM information_schema.columns " +
        "WHERE table_schema = 'torture' AND table_name LIKE 'side%' ORDER BY ordinal_position",
    );
    const found = new Map<string, string[]>();
    for (const [table, column] of rows) {
      if (String(column).startsWith("_")) continue;
      found.set(String(table), [...(found.get(String(table)) ?? []), String(column)]);
    }
    this.#settle(found);
    const names = new Set([...this.#columnsByTable.keys(), ...found.keys()]);
    const faults = [...names].flatMap((name) => {
      const wanted = this.#columnsByTable.get(name)?.join();
      const got = found.get(name)?.join();
      return wanted === got ? [] : [`table ${name} has columns ${got}, but should have ${wanted}`];
    });
    return [...faults, ...(await this.#unrecorded(found))];
  }

  /** Compares the tables defined in transactions with the rows that record them. */
  async #unrecorded(found: ReadonlyMap<string, readonly string[]>): Promise<string[]> {
    const { server } = this.#options;
    const rows = await server.rows("SELECT name, columns FROM torture.recorded");
    const recorded = new Map(rows.map(([name, columns]) => [String(name), String(columns)]));
    const names = new Set([...recorded.keys(), ...[...found.keys()].filter(isRecorded)]);
    const faults: string[] = [];
    for (const name of names) {
      const columns = found.get(name);
      const listed = recorded.get(name);
      if (columns?.join() !== listed) {
        faults.push(`table ${name} has columns ${columns?.join()}, but ${listed} are recorded`);
      }
      // The transaction that adds a column also writes the column's number into the only row.
      if (columns === undefined) continue;
      const [row = []] = await server.rows(`SELECT ${columns.join()} FROM torture.${name}`);
      const wanted = columns.map((_, at) => (at === 1 ? "x" : at));
      if (row.map(String).join() !== wanted.join()) {
        faults.push(`table ${name} has the row ${row.join()}, but should have ${wanted.join()}`);
      }
    }
    return faults;
  }

  #settle(found: ReadonlyMap<string, readonly string[]>): void {
    if (this.#unanswered === undefined) return;
    const { table, after } = this.#unanswered;
    if (found.get(table)?.join() === after?.join()) this.#adopt(table, after);
    this.#unanswered = undefined;
  }

  #adopt(table: string, columns: string[] | undefined): void {
    if (columns === undefined) this.#columnsByTable.delete(table);
    else this.#columnsByTable.set(table, columns);
  }

  async #step(): Promise<boolean> {
    const { chance, tables } = this.#options;
    const side = [...this.#columnsByTable.keys()];
    const kind = chance.below(10);
    if (kind < 4) return this.#send(`STORAGE FLUSH TABLE ${chance.pick(tables)}`);
    if (kind < 5) return this.#send(`STORAGE COMPACT TABLE ${chance.pick(tables)}`);
    if (chance.below(10) === 0) return this.#send("SELECT SNOWFLAKE_ID()");
    if (side.length === 0 || (kind < 7 && side.length < 8)) {
      this.#tableCount += 1;
      const table = `side${this.#tableCount}`;
      const sql = `CREATE TABLE torture.${table} (id BIGINT PRIMARY KEY, v TEXT)`;
      return this.#define(sql, table, ["id", "v"]);
    }
    const table = chance.pick(side);
    const columns = this.#columnsByTable.get(table) ?? [];
    if (kind < 9) {
      const column = `c${columns.length}`;
      const sql = `ALTER TABLE torture.${table} ADD COLUMN ${column} INT DEFAULT 7`;
      return this.#define(sql, table, [...columns, column]);
    }
    return this.#define(`DROP TABLE torture.${table}`, table, undefined);
  }

  async #define(sql: string, table: string, after: string[] | undefined): Promise<boolean> {
    const before = this.#columnsByTable.get(table);
    this.#unanswered = {
      table,
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    };
    const isThere = await this.#send(isRecorded(table) ? recording(sql, table, after) : sql);
    if (!isThere) return false;
    this.#adopt(table, after);
    this.#unanswered = undefined;
    return true;
  }

  async #send(sql: string): Promise<boolean> {
    const { server, tally } = this.#options;
    const answer = await server.sql(sql).catch(() => undefined);
    if (answer === undefined) return false;
    if (answer.body.status === "success") return true;
    tally.refused += 1;
    tally.lastRefusal = `${sql}: ${JSON.stringify(answer.body.error)}`;
    throw new Error(`Cannot continue the load: the server refused ${tally.lastRefusal}`);
  }
}

/** Whether a side table is defined in transactions that also record its columns in a row. */
function isRecorded(table: string): boolean {
  return Number(table.slice("side".length)) % 2 === 0;
}

/** Returns a transaction that changes a side table, its only row, and the record of its columns. */
function recording(sql: string, table: string, after: readonly string[] | undefined): string {
  const last = after?.at(-1);
  const rows =
    after === undefined
      ? [`DELETE FROM torture.recorded WHERE name = '${table}'`]
      : [
          last === "v"
            ? `INSERT INTO torture.${table} VALUES (0, 'x')`
            : `UPDATE torture.${table} SET ${last} = ${after.length - 1}`,
          `INSERT INTO torture.recorded VALUES ('${table}', '${after.join()}') ` +
            "ON CONFLICT (name) DO UPDATE SET columns = EXCLUDED.columns",
        ];
  return ["BEGIN", sql, ...rows, "COMMIT"].join("; ");
}
