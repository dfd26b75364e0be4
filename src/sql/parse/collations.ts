/** Parses the COLLATE clauses of columns, types and index parts. */
import type { CollationNode, DataTypeDef } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";

/** Parses the COLLATE clause of a column or index part, if there is one. */
export function acceptCollation(cursor: Cursor): CollationNode | undefined {
  return cursor.accept("collate") ? parseCollationName(cursor) : undefined;
}

export function parseCollationName(cursor: Cursor): CollationNode {
  return cursor.qname("a collation");
}

/** Parses a type with an optional collation: `type [COLLATE collation]`. */
export function parseCollatedType(cursor: Cursor): DataTypeDef {
  return withAcceptedCollation(cursor, cursor.grammar.dataType(cursor));
}

/** Adds the collation to a type, if a COLLATE clause follows it. */
export function withAcceptedCollation(cursor: Cursor, dataType: DataTypeDef): DataTypeDef {
  const { kind } = dataType;
  if (cursor.is("collate") && kind !== "array" && dataType.collation !== undefined) {
    cursor.unexpected("only one COLLATE");
  }
  const collation = acceptCollation(cursor);
  return collation === undefined ? dataType : { ...dataType, collation };
}
