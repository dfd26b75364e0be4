/**
 * The subscriptions' queries, each with its meaning in plain TypeScript. A condition on NULL is
 * unknown and therefore not true, so each filter handles NULL explicitly.
 */
import type { Row } from "./ledger.ts";

export type Cells = Record<string, string | number | boolean | null>;

export interface Query {
  readonly sql: string;
  readonly params?: readonly (string | number)[];
  readonly keeps: (row: Row) => boolean;
  /**
   * Returns the columns of a row that the query selects, without the key and the system columns.
   */
  readonly shows: (row: Row) => Cells;
}

export interface Followed {
  readonly name: string;
  readonly table: "items" | "board";
  /**
   * The user whose token the subscription uses. The subscription sees this user's rows in `items`.
   */
  readonly user: string;
  readonly query: Query;
  /**
   * How the subscription begins, both the first time and after the server has requested a restart.
   */
  readonly begins: "snapshot" | "last_rows" | "live";
}

export const USERS: readonly string[] = ["alice", "bob"];

/** Returns the name of a partition in the ledger. */
export function partitionName(table: "items" | "board", user: string): string {
  return table === "board" ? "board" : `items of ${user}`;
}

function whole({ room, n, body }: Row): Cells {
  return { room, n, body };
}

const QUERIES: readonly Query[] = [
  { sql: "SELECT * FROM live.$", keeps: () => true, shows: whole },
  { sql: "SELECT * FROM live.$ WHERE room = 'lobby'", keeps: isIn("lobby"), shows: whole },
  {
    sql: "SELECT id, body FROM live.$ WHERE n > 50",
    keeps: ({ n }) => n !== null && n > 50,
    shows: ({ body }) => ({ body }),
  },
  {
    sql: "SELECT n * 2 AS twice, UPPER(room) AS loud FROM live.$ WHERE n BETWEEN 20 AND 60",
    keeps: ({ n }) => n !== null && n >= 20 && n <= 60,
    shows: ({ n, room }) => ({
      twice: n === null ? null : n * 2,
      loud: room === null ? null : room.toUpperCase(),
    }),
  },
  {
    sql: "SELECT * FROM live.$ WHERE room = $1",
    params: ["hall"],
    keeps: isIn("hall"),
    shows: whole,
  },
  {
    sql: "SELECT id, n FROM live.$ WHERE room IS NULL OR n < 10",
    keeps: ({ room, n }) => room === null || (n !== null && n < 10),
    shows: ({ n }) => ({ n }),
  },
  {
    sql: "SELECT room, n FROM live.$ WHERE NOT (n >= 30)",
    keeps: ({ n }) => n !== null && n < 30,
    shows: ({ room, n }) => ({ room, n }),
  },
  {
    sql: "SELECT CASE WHEN n IS NULL THEN 'none' ELSE 'some' END AS kind FROM live.$ WHERE body LIKE '%7%'",
    keeps: ({ body }) => body?.includes("7") === true,
    shows: ({ n }) => ({ kind: n === null ? "none" : "some" }),
  },
  {
    sql: "SELECT body FROM live.$ WHERE room <> 'attic' AND n % 3 = 1",
    keeps: ({ room, n }) => room !== null && room !== "attic" && n !== null && n % 3 === 1,
    shows: ({ body }) => ({ body }),
  },
  {
    sql: "SELECT room FROM live.$ WHERE room IN ('lobby', 'cellar') OR n = $1",
    params: [42],
    keeps: ({ room, n }) => room === "lobby" || room === "cellar" || n === 42,
    shows: ({ room }) => ({ room }),
  },
];

function isIn(name: string): (row: Row) => boolean {
  return ({ room }) => room === name;
}

/** The tables, each with a user who follows it. */
const PLACES: readonly (readonly [Followed["table"], string])[] = [
  ["board", "alice"],
  ["items", "alice"],
  ["board", "bob"],
  ["items", "bob"],
];

const BEGINNINGS: readonly Followed["begins"][] = ["snapshot", "last_rows", "snapshot", "live"];

/**
 * Returns `count` subscriptions. No query is repeated until every query has been used on every
 * table, for every user and with every way to begin.
 */
export function followedBy(count: number): readonly Followed[] {
  return Array.from({ length: count }, (_, number) => {
    const place = PLACES[number % PLACES.length];
    const index = Math.floor(number / PLACES.length) % QUERIES.length;
    const query = QUERIES[index];
    const round = Math.floor(number / (PLACES.length * QUERIES.length));
    const begins = BEGINNINGS[(index + number + round) % BEGINNINGS.length];
    if (place === undefined || query === undefined || begins === undefined) {
      throw new Error(`there is no subscription ${number}`);
    }
    const [table, user] = place;
    return {
      name: `${number}: ${table} of ${user}, query ${index}`,
      table,
      user,
      query: { ...query, sql: query.sql.replace("live.$", `live.${table}`) },
      begins,
    };
  });
}
