/**
 * Resolves the names of types that CREATE TYPE defined, once per syntax tree. The nodes of the tree
 * keep the resolved types, so that a reader thread, which has no catalog, can use the tree.
 *
 * The names in a statement refer to types of the catalog. SQL text that is stored with a table or a
 * view, such as a DEFAULT, can refer only to types that the columns have, so no catalog is needed
 * for it either.
 */
import type { Catalog, ColumnEntry, DefinedType } from "../../../catalog/mod.ts";
import type { DataType, EnumType } from "../../../types/mod.ts";
import type { BasicDataTypeDef, DataTypeDef, Expr, QName } from "../../parse/ast/ast.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import type { Mutable } from "../../parse/cursor.ts";
import { parseExpression } from "../../parse/parser.ts";
import { isBuiltInType } from "./types.ts";

export type TypeFinder = (name: Pick<QName, "name" | "schema">) => DefinedType | undefined;

/**
 * Returns a function that resolves type names in a statement; undefined if the catalog has no
 * types.
 *
 * @param namespace The namespace of unqualified names.
 */
export function typesIn(
  catalog: Pick<Catalog, "definedType" | "types">,
  namespace: string,
): TypeFinder | undefined {
  if (catalog.types().length === 0) return undefined;
  return ({ name, schema = namespace }) => catalog.definedType(schema, name);
}

/** Returns a function that resolves type names in SQL text that is stored with columns. */
export function typesOf(columns: readonly TypedColumn[]): TypeFinder | undefined {
  const types = columns.flatMap(({ type }) => enumTypeOf(type) ?? []);
  const domains = columns.flatMap(({ domain }) => domain ?? []);
  if (types.length === 0 && domains.length === 0) return undefined;
  return ({ name, schema }) => {
    const isNamed = (each: { name: string; namespace: string }): boolean =>
      each.name === name && (schema === undefined || each.namespace === schema);
    const enumType = types.find(isNamed);
    if (enumType !== undefined) return { type: { kind: "enum", enumType } };
    const domain = domains.find(isNamed);
    return domain === undefined ? undefined : { type: domain.base, domain };
  };
}

/** The parts of a column to which stored text can refer as types. */
type TypedColumn = Pick<ColumnEntry, "domain" | "type">;

/** Returns the enum type of a value type or, for an array, of its elements. */
export function enumTypeOf(type: DataType): EnumType | undefined {
  if (type.kind === "array") return enumTypeOf(type.element);
  return type.kind === "enum" ? type.enumType : undefined;
}

/** Parses SQL text that is stored with the columns of a table. */
export function parseStored(sql: string, columns: readonly TypedColumn[]): Expr {
  return withTypes(parseExpression(sql), typesOf(columns));
}

/** Resolves the type names in a tree, in place. Unknown names remain unresolved. */
export function withTypes<Tree extends object>(tree: Tree, find: TypeFinder | undefined): Tree {
  if (find === undefined) return tree;
  for (const node of typeNamesIn(tree)) {
    const found = find(node);
    if (found === undefined) continue;
    const named = node as Mutable<BasicDataTypeDef>;
    named.definedType = found.type;
    named.domain = found.domain;
  }
  return tree;
}

/** Returns the type names in a tree that are not built in. */
export function typeNamesIn(tree: object): BasicDataTypeDef[] {
  const found: BasicDataTypeDef[] = [];
  for (const part of partsOf(tree)) {
    const { arrayOf, dataType, to, type }: TypeHolder = part;
    for (const node of [arrayOf, dataType, type === "cast" ? to : undefined]) {
      if (node !== undefined && node.kind !== "array" && !isBuiltInType(node)) found.push(node);
    }
  }
  return found;
}

interface TypeHolder {
  readonly arrayOf?: DataTypeDef;
  readonly dataType?: DataTypeDef;
  readonly to?: DataTypeDef;
  readonly type?: unknown;
}
