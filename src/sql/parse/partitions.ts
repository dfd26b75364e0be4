/** Parses PARTITION BY and PARTITION OF for a table, and ATTACH and DETACH for a partition. */
import type { QNameAliased } from "./ast/ast.ts";
import type {
  PartitionBounds,
  PartitionBy,
  PartitionByKey,
  PartitionDefinition,
  RangeValue,
} from "./ast/ast_partitions.ts";
import { requireListed } from "./bounds.ts";
import { acceptCollation } from "./collations.ts";
import type { Cursor } from "./cursor.ts";
import { parseIndexedExpression, parseIndexedPart } from "./indexed_parts.ts";
import { acceptOperatorClass } from "./operator_classes.ts";

/** Parses `PARTITION BY strategy (key, …)`, if it comes next. */
export function acceptPartitionBy(cursor: Cursor): PartitionBy | undefined {
  const start = cursor.token;
  if (!cursor.acceptAll("partition", "by")) return undefined;
  const strategy = cursor.expectOneOf("range", "list", "hash");
  cursor.expect("(");
  const keys: PartitionByKey[] = [];
  do {
    const part = parseIndexedPart(cursor);
    const collation = acceptCollation(cursor);
    keys.push(collation === undefined ? { part } : { part, collation });
    acceptOperatorClass(cursor);
    requireListed(cursor, keys.length, "keys in a single PARTITION BY");
  } while (cursor.accept(","));
  cursor.expect(")");
  return { strategy, keys, _location: cursor.since(start) };
}

/** Parses the bounds of a partition: `DEFAULT` or `FOR VALUES …`. */
export function parseBounds(cursor: Cursor): PartitionBounds {
  const start = cursor.token;
  if (cursor.accept("default")) return { kind: "default", _location: cursor.since(start) };
  cursor.couldBe("default");
  cursor.expectAll("for", "values");
  switch (cursor.expectOneOf("in", "from", "with")) {
    case "in": {
      const values = parseList(cursor, parseIndexedExpression);
      return { kind: "list", values, _location: cursor.since(start) };
    }
    case "from": {
      const from = parseList(cursor, parseRangeValue);
      cursor.expect("to");
      const to = parseList(cursor, parseRangeValue);
      return { kind: "range", from, to, _location: cursor.since(start) };
    }
    case "with": {
      cursor.expect("(");
      const { modulus, remainder } = parseHashBounds(cursor);
      cursor.expect(")");
      return { kind: "hash", modulus, remainder, _location: cursor.since(start) };
    }
  }
}

function parseList<T>(cursor: Cursor, parse: (cursor: Cursor) => T): T[] {
  cursor.expect("(");
  const list: T[] = [];
  do {
    list.push(parse(cursor));
    requireListed(cursor, list.length, "values of a single partition");
  } while (cursor.accept(","));
  cursor.expect(")");
  return list;
}

function parseRangeValue(cursor: Cursor): RangeValue {
  return cursor.acceptOneOf("minvalue", "maxvalue") ?? parseIndexedExpression(cursor);
}

/** Parses the bounds of a hash partition: `MODULUS m, REMAINDER r`, in either order. */
function parseHashBounds(cursor: Cursor): { modulus: number; remainder: number } {
  const found = new Map<string, number>();
  do {
    const word: "modulus" | "remainder" = cursor.expectOneOf("modulus", "remainder");
    if (found.has(word)) cursor.unexpected(word === "modulus" ? "REMAINDER" : "MODULUS");
    found.set(word, cursor.integer(`the ${word}`));
  } while (cursor.accept(","));
  const modulus = found.get("modulus");
  const remainder = found.get("remainder");
  if (modulus === undefined || remainder === undefined) {
    return cursor.unexpected(modulus === undefined ? "MODULUS" : "REMAINDER");
  }
  return { modulus, remainder };
}

/**
 * Parses `ATTACH PARTITION …` and `DETACH PARTITION …` after `ALTER TABLE t`, if they come next.
 */
export function acceptPartitionChange(
  cursor: Cursor,
  start: number,
  { ifExists, table }: { readonly ifExists: true | undefined; readonly table: QNameAliased },
): PartitionDefinition | undefined {
  if (cursor.acceptAll("attach", "partition")) {
    const partition = cursor.qname("a table");
    const bounds = parseBounds(cursor);
    const _location = cursor.since(start);
    return { type: "attach partition", table, ifExists, partition, bounds, _location };
  }
  if (!cursor.acceptAll("detach", "partition")) return undefined;
  const partition = cursor.qname("a partition");
  // CONCURRENTLY and FINALIZE have no effect, because a detachment is never left half done.
  if (!cursor.accept("concurrently")) cursor.accept("finalize");
  return { type: "detach partition", table, ifExists, partition, _location: cursor.since(start) };
}
