/** Defines the constructs of table and view definitions, and of queries that read views. */
import { type Construct, each, WALL } from "./construct.ts";

const made = "app.made";
const defining = {
  isDefining: true,
  isNotExplained: true,
  after: `DROP TABLE IF EXISTS ${made}`,
};
const altering = {
  ...defining,
  before: () => `CREATE TABLE IF NOT EXISTS ${made} (id BIGINT PRIMARY KEY)`,
};
const viewing = (views: number): string =>
  each(views, (i) => `DROP VIEW IF EXISTS app.v${views - 1 - i}`, ";");

export const DEFINITIONS: readonly Construct[] = [
  {
    ...defining,
    title: "columns of a table",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY, ${each(count, (i) => `c${i} INT`)})`,
  },
  {
    ...defining,
    title: "columns of a table with defaults",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY, ${each(count, (i) => `c${i} INT NOT NULL DEFAULT ${i}`)})`,
  },
  {
    ...defining,
    title: "CHECKs of a column",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY ${each(count, (i) => `CHECK (id <> ${i})`, " ")})`,
  },
  {
    ...defining,
    title: "CHECKs of a table",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY, ${each(count, (i) => `CHECK (id <> ${i})`)})`,
  },
  {
    ...defining,
    title: "conditions of a CHECK",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY, CHECK (${each(count, (i) => `id <> ${i}`, " AND ")}))`,
  },
  {
    ...defining,
    title: "columns of a key",
    sql: (count) => `CREATE TABLE ${made} (id BIGINT, PRIMARY KEY (${each(count, () => "id")}))`,
  },
  {
    ...defining,
    title: "options of a table",
    sql: (count) =>
      `CREATE TABLE ${made} (id BIGINT PRIMARY KEY) WITH (${each(count, () => "TYPE = 'SHARED'")})`,
  },
  {
    ...defining,
    title: "CREATE TABLE",
    sql: (count) =>
      each(count, () => `CREATE TABLE IF NOT EXISTS ${made} (id BIGINT PRIMARY KEY)`, ";"),
  },
  {
    ...altering,
    title: "columns added",
    sql: (count) => `ALTER TABLE ${made} ${each(count, (i) => `ADD COLUMN c${i} INT`)}`,
  },
  {
    ...altering,
    title: "columns added, one by one",
    sql: (count) => each(count, (i) => `ALTER TABLE ${made} ADD COLUMN c${i} INT`, ";"),
  },
  {
    ...altering,
    title: "columns dropped",
    sql: (count) => `ALTER TABLE ${made} ${each(count, (i) => `DROP COLUMN IF EXISTS c${i}`)}`,
  },
  {
    ...defining,
    title: "COMMENT of a view's query",
    sql: (count) =>
      `CREATE OR REPLACE VIEW app.v0 AS SELECT ${each(count, (i) => `${i} AS c${i}`)}`,
    after: viewing(1),
  },
  {
    ...defining,
    title: "FROM of a view",
    sql: (count) =>
      `CREATE OR REPLACE VIEW app.v0 AS SELECT 1 AS one FROM ${each(count, (i) => `${WALL} t${i}`)}`,
    after: viewing(1),
  },
  {
    title: "views of views",
    before: (count) =>
      `CREATE VIEW app.v0 AS SELECT id FROM ${WALL}${each(Math.min(count, 31), (i) => `; CREATE VIEW app.v${i + 1} AS SELECT * FROM app.v${i}`, "")}`,
    sql: (count) => `SELECT 1 FROM app.v${Math.min(count, 31)} WHERE id < 0`,
    after: viewing(32),
  },
  {
    title: "views, each twice of the one before",
    before: (count) =>
      `CREATE VIEW app.v0 AS SELECT id FROM ${WALL}${each(Math.min(count, 6), (i) => `; CREATE VIEW app.v${i + 1} AS SELECT x.id FROM app.v${i} x JOIN app.v${i} y USING (id)`, "")}`,
    sql: (count) => `SELECT 1 FROM app.v${Math.min(count, 6)} WHERE id < 0`,
    after: viewing(32),
  },
  {
    title: "a view, many times",
    before: () => `CREATE VIEW app.v0 AS SELECT id FROM ${WALL}`,
    sql: (count) => `SELECT 1 FROM ${each(count, (i) => `app.v0 t${i}`)} WHERE t0.id < 0`,
    after: viewing(1),
  },
];
