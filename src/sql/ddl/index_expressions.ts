/**
 * Checks the expressions and conditions of indexes. For a given row, each must yield the same
 * value at any time and for any caller, so that an index can be rebuilt from the rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { IndexCondition, IndexExpression, TableEntry } from "../../catalog/mod.ts";
import { type DataType, TEXT, type TermKind, typeName } from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { bindCondition, bindExpression } from "../bind/expression/expression_binder.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { readLiterals } from "../bind/expression/untyped_literals.ts";
import { childrenOf, columnIdsIn, holdsTimeWord } from "../bind/walk.ts";
import { checkScope } from "../execute/build/table_runtime.ts";
import type { IndexedExpression, Name } from "../parse/ast/ast.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { requireKeyType } from "./table_elements.ts";
import { unqualified } from "./unqualified.ts";

type Columns = Pick<TableEntry, "columns" | "name">;

/**
 * Checks an expression that is part of an index key.
 * @throws {DatabaseError}
 */
export function indexExpression(
  table: Columns,
  node: IndexedExpression,
): Omit<IndexExpression, "columnId"> {
  const bound = boundIn(table, node, bindExpression);
  const type: DataType = bound.type.kind === "unknown" ? TEXT : bound.type;
  const sql = unqualified(node.source);
  requireKeyType({ name: sql, type }, { position: node._location.start, what: "an index" });
  return { sql, reads: readBy(table, bound), type };
}

/**
 * Checks a part of an inverted index.
 * @throws {DatabaseError}
 */
export function invertedExpression(
  table: Columns,
  part: Name | IndexedExpression,
  operatorClass: Name | undefined,
): Omit<IndexExpression, "columnId"> {
  const { _location } = part;
  const node =
    "expr" in part
      ? part
      : { expr: parseStored(nameText(part.name), []), source: nameText(part.name), _location };
  const bound = boundIn(table, node, bindExpression);
  const sql = unqualified(node.source);
  const terms = termKindFor(bound.type, operatorClass, { name: sql, position: _location.start });
  return { sql, reads: readBy(table, bound), type: bound.type, terms };
}

/** The operator classes of inverted indexes, with the kind of terms that each class indexes. */
const CLASSES: ReadonlyMap<string, TermKind> = new Map([
  ["tsvector_ops", "words"],
  ["gin_trgm_ops", "trigrams"],
  ["jsonb_ops", "document"],
  ["jsonb_path_ops", "document"],
  ["array_ops", "elements"],
]);

/**
 * Returns the kind of terms that an operator class derives from values of a type.
 * @throws {DatabaseError}
 */
function termKindFor(
  type: DataType,
  operatorClass: Name | undefined,
  { name, position }: { readonly name: string; readonly position: number },
): TermKind {
  const possible = termKindOf(type);
  const kind = operatorClass === undefined ? possible : CLASSES.get(operatorClass.name);
  const isNamed = operatorClass !== undefined || possible !== "trigrams";
  if (kind !== undefined && kind === possible && isNamed) return kind;
  const by = operatorClass === undefined ? "" : ` by ${operatorClass.name}`;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create a gin index on "${name}"${by}: values of type ${typeName(type)} cannot be ` +
      "split into search terms",
    {
      position: operatorClass?._location.start ?? position,
      hint: "gin indexes support TSVECTOR, JSONB, arrays, and TEXT with gin_trgm_ops",
    },
  );
}

/**
 * Returns the kind of terms by which values of a type are indexed by default; undefined if there
 * is none.
 */
function termKindOf(type: DataType): TermKind | undefined {
  switch (type.kind) {
    case "tsvector":
      return "words";
    case "text":
      return "trigrams";
    case "json":
      return type.binary ? "document" : undefined;
    case "array":
      return "elements";
    default:
      return undefined;
  }
}

/**
 * Checks the condition of an index.
 * @throws {DatabaseError}
 */
export function indexCondition(table: Columns, node: IndexedExpression): IndexCondition {
  const bound = boundIn(table, node, bindCondition);
  return { sql: unqualified(node.source), reads: readBy(table, bound) };
}

function boundIn(
  table: Columns,
  { _location, expr }: IndexedExpression,
  bind: typeof bindExpression,
): BoundExpression {
  const { scope } = checkScope(table);
  const statement = new StatementBinding([]);
  const bound = bind(expr, { statement, scope, clause: "an index", sink: undefined });
  readLiterals(statement.literals);
  const fault = holdsTimeWord(bound) ? "the expression reads the current time" : mutableIn(bound);
  if (fault === undefined) return bound;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot define the index: ${fault}, so its value for an unchanged row could change over time`,
    {
      position: _location.start,
      hint: "use only functions whose result depends on nothing but their arguments",
    },
  );
}

/**
 * Describes the first part of an expression that depends on more than the row; undefined if there
 * is none.
 */
function mutableIn(bound: BoundExpression): string | undefined {
  if (bound.kind === "subquery" || bound.kind === "outer")
    return "the expression contains a subquery";
  if (bound.kind === "call" && bound.volatility !== "immutable") {
    return `the function ${bound.name} is not immutable`;
  }
  for (const child of childrenOf(bound)) {
    const fault = mutableIn(child);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Returns the ids of the columns that an expression reads. */
function readBy({ columns }: Columns, bound: BoundExpression): readonly number[] {
  const positions = columnIdsIn(bound);
  return columns.flatMap(({ columnId }, position) => (positions.has(position) ? [columnId] : []));
}
