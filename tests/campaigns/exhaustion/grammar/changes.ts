/** Defines the constructs of INSERT, UPDATE and DELETE statements. */
import { type Construct, each, WALL } from "./construct.ts";

const insert = "INSERT INTO app.notes (id, body)";

export const CHANGES: readonly Construct[] = [
  {
    title: "columns of INSERT",
    sql: (count) => `INSERT INTO app.notes (${each(count, () => "id")}) VALUES (1)`,
  },
  {
    title: "rows of INSERT",
    sql: (count) =>
      `${insert} VALUES ${each(count, (i) => `(${-1 - i}, 'a')`)} ON CONFLICT (id) DO NOTHING`,
  },
  {
    title: "expressions of INSERT",
    sql: (count) =>
      `${insert} VALUES ${each(count, (i) => `(-abs(${i} + 1), 'a' || 'b')`)} ON CONFLICT (id) DO NOTHING`,
  },
  {
    title: "SET",
    sql: (count) => `UPDATE app.notes SET ${each(count, () => "body = 'a'")} WHERE id < 0`,
  },
  {
    title: "SET of a row",
    sql: (count) =>
      `UPDATE app.notes SET (${each(count, () => "body")}) = (${each(count, () => "'a'")}) WHERE id < 0`,
  },
  {
    title: "ON CONFLICT",
    sql: (count) =>
      `${insert} VALUES (-1, 'a') ON CONFLICT (id) DO UPDATE SET ${each(count, () => "body = 'b'")}`,
  },
  {
    title: "targets of ON CONFLICT",
    sql: (count) =>
      `${insert} VALUES (-1, 'a') ON CONFLICT (${each(count, () => "id")}) DO NOTHING`,
  },
  {
    title: "RETURNING",
    sql: (count) =>
      `DELETE FROM app.notes WHERE id = -1 RETURNING ${each(count, (i) => `id + ${i}`)}`,
  },
  {
    title: "FROM of UPDATE",
    sql: (count) =>
      `UPDATE app.notes SET body = 'a' FROM ${each(count, (i) => `${WALL} t${i}`)} WHERE notes.id < 0 AND t0.id < 0`,
  },
  {
    title: "USING of DELETE",
    sql: (count) =>
      `DELETE FROM app.notes USING ${each(count, (i) => `${WALL} t${i}`)} WHERE notes.id < 0 AND t0.id < 0`,
  },
  {
    title: "conditions of UPDATE",
    sql: (count) =>
      `UPDATE app.notes SET body = 'a' WHERE id < 0 AND (${each(count, (i) => `id = ${-i}`, " OR ")})`,
  },
  {
    title: "subqueries of UPDATE",
    sql: (count) =>
      `UPDATE app.notes SET body = CASE ${each(count, (i) => `WHEN id = (SELECT ${i}) THEN 'a'`, " ")} END WHERE id < 0`,
  },
];
