/** Parses EXCLUDE, the constraint that prevents the ranges of different rows from overlapping. */
import type { ConstraintExclude, ExcludedPart, Name } from "./ast/ast.ts";
import { requireListed } from "./bounds.ts";
import type { Cursor } from "./cursor.ts";
import { parseIndexedExpression, parseIndexedPart } from "./indexed_parts.ts";
import { Token } from "./text/lexer.ts";

/** Parses `EXCLUDE USING gist (a WITH =, b WITH &&) [WHERE (…)]`. */
export function parseExclude(
  cursor: Cursor,
  start: number,
  constraintName: Name | undefined,
): ConstraintExclude {
  const at = cursor.start;
  cursor.expect("exclude");
  const method = cursor.accept("using") ? cursor.name("an index method").name : "btree";
  if (method !== "gist") {
    const hint = "write EXCLUDE USING gist (a WITH =, b WITH &&)";
    cursor.refuse(`EXCLUDE with the index method ${method}`, hint, at);
  }
  cursor.expect("(");
  const parts: ExcludedPart[] = [];
  do {
    parts.push(parsePart(cursor));
    requireListed(cursor, parts.length, "parts of a single EXCLUDE constraint");
  } while (cursor.accept(","));
  cursor.expect(")");
  let where: ConstraintExclude["where"];
  if (cursor.accept("where")) {
    cursor.expect("(");
    where = parseIndexedExpression(cursor);
    cursor.expect(")");
  }
  return { type: "exclude", parts, where, constraintName, _location: cursor.since(start) };
}

function parsePart(cursor: Cursor): ExcludedPart {
  const part = parseIndexedPart(cursor);
  // An operator class, such as range_ops, has no effect, because a type has only one order.
  if (cursor.kind === Token.word && cursor.nameText(cursor.token).endsWith("_ops")) {
    cursor.token += 1;
  }
  cursor.expect("with");
  const at = cursor.start;
  if (cursor.accept("=")) return { part, operator: "=" };
  if (cursor.kind === Token.symbol && cursor.word === "&&") {
    cursor.token += 1;
    return { part, operator: "&&" };
  }
  cursor.refuse(
    `EXCLUDE with the operator ${cursor.word}`,
    "compare values WITH = and a single range WITH &&",
    at,
  );
}
