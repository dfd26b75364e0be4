/** Verifies that statements are printed with the ONLY before the names of their tables. */
import { expect, test } from "bun:test";
import { parseStatements } from "../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../src/sql/parse/print/print.ts";

test.each([
  "SELECT a FROM ONLY t AS x",
  "UPDATE ONLY t SET a = 1",
  "DELETE FROM ONLY t",
  "TRUNCATE TABLE ONLY t, u",
])("%s is printed with ONLY", (sql) => {
  expect(parseStatements(sql).map(statementToSql)).toEqual([sql]);
});
