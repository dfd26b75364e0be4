/**
 * Asks PostgreSQL which results the order of rows leaves open. Rows with equal keys have no defined
 * order, in a window as in FETCH, and a table without ORDER BY has none at all. A result is right
 * if PostgreSQL itself gives it for another order of the same rows.
 */
import type { Played } from "./played.ts";
import type { PostgresPlayer } from "./postgres_player.ts";

/** The number of random orders that are tried. */
const RANDOM_ORDERS = 60;

/** The maximum number of rows of a table that is tried in other orders. */
const ROWS_MAX = 20_000;

const DECLARE = /^\s*declare\s+("[^"]+"|\w+)[\s\S]*?\bfor\s+([\s\S]*)$/i;
const FETCH = /^\s*fetch\b[\s\S]*?("[^"]+"|\w+)\s*$/i;

interface NamedTable {
  readonly name: string;
  readonly columns: readonly string[];
}

/** Returns orders by one or two columns in either direction, and random orders. */
function ordersBy(columns: readonly string[]): readonly string[] {
  const keys = columns.flatMap((column) => [column, `${column} DESC`]);
  const pairs = keys.flatMap((first) => keys.map((second) => `${first}, ${second}`));
  const random = Array.from({ length: RANDOM_ORDERS }, (_, seed) => `md5(ctid::text || '${seed}')`);
  return [...keys, ...pairs, ...random];
}

type Player = Pick<PostgresPlayer, "play">;

export class OpenOrders {
  readonly #postgres: Player;
  /** The rows that the query of each cursor had when the cursor was declared. */
  readonly #cursors = new Map<string, Played>();

  constructor(postgres: Player) {
    this.#postgres = postgres;
  }

  /** Remembers the rows of a cursor, before PostgreSQL declares it. */
  async before(sql: string): Promise<void> {
    const [, name, query = ""] = DECLARE.exec(sql) ?? [];
    if (name === undefined) return;
    const locked = query.replace(/\bfor\s+(?:update|share|no\s+key|key)\b[\s\S]*$/i, "");
    const rows = await this.#undone(() => this.#run(locked));
    this.#cursors.set(name, rows);
  }

  /**
   * Returns the name of the cursor that a FETCH reads, and all rows of the cursor as of its
   * declaration.
   */
  cursorOf(sql: string): { readonly name: string; readonly rows: Played } | undefined {
    const name = FETCH.exec(sql)?.[1];
    const rows = name === undefined ? undefined : this.#cursors.get(name);
    return name === undefined || rows === undefined ? undefined : { name, rows };
  }

  /** Returns results of a query over its tables with their rows in other orders. */
  async *resultsOf(sql: string): AsyncGenerator<Played, void> {
    const tables = await this.#tablesIn(sql);
    const orders = tables.map(({ columns }) => ordersBy(columns));
    const count = Math.max(0, ...orders.map(({ length }) => length));
    for (let at = 0; at < count; at += 1) {
      yield await this.#undone(async () => {
        for (const [i, { name }] of tables.entries()) {
          const order = orders[i]?.[at];
          if (order !== undefined) await this.#reorder(name, order);
        }
        return await this.#run(sql);
      });
    }
  }

  /** Returns the tables that a query names, with the columns that it names. */
  async #tablesIn(sql: string): Promise<readonly NamedTable[]> {
    const tables: NamedTable[] = [];
    const words = new Set(sql.toLowerCase().match(/[a-z_]\w*/g));
    for (const word of words) {
      const found = await this.#run(
        `SELECT relkind FROM pg_class WHERE oid = to_regclass('${word}') AND relkind = 'r' AND oid >= 16384`,
      );
      if (found.kind === "failure" || found.rows.length === 0) continue;
      const count = await this.#run(`SELECT count(*) FROM ${word}`);
      if (count.kind === "failure" || Number(count.rows[0]?.[0]) > ROWS_MAX) continue;
      const columns = await this.#run(
        `SELECT attname FROM pg_attribute WHERE attrelid = to_regclass('${word}') AND attnum > 0`,
      );
      const names = columns.kind === "rows" ? columns.rows.map(([name]) => name ?? "") : [];
      tables.push({ name: word, columns: names.filter((name) => words.has(name)) });
    }
    return tables;
  }

  /** Replaces a table by a temporary one that has the same rows in another order. */
  async #reorder(table: string, order: string): Promise<void> {
    await this.#run(`ALTER TABLE ${table} RENAME TO ${table}_in_order`);
    await this.#run(
      `CREATE TEMP TABLE ${table} AS SELECT * FROM ${table}_in_order ORDER BY ${order}`,
    );
  }

  /** Does work in PostgreSQL, and undoes its effects. */
  async #undone(work: () => Promise<Played>): Promise<Played> {
    const point = await this.#run("SAVEPOINT open_orders");
    const isInside = point.kind === "rows";
    if (!isInside) await this.#run("BEGIN");
    const played = await work();
    await this.#run(isInside ? "ROLLBACK TO SAVEPOINT open_orders" : "ROLLBACK");
    if (isInside) await this.#run("RELEASE SAVEPOINT open_orders");
    return played;
  }

  #run(sql: string): Promise<Played> {
    return this.#postgres.play({ sql, line: 0 });
  }
}
