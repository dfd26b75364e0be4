/**
 * Defines the constructs of expressions: operators, calls, CASE, arrays, JSON, parameters, and SQL
 * that does not parse.
 */
import { type Construct, each, nested, WALL } from "./construct.ts";

export const EXPRESSIONS: readonly Construct[] = [
  { title: "sums", sql: (count) => `SELECT ${each(count, String, "+")}` },
  {
    title: "sums of columns",
    sql: (count) => `SELECT ${each(count, () => "id", "+")} FROM ${WALL} WHERE id < 0`,
  },
  { title: "products of decimals", sql: (count) => `SELECT ${each(count, () => "1.5", "*")}` },
  { title: "joined texts", sql: (count) => `SELECT ${each(count, (i) => `'a${i}'`, "||")}` },
  { title: "casts", sql: (count) => `SELECT 1${"::bigint::text".repeat(count)}` },
  {
    title: "casts side by side",
    sql: (count) => `SELECT ${each(count, (i) => `'${i}'::bigint`, "+")}`,
  },
  { title: "parentheses", sql: (count) => `SELECT ${nested(count, "(", "1", ")")}` },
  { title: "signs", sql: (count) => `SELECT ${"- ".repeat(count)}1` },
  { title: "calls in calls", sql: (count) => `SELECT ${nested(count, "abs(", "1", ")")}` },
  { title: "calls", sql: (count) => `SELECT ${each(count, (i) => `abs(${i})`, "+")}` },
  { title: "arguments of concat", sql: (count) => `SELECT concat(${each(count, String)})` },
  {
    title: "arguments of coalesce",
    sql: (count) => `SELECT coalesce(${each(count, () => "NULL")}, 1)`,
  },
  { title: "arguments of greatest", sql: (count) => `SELECT greatest(${each(count, String)})` },
  {
    title: "arguments of mixed types",
    sql: (count) => `SELECT greatest(${each(count, (i) => (i % 2 === 0 ? "1" : "1.5"))})`,
  },
  {
    title: "arguments of json_build_object",
    sql: (count) => `SELECT jsonb_build_object(${each(2 * count, (i) => `'k${i}'`)})`,
  },
  {
    title: "arguments of format",
    sql: (count) => `SELECT format('${"%s".repeat(count)}', ${each(count, String)})`,
  },
  { title: "arguments that none takes", sql: (count) => `SELECT abs(${each(count, String)})` },
  {
    title: "WHENs",
    sql: (count) =>
      `SELECT CASE ${each(count, (i) => `WHEN id = ${i} THEN ${i}`, " ")} END FROM ${WALL} WHERE id < 0`,
  },
  {
    title: "WHENs of a value",
    sql: (count) =>
      `SELECT CASE id ${each(count, (i) => `WHEN ${i} THEN ${i}`, " ")} END FROM ${WALL} WHERE id < 0`,
  },
  {
    title: "WHENs of texts",
    sql: (count) =>
      `SELECT CASE ${each(count, (i) => `WHEN body = 'a${i}' THEN 'b${i}'`, " ")} END FROM ${WALL} WHERE id < 0`,
  },
  {
    title: "CASE in CASE",
    sql: (count) => `SELECT ${nested(count, "CASE WHEN TRUE THEN ", "1", " END")}`,
  },
  {
    title: "CASE in ELSE",
    sql: (count) => `SELECT ${nested(count, "CASE WHEN 1 = 2 THEN 0 ELSE ", "1", " END")}`,
  },
  { title: "arrays", sql: (count) => `SELECT ARRAY[${each(count, (i) => `${i} + 1`)}]` },
  {
    title: "arrays of arrays",
    sql: (count) => `SELECT ARRAY[${each(count, (i) => `ARRAY[${i}]`)}]`,
  },
  { title: "arrays in arrays", sql: (count) => `SELECT ${nested(count, "ARRAY[", "1", "]")}` },
  { title: "JSON operators", sql: (count) => `SELECT '{}'::jsonb${" -> 'a'".repeat(count)}` },
  {
    title: "JSON operators side by side",
    sql: (count) => `SELECT ${each(count, (i) => `'{"a":1}'::jsonb ->> 'a${i}'`, ",")}`,
  },
  { title: "AT TIME ZONE", sql: (count) => `SELECT now()${" AT TIME ZONE 'UTC'".repeat(count)}` },
  {
    title: "intervals",
    sql: (count) => `SELECT now() + ${each(count, () => "INTERVAL '1 day'", "+")}`,
  },
  {
    title: "names of a table",
    sql: (count) => `SELECT ${each(count, () => `app.wall.id`, "+")} FROM ${WALL} WHERE id < 0`,
  },
  {
    title: "an unknown name",
    sql: (count) => `SELECT ${each(count, (i) => `id + x${i}`)} FROM ${WALL}`,
  },
  {
    title: "a syntax error at the end",
    sql: (count) => `SELECT ${each(count, String, "+")} FROM FROM`,
  },
  {
    title: "brackets that nothing closes",
    sql: (count) => `SELECT ${each(count, () => "(1", ",")}`,
  },
  {
    title: "parameters",
    sql: (count) => `SELECT ${each(count, (i) => `$${i + 1}`, "+")}`,
    params: (count) => Array.from({ length: count }, (_, i) => i),
  },
  {
    title: "parameters of IN",
    sql: (count) => `SELECT 1 FROM ${WALL} WHERE id IN (${each(count, (i) => `$${i + 1}`)})`,
    params: (count) => Array.from({ length: count }, (_, i) => -i),
  },
  {
    title: "one parameter",
    sql: (count) => `SELECT ${each(count, () => "$1", "+")}`,
    params: () => [1],
  },
];
