/**
 * Verifies that every search through a query being bound skips long lists of literals, so that a
 * megabyte of literals is never examined. The tests put such a list in every place that the binder
 * searches, and count the accesses to its nodes.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import type { ViewEntry } from "../../../../src/catalog/mod.ts";
import { StatementBinding } from "../../../../src/sql/bind/binding.ts";
import { bindInSteps, bindQuery } from "../../../../src/sql/bind/query/select_binder.ts";
import type { RelationSource } from "../../../../src/sql/bind/query/select_deps.ts";
import { everyRow } from "../../../../src/sql/bind/row_rights.ts";
import { listWithLiterals, literalsOf } from "../../../support/long_list.ts";
import { asQuery, queryIn, type SelectStatement } from "../../../support/parsed.ts";

const MEGABYTE = literalsOf(1_000_000);

const VIEW: ViewEntry = {
  viewId: 1,
  namespace: "default",
  name: "v",
  sql: "",
  searchNamespace: "default",
  columnNames: ["id"],
  tables: [],
  views: [],
  createdBy: "root",
  createdAtMs: 0,
  updatedAtMs: 0,
};

/** Returns a source of relations that has no tables and at most one view, named `v`. */
function sourceWith(view?: SelectStatement): RelationSource {
  return {
    namespace: "default",
    table: ({ name }, node) => {
      throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find table ${name}`, {
        position: node._location.start,
      });
    },
    partsOf: () => undefined,
    systemView: () => undefined,
    functions: () => [],
    view: ({ name }) =>
      name !== "v" || view === undefined
        ? undefined
        : {
            entry: VIEW,
            name,
            query: view,
            columnNames: ["id"],
            shown: undefined,
            source: sourceWith(),
            ownRights: undefined,
          },
  };
}

function failureOf(query: SelectStatement, source: RelationSource): string | undefined {
  const statement = new StatementBinding([]);
  try {
    const rights = everyRow(() => undefined);
    bindQuery(query, { statement, source, rights, bindInSteps, isOutermost: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    return `${error.code} at ${error.position}: ${error.hint ?? ""}`;
  }
}

test.each([
  ["calls over windows", `SELECT id IN (${MEGABYTE}) FROM (SELECT 1 AS id) t`],
  [
    "columns of an outer query in an aggregate",
    `SELECT (SELECT count(id IN (${MEGABYTE}))) FROM (SELECT 1 AS id) t`,
  ],
])("a search for %s skips a megabyte of literals", (_name, sql) => {
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toBeUndefined();
  expect(asked.count).toBe(0);
});

test("a search for the table to which a WITH entry refers skips a megabyte of literals", () => {
  const sql = `WITH r AS (SELECT id IN (${MEGABYTE}) FROM (SELECT 1 AS id) t, r) SELECT 1`;
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toBe(
    `TABLE_NOT_FOUND at ${sql.lastIndexOf("r)")}: WITH RECURSIVE lets "r" read itself`,
  );
  expect(asked.count).toBe(0);
});

test("a search for an ungrouped column skips a megabyte of literals", () => {
  const from = "FROM (SELECT 1 AS id, 2 AS x) t GROUP BY id";
  const sql = `SELECT id IN (${MEGABYTE}), x ${from}`;
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toStartWith(
    `INVALID_QUERY at ${sql.indexOf(`x ${from}`)}: `,
  );
  expect(asked.count).toBe(0);
});

test("a view is read without creating nodes for a megabyte of literals", () => {
  const { asked, statement } = listWithLiterals(
    `SELECT id FROM (SELECT 1 AS id) t WHERE id IN (${MEGABYTE})`,
  );
  const query = queryIn("SELECT id FROM v");
  if (query === undefined) throw new Error("the text must contain a statement");
  expect(failureOf(query, sourceWith(asQuery(statement)))).toBeUndefined();
  expect(asked.count).toBe(0);
});
