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
  definedNameOf,
  domainsIn,
  isRangeType,
  multirangeTypeOf,
  rangeTypeOf,
  TEXT,
} from "../../../types/mod.ts";
import { functionExists } from "../../functions/registry.ts";
import type {
  BasicDataTypeDef,
  CollationNode,
  DataTypeDef,
  Expr,
  ExprCall,
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
  const domains = columns.flatMap(({ domain, type }) => [
    ...(domain === undefined ? [] : [domain]),
    ...domainsIn(type),
  ]);
  const collations = columns.flatMap(({ type }) => definedCollationsIn(type));
  if (types.length + domains.length + collations.length === 0) return undefined;
  return ({ name, schema }) => {
    const isNamed = (each: { name: string; namespace: string }): boolean =>
      each.name === name && (schema === undefined || each.namespace === schema);
    const found = types.find((type) => {
      const defined = definedNameOf(type);
      return defined !== undefined && isNamed(defined);
    });
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

/**
 * Returns the defined types that are part of a type: the type itself, and those of its elements,
 * fields or bounds. A range type and its multirange type are part of each other.
 */
function namedTypesIn(type: DataType): DataType[] {
  const inner = innerTypesOf(type).flatMap(namedTypesIn);
  if (definedNameOf(type) === undefined) return inner;
  return isRangeType(type)
    ? [rangeTypeOf(type), multirangeTypeOf(type), ...inner]
    : [type, ...inner];
}

function innerTypesOf(type: DataType): readonly DataType[] {
  if (type.kind === "array") return [type.element];
  if (type.kind === "row") return type.fields.map((field) => field.type);
  return isRangeType(type) ? [type.bound] : [];
}

/** Returns the collations defined with CREATE COLLATION that are part of a type. */
function definedCollationsIn(type: DataType): DefinedCollation[] {
  const inner = innerTypesOf(type);
  if (inner.length > 0) return inner.flatMap(definedCollationsIn);
  const collation = collationOf(type);
  if (collation === undefined || collation.kind === "mixed") return [];
  const { typeId } = collation;
  return typeId === undefined ? [] : [{ ...collation, typeId }];
}

type DefinedCollation = Exclude<Collation, { kind: "mixed" }> & { readonly typeId: number };

/** Returns the ids of the defined types, collations and domains that are part of a type. */
export function typeIdsIn(type: DataType): number[] {
  const typeIds = namedTypesIn(type).flatMap((each) => definedNameOf(each)?.typeId ?? []);
  const others = [...definedCollationsIn(type), ...domainsIn(type)];
  return [...typeIds, ...others.map(({ typeId }) => typeId)];
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
  for (const node of constructorsIn(tree)) {
    const type = find(node.function)?.type;
    const isRange = type !== undefined && isRangeType(type);
    (node as Mutable<ExprCall>).rangeType = isRange ? type : undefined;
  }
  for (const node of collationsNamedIn(tree)) {
    (node as Mutable<CollationNode>).definedCollation = find(node)?.collation;
  }
  return tree;
}

/** Returns the type names in a tree that do not refer to built-in types. */
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

/** Returns the calls in a tree that may construct ranges of a type defined with CREATE TYPE. */
export function constructorsIn(tree: object): ExprCall[] {
  const found: ExprCall[] = [];
  for (const part of partsOf(tree)) {
    const { type }: TypeHolder = part;
    if (type !== "call") continue;
    const call = part as ExprCall;
    if (!functionExists(call.function.name)) found.push(call);
  }
  return found;
}

/** Returns the collation names in a tree that do not refer to built-in collations. */
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
