/**
 * Resolves the names of types defined with CREATE TYPE, once per syntax tree. The nodes of the
 * tree keep the resolved types, so that a reader thread, which has no catalog, can use the tree.
 *
 * Type names in a statement refer to types in the catalog. SQL stored with a table or view, such
 * as a DEFAULT, can refer only to types of the columns, so resolving the names in it requires no
 * catalog.
 */
import type { Catalog, ColumnEntry, DefinedType } from "../../../catalog/mod.ts";
import {
  type Collation,
  collationOf,
  type DataType,
  type NamedRow,
  TEXT,
} from "../../../types/mod.ts";
import type {
  BasicDataTypeDef,
  CollationNode,
  DataTypeDef,
  Expr,
  QName,
} from "../../parse/ast/ast.ts";
import { partsOf } from "../../parse/ast/tree_parts.ts";
import type { Mutable } from "../../parse/cursor.ts";
import { parseExpression } from "../../parse/parser.ts";
import { builtInCollation } from "./collation_names.ts";
import { isBuiltInType } from "./types.ts";

export type TypeFinder = (name: Pick<QName, "name" | "schema">) => DefinedType | undefined;

/**
 * Returns a function that resolves the type names in a statement; undefined if the catalog
 * contains no types.
 *
 * @param namespace The namespace in which unqualified names are looked up.
 */
export function typesIn(
  catalog: Pick<Catalog, "definedType" | "types">,
  namespace: string,
): TypeFinder | undefined {
  if (catalog.types().length === 0) return undefined;
  return ({ name, schema = namespace }) => catalog.definedType(schema, name);
}

/**
 * Returns a function that resolves type names in SQL that is stored with columns; undefined if the
 * columns have no defined types.
 */
export function typesOf(columns: readonly TypedColumn[]): TypeFinder | undefined {
  const types = columns.flatMap(({ type }) => namedTypesIn(type));
  const domains = columns.flatMap(({ domain }) => domain ?? []);
  const collations = columns.flatMap(({ type }) => definedCollationsIn(type));
  if (types.length + domains.length + collations.length === 0) return undefined;
  return ({ name, schema }) => {
    const isNamed = (each: { name: string; namespace: string }): boolean =>
      each.name === name && (schema === undefined || each.namespace === schema);
    const found = types.find((type) => isNamed(type.kind === "enum" ? type.enumType : type.named));
    if (found !== undefined) return { type: found };
    const collation = collations.find(
      (each) => each.namespace !== undefined && isNamed({ ...each, namespace: each.namespace }),
    );
    if (collation !== undefined) return { type: TEXT, collation };
    const domain = domains.find(isNamed);
    return domain === undefined ? undefined : { type: domain.base, domain };
  };
}

/** The properties of a column that determine which types stored SQL can refer to. */
type TypedColumn = Pick<ColumnEntry, "domain" | "type">;

/** An enum type or row type defined with CREATE TYPE. */
type NamedType =
  | (DataType & { kind: "enum" })
  | (DataType & { kind: "row" } & { readonly named: NamedRow });

function isNamedType(type: DataType): type is NamedType {
  return type.kind === "enum" || (type.kind === "row" && type.named !== undefined);
}

/**
 * Returns the defined types that are part of a type: the type itself, its element types and its
 * field types.
 */
function namedTypesIn(type: DataType): NamedType[] {
  if (type.kind === "array") return namedTypesIn(type.element);
  const inner = type.kind === "row" ? type.fields.flatMap((field) => namedTypesIn(field.type)) : [];
  return isNamedType(type) ? [type, ...inner] : inner;
}

/** Returns the collations defined with CREATE COLLATION that are part of a type. */
function definedCollationsIn(type: DataType): DefinedCollation[] {
  if (type.kind === "array") return definedCollationsIn(type.element);
  if (type.kind === "row") return type.fields.flatMap((field) => definedCollationsIn(field.type));
  const collation = collationOf(type);
  if (collation === undefined || collation.kind === "mixed") return [];
  const { typeId } = collation;
  return typeId === undefined ? [] : [{ ...collation, typeId }];
}

type DefinedCollation = Exclude<Collation, { kind: "mixed" }> & { readonly typeId: number };

/** Returns the ids of the defined types and collations that are part of a type. */
export function typeIdsIn(type: DataType): number[] {
  const typeIds = namedTypesIn(type).map((each) =>
    each.kind === "enum" ? each.enumType.typeId : each.named.typeId,
  );
  return [...typeIds, ...definedCollationsIn(type).map(({ typeId }) => typeId)];
}

/** Parses SQL that is stored with a table's columns. */
export function parseStored(sql: string, columns: readonly TypedColumn[]): Expr {
  return withTypes(parseExpression(sql), typesOf(columns));
}

/**
 * Resolves the type names in a tree, in place. Names that are now unknown become unresolved, even
 * if they were resolved when the tree was bound earlier.
 */
export function withTypes<Tree extends object>(tree: Tree, find: TypeFinder | undefined): Tree {
  if (find === undefined) return tree;
  for (const node of typeNamesIn(tree)) {
    const found = find(node);
    const isType = found !== undefined && found.collation === undefined;
    const named = node as Mutable<BasicDataTypeDef>;
    named.definedType = isType ? found.type : undefined;
    named.domain = found?.domain;
  }
  for (const node of collationsNamedIn(tree)) {
    (node as Mutable<CollationNode>).definedCollation = find(node)?.collation;
  }
  return tree;
}

/** Returns the names in a tree that refer to types other than built-in ones. */
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

/** Returns the names in a tree that refer to collations other than built-in ones. */
export function collationsNamedIn(tree: object): CollationNode[] {
  const found: CollationNode[] = [];
  for (const part of partsOf(tree)) {
    const { arrayOf, collation, dataType, to, type }: CollationHolder = part;
    const nodes = [
      collation,
      arrayOf?.collation,
      dataType?.collation,
      type === "cast" ? to?.collation : undefined,
    ];
    for (const node of nodes) {
      if (node !== undefined && builtInCollation(node) === undefined) found.push(node);
    }
  }
  return Array.from(new Set(found));
}

interface CollationHolder extends TypeHolder {
  readonly collation?: CollationNode;
}

interface TypeHolder {
  readonly arrayOf?: DataTypeDef;
  readonly dataType?: DataTypeDef;
  readonly to?: DataTypeDef;
  readonly type?: unknown;
}
