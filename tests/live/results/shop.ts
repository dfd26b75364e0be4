/**
 * A database with the tables of a shop. Tests follow each query in both ways: maintained from the
 * changes to its tables, and evaluated again after each commit.
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import type { SubscriptionSpec, WireRow } from "../../../src/protocol/mod.ts";
import type { SqlParameter } from "../../../src/sql/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";

type Way = "maintained" | "evaluated";

const TABLES = `DROP VIEW IF EXISTS shop.large;
    DROP TABLE IF EXISTS shop.items; DROP TABLE IF EXISTS shop.orders;
    DROP TABLE IF EXISTS shop.products; DROP TABLE IF EXISTS shop.stock; DROP TABLE IF EXISTS shop.users;
    CREATE SHARED TABLE shop.users (id INT PRIMARY KEY, name TEXT, city TEXT, boss INT);
    CREATE SHARED TABLE shop.orders (id INT PRIMARY KEY, user_id INT, total INT);
    CREATE SHARED TABLE shop.products (id INT PRIMARY KEY, name TEXT NOT NULL, price DECIMAL(10,2));
    CREATE SHARED TABLE shop.items (id INT PRIMARY KEY, order_id INT, product_id INT, n INT, weight DOUBLE);
    CREATE SHARED TABLE shop.stock (product_id INT, place TEXT, n INT, PRIMARY KEY (product_id, place));
    CREATE INDEX users_city ON shop.users (city); CREATE INDEX users_boss ON shop.users (boss, name);
    CREATE INDEX orders_user ON shop.orders (user_id);
    CREATE INDEX items_order ON shop.items (order_id);
    CREATE INDEX items_product ON shop.items (product_id);
    CREATE VIEW shop.large AS SELECT id, user_id FROM shop.orders WHERE total >= 10;
    INSERT INTO shop.users VALUES (1, 'ada', 'rome', NULL), (2, 'bo', 'oslo', 1), (3, 'cy', 'rome', 1), (4, NULL, NULL, 2);
    INSERT INTO shop.orders VALUES (10, 1, 5), (11, 1, 20), (12, 2, 30), (13, NULL, 7), (14, 9, 1);
    INSERT INTO shop.stock VALUES (1, 'rome', 3), (1, 'oslo', 4), (3, 'rome', 0);
    INSERT INTO shop.products VALUES (1, 'pen', 1.50), (2, 'ink', 4.25), (3, 'cup', NULL);
    INSERT INTO shop.items VALUES (100, 10, 1, 2, 0.5), (101, 10, 2, 1, 1.5), (102, 11, 1, 4, 0.5),
      (103, 12, 3, 1, 2.5), (104, 12, 3, 1, 2.5), (105, NULL, 1, NULL, NULL)`;

export class Shop {
  readonly #directory: string;
  readonly database: Database;
  readonly root: Principal;

  private constructor(directory: string, database: Database) {
    this.#directory = directory;
    this.database = database;
    this.root = principalFor(database, "root");
  }

  /** Opens a database without tables. @param config Additional configuration lines. */
  static async open(config = ""): Promise<Shop> {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-shop-"));
    const database = await openAt(directory, { config: `${SMALL_FILES}\n${config}` });
    const shop = new Shop(directory, database);
    await shop.run("CREATE NAMESPACE shop");
    return shop;
  }

  /** Recreates the tables with their initial rows, replacing those left by an earlier test. */
  async renew(): Promise<void> {
    await this.run(TABLES);
  }

  async close(): Promise<void> {
    await this.database.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  async run(
    sql: string,
    params: readonly SqlParameter[] = [],
  ): Promise<readonly (readonly unknown[])[]> {
    const { error, results } = await this.database.sql.execute(this.root, { sql, params });
    expect(error).toBeUndefined();
    return results.at(-1)?.rows ?? [];
  }

  follow(
    sql: string,
    way: Way | undefined,
    { held, ...given }: Partial<SubscriptionSpec> & { held?: ResultFollower } = {},
  ): ResultFollower {
    const follower = new ResultFollower(held === undefined ? {} : { held });
    const { options = {} } = given;
    const spec = { id: "q", sql, ...given, options: { ...options, ...(way && { way }) } };
    follower.subscription = this.database.live.subscribe({
      principal: this.root,
      spec,
      sink: follower,
    });
    return follower;
  }

  /** Follows a query with each set of parameters, both maintained and evaluated again. */
  async followEach(
    sql: string,
    values: readonly unknown[],
  ): Promise<(readonly [maintained: ResultFollower, evaluated: ResultFollower])[]> {
    return await Promise.all(
      values.map(async (value) => {
        const params = [value];
        const maintained = await this.current(this.follow(sql, undefined, { params }));
        return [maintained, await this.current(this.follow(sql, "evaluated", { params }))] as const;
      }),
    );
  }

  async current(follower: ResultFollower): Promise<ResultFollower> {
    await follower.reaches(this.database.store.visibleSeq);
    return follower;
  }

  /**
   * Returns the numbers of evaluations and of incremental steps that EXPLAIN SUBSCRIBE TO shows.
   */
  async stepsOf(sql: string, params: readonly SqlParameter[] = []): Promise<number[]> {
    const lines = await this.run(`EXPLAIN SUBSCRIBE TO ${sql}`, params);
    const line = lines.map(([text]) => String(text)).find((text) => text.includes("so far"));
    return (line?.match(/\d+/g) ?? []).map(Number);
  }

  /** Runs a change, and returns the seq of its commit. */
  async seqOf(change: string): Promise<number> {
    const { results } = await this.database.sql.execute(this.root, { sql: change, params: [] });
    return Number(results.at(-1)?.lastSeq);
  }
}

export const COMMITS: readonly (readonly [what: string, sql: string])[] = [
  ["an insert", "INSERT INTO shop.orders VALUES (20, 3, 15)"],
  ["rows that find it", "INSERT INTO shop.items VALUES (110, 20, 2, 3, 1), (111, 20, 2, 3, 1)"],
  ["an update of a value", "UPDATE shop.users SET name = 'eva' WHERE id = 1"],
  ["a moved key", "UPDATE shop.orders SET user_id = 2 WHERE id = 10"],
  ["a key that becomes NULL", "UPDATE shop.items SET order_id = NULL WHERE id = 102"],
  ["a key that was NULL", "UPDATE shop.orders SET user_id = 4, total = 99 WHERE id = 13"],
  [
    "both sides in one commit",
    `BEGIN; INSERT INTO shop.users VALUES (9, 'ida', 'rome', 3); UPDATE shop.orders SET total = 11 WHERE id = 14;
     INSERT INTO shop.items VALUES (120, 14, 1, 1, 3); DELETE FROM shop.items WHERE id = 100; COMMIT`,
  ],
  [
    "rows that come and go in one commit",
    "BEGIN; INSERT INTO shop.orders VALUES (30, 1, 1); DELETE FROM shop.orders WHERE id = 30; COMMIT",
  ],
  ["duplicates", "INSERT INTO shop.items VALUES (130, 12, 3, 1, 2.5), (131, 12, 3, 1, 2.5)"],
  ["one duplicate less", "DELETE FROM shop.items WHERE id = 130"],
  ["a key of a joined table", "UPDATE shop.users SET boss = 2, city = 'oslo' WHERE id = 3"],
  ["a referenced row that goes", "DELETE FROM shop.users WHERE id = 2"],
  [
    "swapped keys",
    `BEGIN; UPDATE shop.orders SET user_id = 3 WHERE id = 11; UPDATE shop.orders SET user_id = 1 WHERE id = 20;
     UPDATE shop.users SET name = NULL WHERE id IN (1, 3); COMMIT`,
  ],
  [
    "rows of a composite key",
    "INSERT INTO shop.stock VALUES (2, 'rome', 1); DELETE FROM shop.stock WHERE product_id = 1 AND place = 'rome'",
  ],
  ["a price", "UPDATE shop.products SET price = 2 WHERE id = 3"],
  ["many deletes", "DELETE FROM shop.items WHERE n = 1"],
  ["a referenced row that returns", "INSERT INTO shop.users VALUES (2, 'bo', 'oslo', 9)"],
  ["everything", "DELETE FROM shop.items; DELETE FROM shop.orders"],
  ["a new beginning", "INSERT INTO shop.orders VALUES (10, 1, 5), (11, 2, 5)"],
];

/** Returns a follower's rows without `_seq`, ordered by key. */
export function rowsByKey({ rows }: ResultFollower): WireRow[] {
  return rows
    .map(({ _seq, ...row }) => row)
    .toSorted((left, right) => (String(left["_key"]) < String(right["_key"]) ? -1 : 1));
}

/** Returns the seqs of a follower's rows, keyed by the value of the first column. */
export function seqsOf({ ack, rows }: ResultFollower): Record<string, unknown> {
  const [first] = ack?.schema ?? [];
  return Object.fromEntries(rows.map((row) => [String(row[first?.name ?? ""]), row["_seq"]]));
}
