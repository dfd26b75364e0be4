/** Defines the rows that every system writes and reads, so that all do the same work. */

/** A row of the tables for short statements, about 150 bytes as a JSON object. */
export interface Item {
  readonly id: number;
  readonly usr: string;
  readonly body: string;
  readonly ts: number;
}

const WORDS = "tide mark moon shore wave salt kelp reef gull sand drift buoy".split(" ");

export function itemFor(id: number, usr = `u${id % 1000}`): Item {
  const words = Array.from({ length: 16 }, (_, index) => WORDS[(id * 7 + index * index) % 12]);
  return { id, usr, body: words.join(" "), ts: 1_795_000_000_000 + id };
}

/** Returns an INSERT of rows with consecutive ids, whose values are literals. */
export function bulkStatement(table: string, firstId: number, count: number): string {
  const values = Array.from({ length: count }, (_, index) => {
    const { id, usr, body, ts } = itemFor(firstId + index);
    return `(${id}, '${usr}', '${body}', ${ts})`;
  });
  return `INSERT INTO ${table} (id, usr, body, ts) VALUES ${values.join(", ")}`;
}

/** The columns of the scanned table. Each value is a SQL expression over the row number `n`. */
export const EVENT_COLUMNS: readonly (readonly [name: string, type: string, value: string])[] = [
  ["id", "BIGINT", "n"],
  ["kind", "TEXT", "'kind' || ((n * 7919) % 16)"],
  ["bucket", "INTEGER", "(n * 31) % 10"],
  ["qty", "INTEGER", "n % 100"],
  ["amount", "DOUBLE PRECISION", "((n * 37) % 1000) / 8.0"],
];

/**
 * The queries that scan all rows. Q1 aggregates all rows by group, Q2 aggregates a tenth of the
 * rows by group, and Q3 aggregates a tenth of the rows into a single sum. The other queries return
 * the largest groups and count distinct values.
 */
export const SCANS: Readonly<Record<"Q1" | "Q2" | "Q3" | "top 10" | "distinct", string>> = {
  Q1: "SELECT kind, SUM(amount), AVG(qty) FROM events GROUP BY kind ORDER BY kind",
  Q2: "SELECT kind, SUM(amount), AVG(qty) FROM events WHERE bucket = 3 GROUP BY kind ORDER BY kind",
  Q3: "SELECT SUM(amount) FROM events WHERE bucket = 3",
  "top 10": "SELECT qty, SUM(amount) AS s FROM events GROUP BY qty ORDER BY s DESC, qty LIMIT 10",
  distinct: "SELECT COUNT(DISTINCT qty) FROM events",
};
