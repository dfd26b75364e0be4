/**
 * Lists, by kind, statements that exceed every limit, each with its result if it has one. The
 * server may refuse any of them if it states the reason.
 */

export interface Attack {
  readonly title: string;
  readonly sql: string;
  /**
   * The only cell of the result; absent if the result is not a single cell, or if any value is
   * acceptable.
   */
  readonly answer?: number | boolean;
  /** True if the result is too long for any client, so that only part of it is read. */
  readonly isEndless?: boolean;
}

const LISTED = 100_000;
const DEEP = 10_000;
const LITERAL_CHARS = 1_000_000;

function listed(item: (index: number) => string): string {
  return Array.from({ length: LISTED }, (_, index) => item(index)).join(",");
}

function lists(): Attack[] {
  return [
    {
      title: "IN of 100,000",
      sql: `SELECT COUNT(*) FROM app.wall WHERE id IN (${listed(String)})`,
      answer: 20_000,
    },
    {
      title: "NOT IN of 100,000 texts",
      sql: `SELECT COUNT(*) FROM app.wall WHERE room NOT IN (${listed((i) => `'r${i}'`)})`,
      answer: 20_000,
    },
    {
      title: "IN of 100,000 expressions",
      sql: `SELECT COUNT(*) FROM app.wall WHERE id IN (${listed((i) => `${i}+id*0`)})`,
      answer: 20_000,
    },
    {
      title: "VALUES of 100,000, read",
      sql: `SELECT SUM(v) FROM (VALUES ${listed((i) => `(${i})`)}) AS t(v)`,
      answer: (LISTED * (LISTED - 1)) / 2,
    },
    {
      title: "VALUES of 100,000, inserted and refused",
      sql: `INSERT INTO app.wall VALUES ${listed((i) => `(${i + 19_999},'r','b')`)}`,
    },
    {
      title: "ARRAY of 100,000",
      sql: `SELECT CARDINALITY(ARRAY[${listed(String)}])`,
      answer: LISTED,
    },
    {
      title: "100,000 outputs",
      sql: `SELECT ${listed(String)}`,
    },
  ];
}

function nested(title: string, before: string, middle: string, after: string): Attack {
  const sql = `SELECT ${before.repeat(DEEP)}${middle}${after.repeat(DEEP)}`;
  return { title: `${title}, 10,000 deep`, sql };
}

function nesting(): Attack[] {
  return [
    nested("parentheses", "(", "1", ")"),
    nested("NOT", "NOT ", "TRUE", ""),
    nested("signs", "- ", "1", ""),
    nested("calls", "ABS(", "1", ")"),
    nested("CASE", "CASE WHEN TRUE THEN ", "1", " END"),
    nested("queries", "(SELECT ", "1", ")"),
    nested("tables", "* FROM (SELECT ", "1", ") AS q"),
    nested("arrays", "ARRAY[", "1", "]"),
    nested("sums", "1+", "1", ""),
    nested("conditions", "TRUE AND ", "TRUE", ""),
    nested("unions", "1 UNION ALL SELECT ", "1", ""),
    nested("casts", "", "1", "::INT"),
    {
      title: "joins of 10,000 tables",
      sql: `SELECT COUNT(*) FROM app.wall${" NATURAL JOIN app.wall".repeat(DEEP)}`,
    },
    {
      title: "queries of WITH, 10,000",
      sql: `WITH w0 AS (SELECT 1 AS a)${Array.from({ length: DEEP }, (_, i) => `, w${i + 1} AS (SELECT a FROM w${i})`).join("")} SELECT a FROM w${DEEP}`,
    },
    {
      title: "JSON 10,000 deep",
      sql: `SELECT LENGTH(('${"[".repeat(DEEP)}${"]".repeat(DEEP)}'::JSONB)::TEXT)`,
      answer: 2 * DEEP,
    },
  ];
}

function literals(): Attack[] {
  const long = "x".repeat(LITERAL_CHARS);
  return [
    { title: "a text", sql: `SELECT LENGTH('${long}')`, answer: LITERAL_CHARS },
    {
      title: "a text of quotes",
      sql: `SELECT LENGTH('${"''".repeat(LITERAL_CHARS / 2)}')`,
      answer: LITERAL_CHARS / 2,
    },
    { title: "a number", sql: `SELECT ${"9".repeat(LITERAL_CHARS)} + 1` },
    { title: "a fraction", sql: `SELECT 0.${"9".repeat(LITERAL_CHARS)} + 1` },
    { title: "a name", sql: `SELECT 1 AS "${long}"` },
    { title: "a text as JSON", sql: `SELECT '${"[".repeat(LITERAL_CHARS)}'::JSON` },
    { title: "a text as a time", sql: `SELECT '${long}'::TIMESTAMP` },
    {
      title: "a text as an interval",
      sql: `SELECT '${"1 day ".repeat(LITERAL_CHARS / 6)}'::INTERVAL`,
    },
    {
      title: "bytes",
      sql: `SELECT LENGTH(X'${"ff".repeat(LITERAL_CHARS / 2)}')`,
      answer: LITERAL_CHARS / 2,
    },
    {
      title: "a comment",
      sql: `SELECT 1 /* ${"/*".repeat(LITERAL_CHARS / 4)}${"*/".repeat(LITERAL_CHARS / 4)} */`,
      answer: 1,
    },
    {
      title: "a text beside each row",
      sql: `SELECT COUNT(*) FROM app.wall WHERE body || '${long}' = body`,
      answer: 0,
    },
  ];
}

function patterns(): Attack[] {
  const rows = "FROM app.wall";
  return [
    {
      title: "LIKE of many %",
      sql: `SELECT COUNT(*) ${rows} WHERE body LIKE '${"%x".repeat(90)}%y'`,
      answer: 0,
    },
    {
      title: "ILIKE of many %",
      sql: `SELECT COUNT(*) ${rows} WHERE body ILIKE '${"%X".repeat(90)}%Y'`,
      answer: 0,
    },
    {
      title: "LIKE over a megabyte",
      sql: `SELECT REPEAT('a', 1000000) LIKE '${"%a".repeat(50)}%b'`,
      answer: false,
    },
    {
      title: "LIKE of a megabyte",
      sql: `SELECT REPEAT('a', 100) LIKE '${"%a".repeat(400_000)}'`,
      answer: false,
    },
    { title: "(a+)+$", sql: "SELECT REPEAT('a', 100000) || 'b' ~ '^(a+)+$'", answer: false },
    {
      title: "(x*)*y in each row",
      sql: `SELECT COUNT(*) ${rows} WHERE body ~ '^(x*)*y$'`,
      answer: 0,
    },
    { title: "(a|aa)+$", sql: "SELECT REPEAT('a', 100000) || 'b' ~ '^(a|aa)+$'", answer: false },
    {
      title: "(.*)(.*)(.*)…",
      sql: `SELECT REPEAT('a', 10000) || 'b' ~ '^${"(.*)".repeat(20)}c$'`,
      answer: false,
    },
    {
      title: "a? and a, 100 times",
      sql: `SELECT REPEAT('a', 100) ~ '^${"a?".repeat(100)}${"a".repeat(100)}$'`,
      answer: true,
    },
    {
      title: "{1,1000} thrice",
      sql: "SELECT REPEAT('a', 5000) ~ '((a{1,1000}){1,1000}){1,1000}b'",
    },
    {
      title: "SIMILAR TO",
      sql: "SELECT REPEAT('a', 100000) || 'b' SIMILAR TO '(a|aa)*'",
      answer: false,
    },
    {
      title: "REGEXP_REPLACE of all",
      sql: "SELECT LENGTH(REGEXP_REPLACE(REPEAT('ab', 500000), '(a|b)*?b', 'c', 'g'))",
    },
  ];
}

function products(): Attack[] {
  const three =
    "generate_series(1,1000) AS a(x), generate_series(1,1000) AS b(y), generate_series(1,1000) AS c(z)";
  return [
    { title: "count of 10^9 pairs", sql: `SELECT COUNT(*) FROM ${three}`, answer: 1_000_000_000 },
    { title: "sum over 10^9 pairs", sql: `SELECT SUM(x * y % (z + 1)) FROM ${three}` },
    {
      title: "a filter that none of 10^9 passes",
      sql: `SELECT x FROM ${three} WHERE x + y + z < 0`,
    },
    { title: "10^9 pairs sorted", sql: `SELECT x FROM ${three} ORDER BY x * y * z DESC LIMIT 1` },
    {
      title: "10^9 groups",
      sql: `SELECT COUNT(*) FROM (SELECT DISTINCT x, y, z FROM ${three}) AS q`,
    },
    { title: "an array of 10^9", sql: `SELECT ARRAY_AGG(x) FROM ${three}` },
    {
      title: "a table by itself, thrice",
      sql: "SELECT COUNT(*) FROM app.wall AS a, app.wall AS b, app.wall AS c WHERE a.body <> b.body || c.body",
    },
    { title: "10^9 rows, all of them", sql: `SELECT * FROM ${three}`, isEndless: true },
    {
      title: "10^9 rows changed into",
      sql: `INSERT INTO app.wall SELECT x * 1000000 + y * 1000 + z, 'r', 'b' FROM ${three}`,
    },
    {
      title: "a recursion without an end",
      sql: "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
    },
  ];
}

function sorts(rowCount: number): Attack[] {
  const rows = `generate_series(1, ${rowCount}) AS g(s)`;
  const last = rowCount - 1;
  return [
    {
      title: "numbers",
      sql: `SELECT s FROM ${rows} ORDER BY s::BIGINT * 7919 % ${rowCount} OFFSET ${last}`,
    },
    {
      title: "numbers and texts",
      sql: `SELECT LENGTH(t) FROM (SELECT s, 'row ' || s AS t FROM ${rows}) AS q ORDER BY t DESC OFFSET ${last}`,
      answer: 5,
    },
    {
      title: "groups",
      sql: `SELECT COUNT(*) FROM (SELECT s % ${rowCount - 7} AS k, COUNT(*) FROM ${rows} GROUP BY 1) AS q`,
      answer: rowCount - 7,
    },
    {
      title: "numbers by a window",
      sql: `SELECT MAX(r) FROM (SELECT ROW_NUMBER() OVER (ORDER BY -s) AS r FROM ${rows}) AS q`,
      answer: rowCount,
    },
  ];
}

function makers(): Attack[] {
  const rows = "generate_series(1, 300000) AS g(s)";
  const long = "REPEAT('ab', 1500000 + s)";
  return [
    {
      title: "megabytes in a filter",
      sql: `SELECT COUNT(*) FROM ${rows} WHERE LENGTH(${long}) = 1`,
    },
    {
      title: "megabytes, late",
      sql: `SELECT COUNT(*) FROM ${rows} WHERE LENGTH(REPEAT('ab', CASE WHEN s > 200000 THEN 1500000 ELSE 1 END)) = 1`,
    },
    { title: "megabytes aggregated", sql: `SELECT LENGTH(MAX(${long})) FROM ${rows}` },
    { title: "megabytes grouped", sql: `SELECT COUNT(*) FROM ${rows} GROUP BY ${long}` },
    { title: "megabytes sorted", sql: `SELECT s FROM ${rows} ORDER BY ${long} LIMIT 1` },
    {
      title: "megabytes inserted",
      sql: `INSERT INTO app.wall SELECT s + 1000000, 'r', REPEAT('ab', 900000) FROM ${rows}`,
    },
    { title: "megabytes changed into", sql: "UPDATE app.wall SET body = REPEAT('ab', 900000)" },
    {
      title: "megabytes in 200 columns",
      sql: `SELECT ${Array.from({ length: 200 }, () => "REPEAT('ab', 2000000)").join(",")}`,
    },
    {
      title: "a search in each row",
      sql: `SELECT COUNT(*) FROM ${rows} WHERE REPEAT(s::TEXT, 100) ~ '((1{1,30}){1,30}|[0-9]*)*z'`,
      answer: 0,
    },
    {
      title: "4,000 outputs of each row",
      sql: `SELECT ${Array.from({ length: 4000 }, (_, i) => `s + ${i}`).join(",")} FROM ${rows}`,
      isEndless: true,
    },
    {
      title: "10,000 conditions",
      sql: `SELECT COUNT(*) FROM ${rows} WHERE ${Array.from({ length: 10_000 }, (_, i) => `s = ${i}`).join(" OR ")}`,
    },
    {
      title: "CUBE of 8",
      sql: `SELECT COUNT(*) FROM (SELECT COUNT(*) FROM (SELECT ${Array.from({ length: 8 }, (_, i) => `s + ${i} AS c${i}`).join(",")} FROM ${rows}) AS q GROUP BY CUBE (c0, c1, c2, c3, c4, c5, c6, c7)) AS p`,
    },
    {
      title: "20,000 statements",
      sql: Array.from({ length: 20_000 }, (_, i) => `SELECT ${i}`).join(";"),
    },
    {
      title: "a pattern of megabytes",
      sql: "SELECT LENGTH(TO_CHAR(NOW(), REPEAT('YYYY', 1000000)))",
    },
  ];
}

export type AttackName =
  | "lists"
  | "nesting"
  | "literals"
  | "patterns"
  | "products"
  | "sorts"
  | "makers";

const ATTACKS: Readonly<Record<AttackName, (rowCount: number) => Attack[]>> = {
  lists,
  nesting,
  literals,
  patterns,
  products,
  sorts,
  makers,
};

export const ATTACK_NAMES: readonly AttackName[] = Object.keys(ATTACKS).filter(isAttack);

function isAttack(name: string): name is AttackName {
  return Object.hasOwn(ATTACKS, name);
}

/**
 * Returns the statements of a kind of attack.
 * @param rowCount The number of rows to sort.
 */
export function attacksOf(name: AttackName, rowCount: number): readonly Attack[] {
  return ATTACKS[name](rowCount);
}
