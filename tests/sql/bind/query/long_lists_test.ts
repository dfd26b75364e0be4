/**
 * Goal: whatever a query is searched for while it is bound, a long list of literals in it is passed
 * by: a megabyte of them is looked at by nobody.
 * Method: such a list stands where the binder searches, and counts who asks for its nodes.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { StatementBinding } from "../../../../src/sql/bind/binding.ts";
import { bindInSteps, bindQuery } from "../../../../src/sql/bind/query/select_binder.ts";
import type { RelationSource } from "../../../../src/sql/bind/query/select_world.ts";
import type { SelectStatement, Statement } from "../../../../src/sql/parse/ast/ast.ts";
import { isSelectNode } from "../../../../src/sql/parse/ast/query_nodes.ts";
import { parseStatements } from "../../../../src/sql/parse/parser.ts";
import { listWithLiterals, literalsOf } from "../../../support/long_list.ts";

const MEGABYTE = literalsOf(1_000_000);

function asQuery(statement: Statement): SelectStatement {
  if (!isSelectNode(statement)) throw new Error("the statement is a query");
  return statement;
}

/** Knows no table, and at most one view, `v`. */
function sourceWith(view?: SelectStatement): RelationSource {
  return {
    namespace: "default",
    table: ({ name }, node) => {
      throw new DatabaseError("TABLE_NOT_FOUND", `Cannot find table ${name}`, {
        position: node._location.start,
      });
    },
    systemView: () => undefined,
    view: ({ name }) =>
      name !== "v" || view === undefined
        ? undefined
        : { name, query: view, columnNames: ["id"], shown: undefined, source: sourceWith() },
  };
}

function failureOf(query: SelectStatement, source: RelationSource): string | undefined {
  const statement = new StatementBinding([]);
  try {
    bindQuery(query, { statement, source, bindInSteps, isOutermost: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    return `${error.condition} at ${error.position}: ${error.hint ?? ""}`;
  }
}

test.each([
  ["calls over windows", `SELECT id IN (${MEGABYTE}) FROM (SELECT 1 AS id) t`],
  [
    "columns of an outer query in an aggregate",
    `SELECT (SELECT count(id IN (${MEGABYTE}))) FROM (SELECT 1 AS id) t`,
  ],
])("a search for %s passes by a megabyte of literals", (_name, sql) => {
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toBeUndefined();
  expect(asked.count).toBe(0);
});

test("a search for the table that a WITH entry meant passes by a megabyte of literals", () => {
  const sql = `WITH r AS (SELECT id IN (${MEGABYTE}) FROM (SELECT 1 AS id) t, r) SELECT 1`;
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toBe(
    `TABLE_NOT_FOUND at ${sql.lastIndexOf("r)")}: WITH RECURSIVE lets "r" read itself`,
  );
  expect(asked.count).toBe(0);
});

test("a search for a column that is not grouped by passes by a megabyte of literals", () => {
  const from = "FROM (SELECT 1 AS id, 2 AS x) t GROUP BY id";
  const sql = `SELECT id IN (${MEGABYTE}), x ${from}`;
  const { asked, statement } = listWithLiterals(sql);
  expect(failureOf(asQuery(statement), sourceWith())).toStartWith(
    `INVALID_QUERY at ${sql.indexOf(`x ${from}`)}: `,
  );
  expect(asked.count).toBe(0);
});

test("a view is read without a node for a megabyte of literals in its query", () => {
  const { asked, statement } = listWithLiterals(
    `SELECT id FROM (SELECT 1 AS id) t WHERE id IN (${MEGABYTE})`,
  );
  const [query] = parseStatements("SELECT id FROM v");
  if (query === undefined) throw new Error("a text has a statement");
  expect(failureOf(asQuery(query), sourceWith(asQuery(statement)))).toBeUndefined();
  expect(asked.count).toBe(0);
});
