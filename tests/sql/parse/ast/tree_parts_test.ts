/**
 * Verifies that code that walks or copies a syntax tree with a megabyte of literals visits only a
 * few parts of that list, but every part of any other list. The tests count the visited parts, and
 * check every position in a copy.
 */
import { describe, expect, test } from "bun:test";
import { directPartsOf, partsOf, relocated } from "../../../../src/sql/parse/ast/tree_parts.ts";
import { parseStatements } from "../../../../src/sql/parse/parser.ts";
import { statementToSql } from "../../../../src/sql/parse/print/print.ts";
import { listWithLiterals, literalsOf } from "../../../support/long_list.ts";

const ELSEWHERE = { start: 7, end: 9 };

function parsed(sql: string): object {
  const [statement] = parseStatements(sql);
  if (statement === undefined) throw new Error("the text must contain a statement");
  return statement;
}

/**
 * Returns every source position in a syntax tree, including the positions of the values in long
 * lists.
 */
function positionsOf(tree: object): unknown[] {
  const positions: unknown[] = [];
  for (const part of partsOf(tree, Object.values)) {
    if ("_location" in part) positions.push(part._location);
  }
  return positions;
}

/** Returns the source text of the long list in a syntax tree. */
function bytesIn(tree: object): unknown {
  for (const part of partsOf(tree)) if ("bytes" in part) return part.bytes;
  throw new Error("the tree has a long list");
}

describe("partsOf visits the parts of a syntax tree", () => {
  test.each([
    ["IN", "SELECT a FROM t WHERE a IN (", ", ", ")"],
    ["ARRAY", "SELECT a = ANY(ARRAY[", ", ", "]) FROM t"],
    ["VALUES", "SELECT a FROM (VALUES (", "),(", ")) t(a)"],
    ["INSERT", "INSERT INTO t VALUES (", "),(", ")"],
  ])("passes by a megabyte of literals behind %s", (_name, before, between, behind) => {
    const short = [...partsOf(parsed(`${before}1${between}2${behind}`))].length;
    const text = literalsOf(810_000).replaceAll(",", between);
    expect(text.length).toBeGreaterThan(900_000);
    const tree = parsed(before + text + behind);
    let count = 0;
    for (const part of partsOf(tree)) count += ArrayBuffer.isView(part) ? Infinity : 1;
    expect(count).toBeLessThan(short + 5);
  });

  test("partsOf visits every part, and its contents as the caller decides", () => {
    const tree = parsed("SELECT a + (SELECT b) FROM t");
    const namesIn = (isEntered: (part: object) => boolean): string[] => {
      const names: string[] = [];
      for (const part of partsOf(tree, (each) => (isEntered(each) ? directPartsOf(each) : []))) {
        if ("type" in part && part.type === "ref" && "name" in part) names.push(String(part.name));
      }
      return names;
    };
    expect(namesIn(() => true)).toEqual(["a", "b"]);
    expect(namesIn((part) => part === tree || !("type" in part && part.type === "select"))).toEqual(
      ["a"],
    );
  });
});

describe("relocated moves the positions in a syntax tree", () => {
  test("relocated sets every position, including those of the values of a long list", () => {
    for (const list of ["1, 'two', NULL", literalsOf(2000)]) {
      const tree = parsed(`SELECT a FROM t WHERE a IN (${list}) ORDER BY b LIMIT 1`);
      const copy = relocated(tree, ELSEWHERE);
      const positions = positionsOf(copy);
      expect(positions).toHaveLength(positionsOf(tree).length);
      expect(new Set(positions)).toEqual(new Set([ELSEWHERE]));
      expect(new Set(positionsOf(tree))).not.toEqual(new Set([ELSEWHERE]));
    }
  });

  test("relocated copies a long list without creating its nodes", () => {
    const sql = `SELECT a FROM t WHERE a IN (${literalsOf(2000)})`;
    const { asked, statement } = listWithLiterals(sql);
    const copy = relocated(statement, ELSEWHERE);
    expect(asked.count).toBe(0);
    expect(statementToSql(copy)).toBe(statementToSql(statement));
    expect(bytesIn(copy)).toBe(bytesIn(statement));
  });
});
