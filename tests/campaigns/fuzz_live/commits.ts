/**
 * Generates random commits to the tables of a round. They change join keys, set keys to NULL,
 * insert rows that may already exist, delete all rows of a table, delete and re-insert a key in
 * the same transaction, and change several tables at once.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { changeOf } from "../fuzz_sql/changes.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import { type ColumnType, cellOf } from "../fuzz_sql/values.ts";
import type { FollowedTable } from "./tables.ts";

/** The number of keys from which a change to a single row chooses. */
const KEYS = 30;

/** Returns the SQL of a random commit: a statement or a transaction. */
export function commitOf(tables: readonly FollowedTable[], chance: Chance): string {
  const count = [1, 1, 1, 2, 3][chance.below(5)] ?? 1;
  const changes = Array.from({ length: count }, () => changesOf(tables, chance)).flat();
  if (changes.length === 1) return changes.join();
  const end = chance.below(12) === 0 ? "ROLLBACK" : "COMMIT";
  return `BEGIN; ${changes.join("; ")}; ${end}`;
}

function changesOf(tables: readonly FollowedTable[], chance: Chance): string[] {
  const table = chance.pick(tables);
  const { name } = table;
  const id = chance.below(KEYS);
  const key = chance.pick(["i", "j"]);
  switch (chance.below(27)) {
    case 0:
    case 1:
    case 2:
      return [upsertOf(table, chance)];
    case 3:
    case 4:
      return [
        `UPDATE ${name} SET ${key} = ${chance.pick(["NULL", "0", "1", "2", "3", "id"])} WHERE id % 5 = ${id % 5}`,
      ];
    case 5:
      return [`UPDATE ${name} SET i = j, j = i WHERE id % 3 = ${id % 3}`];
    case 6:
      return [
        `UPDATE ${name} SET ${key} = coalesce(${key}, 0) + 1 WHERE ${key} < 100 OR ${key} IS NULL`,
      ];
    case 7:
      return [
        `UPDATE ${name} SET t = ${chance.pick(["'a'", "'b'", "NULL", "u"])}, b = NOT b WHERE id = ${id}`,
      ];
    case 8:
    case 9:
      return [`DELETE FROM ${name} WHERE id IN (${id}, ${(id * 7) % KEYS}, ${(id * 11) % KEYS})`];
    case 10:
      return [`DELETE FROM ${name} WHERE i = (SELECT max(i) FROM ${name})`];
    case 11:
      return chance.below(3) === 0
        ? [`DELETE FROM ${name}`]
        : [`DELETE FROM ${name} WHERE i = ${chance.below(4)}`];
    case 12: {
      // Joins of two large tables have thousands of rows but rarely reveal more, so most tables
      // stay small.
      const last = 100 + (chance.below(8) === 0 ? 5 : 1) * id;
      return [
        `INSERT INTO ${name} (id, i, j, t) SELECT n, n % 7, n % 5, CASE n % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'b' END ` +
          `FROM generate_series(100, ${last}) AS g(n) ON CONFLICT DO NOTHING`,
      ];
    }
    case 13:
      return [`DELETE FROM ${name} WHERE id >= ${chance.pick([id, 100 + id, 100 + 4 * id])}`];
    case 14:
      return [`DELETE FROM ${name} WHERE id = ${id}`, insertOf(table, id, chance)];
    case 15:
      return [
        `DELETE FROM ${name} WHERE id = ${id}`,
        insertOf(table, id, chance),
        `UPDATE ${name} SET j = 1 WHERE id = ${id}`,
      ];
    case 16:
      return tables.map(
        (each) => `UPDATE ${each.name} SET i = ${chance.below(4)} WHERE id % 4 = ${id % 4}`,
      );
    case 17:
      return tables.map((each) => `DELETE FROM ${each.name} WHERE id = ${id}`);
    case 18:
      return tables.map((each) => upsertOf(each, chance));
    case 19:
      return [`UPDATE ${name} SET ts = ${momentOf(chance)} WHERE id % 4 = ${id % 4}`];
    case 20:
      return [guestChangeOf(tables, chance)];
    default:
      return [textOf(changeOf(tables, chance))];
  }
}

/**
 * Returns a time around the present. It is a whole second, so that the results of queries that
 * compare it with the current time change only at whole seconds.
 */
function momentOf(chance: Chance): string {
  return `date_trunc('second', LOCALTIMESTAMP) + (id % ${1 + chance.below(7)} - 2) * INTERVAL '1 second'`;
}

/**
 * Returns a change to the table that determines the rows that policies show or, if no table has
 * policies, a change to a row.
 */
function guestChangeOf(tables: readonly FollowedTable[], chance: Chance): string {
  const room = chance.below(5);
  if (!tables.some(({ kind }) => kind === "ruled")) return upsertOf(chance.pick(tables), chance);
  return chance.pick([
    `INSERT INTO guests VALUES (${room}, 'bob'), (${room}, 'ada') ON CONFLICT DO NOTHING`,
    `DELETE FROM guests WHERE room = ${room}`,
    `UPDATE guests SET room = room + 1 WHERE room = ${room} AND NOT EXISTS (SELECT 1 FROM guests AS g WHERE g.room = ${room + 1})`,
  ]);
}

function upsertOf(table: FollowedTable, chance: Chance): string {
  const start = chance.below(KEYS);
  const rows = Array.from({ length: 1 + chance.below(5) }, (_, index) =>
    rowOf(table, (start + 7 * index) % KEYS, chance),
  );
  const sets = ["i", "j", "t", "m"].filter(() => chance.below(2) === 0);
  const names = sets.length === 0 ? ["u"] : sets;
  const conflict = names.map((name) => `${name} = excluded.${name}`).join(", ");
  return `INSERT INTO ${table.name} VALUES ${rows.join(", ")} ON CONFLICT (id) DO UPDATE SET ${conflict}`;
}

function insertOf(table: FollowedTable, id: number, chance: Chance): string {
  return `INSERT INTO ${table.name} VALUES ${rowOf(table, id, chance)}`;
}

function rowOf({ columns }: FollowedTable, id: number, chance: Chance): string {
  return `(${[String(id), ...columns.map((column) => cell(column, chance))].join(", ")})`;
}

/** Join keys are small numbers, so that rows have join partners. */
function cell(column: ColumnType, chance: Chance): string {
  const isKey = column.name === "i" || column.name === "j";
  return isKey && chance.below(6) > 0 ? String(chance.below(5)) : cellOf(column, chance);
}
