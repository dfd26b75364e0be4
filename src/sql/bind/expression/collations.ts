/** Binds COLLATE, and derives the collation of an expression from its operands. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  bareTypeName,
  collationName,
  type DataType,
  derivedCollation,
  isCollatable,
  isLooselyEqual,
  mixedCollations,
  TEXT,
  withCollation,
  withDerivedCollation,
} from "../../../types/mod.ts";
import type { CollationNode } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo, relabelled } from "./casts.ts";
import { typeWithCollation } from "./collation_names.ts";

/**
 * Returns an expression with the collation of a COLLATE clause.
 * @throws {DatabaseError}
 */
export function collated(expression: BoundExpression, node: CollationNode): BoundExpression {
  const value =
    expression.type.kind === "unknown"
      ? castTo(expression, { to: TEXT, mode: "implicit", node })
      : expression;
  return relabelled(value, typeWithCollation(value.type, node, true));
}

/** Returns the result type of an operation, with the collation derived from its operands. */
export function typeWithDerived(type: DataType, operands: readonly BoundExpression[]): DataType {
  if (!isCollatable(type)) return type;
  return withDerivedCollation(
    type,
    operands.map((operand) => operand.type),
  );
}

/**
 * The operators and functions that search strings, character by character, for patterns or
 * substrings.
 */
const PATTERNS: ReadonlySet<string> = new Set([
  "~",
  "~*",
  "!~",
  "!~*",
  "^@",
  "starts_with",
  "position",
  "strpos",
  "replace",
  "split_part",
  "string_to_array",
  "string_to_table",
  "regexp_like",
  "regexp_count",
  "regexp_instr",
  "regexp_match",
  "regexp_matches",
  "regexp_replace",
  "regexp_split_to_array",
  "regexp_split_to_table",
  "regexp_substr",
]);

/**
 * Refuses pattern matching under a nondeterministic collation.
 * @throws {DatabaseError}
 */
export function checkPattern(
  name: string,
  operands: readonly BoundExpression[],
  position: number,
): void {
  if (PATTERNS.has(name)) patternType(name, operands, position);
}

/**
 * Returns the text type with the collation of the operands of a pattern operation; undefined if
 * the operands have none.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if the collation is nondeterministic; TYPE_MISMATCH
 *   if the operands have different collations.
 */
export function patternType(
  name: string,
  operands: readonly BoundExpression[],
  position: number,
): DataType | undefined {
  const { collation } = derivedCollation(operands.map((operand) => operand.type));
  if (collation === undefined) return undefined;
  if (collation.kind === "mixed") throw mixedCollations(collation);
  const type = withCollation(TEXT, collation);
  if (!isLooselyEqual(type)) return type;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use ${name} with the collation ${collationName(collation)}: ${name} compares ` +
      "individual characters, which a nondeterministic collation does not support",
    { position, hint: 'add COLLATE "C" or another deterministic collation' },
  );
}

/** Binds `COLLATION FOR (x)`: the name of the collation, or NULL for an untyped literal. */
export function collationFor(expression: BoundExpression, position: number): BoundExpression {
  const { type } = expression;
  if (type.kind === "unknown") return { kind: "constant", type: TEXT, value: null };
  if (!isCollatable(type)) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot determine the collation of a value of type ${bareTypeName(type)}: only text has ` +
        "a collation",
      { position, hint: "cast the value to TEXT" },
    );
  }
  const { collation } = derivedCollation([type]);
  if (collation?.kind === "mixed") throw mixedCollations(collation);
  const value = collation === undefined ? '"default"' : collationName(collation);
  return { kind: "constant", type: TEXT, value };
}
