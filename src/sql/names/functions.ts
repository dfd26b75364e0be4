/**
 * Finds the functions that statements name, and resolves the types in their signatures. `views.ts`
 * resolves the names in the text of a function.
 */
import { mayReadView, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type FunctionEntry,
  type PolymorphicType,
  type RoutineType,
  shownColumnsOf,
} from "../../catalog/mod.ts";
import { TEXT, typeName } from "../../types/mod.ts";
import { domainOf, isBuiltInType, resolveType } from "../bind/expression/types.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import type { RelationSource } from "../bind/query/select_deps.ts";
import type { DataTypeDef, FunctionName, FunctionParameterNode } from "../parse/ast/ast.ts";

/** Returns the functions that a caller may use; a service token may exclude their namespace. */
export function visibleFunctions(
  catalog: Pick<Catalog, "functions" | "namespace">,
  principal: Principal,
): readonly FunctionEntry[] {
  return catalog
    .functions()
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(entry.namespace)));
}

/**
 * Returns the function that a statement names.
 *
 * @param place.source Resolves tables whose row types the name mentions.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_OPERATION
 */
export function findFunction(
  node: FunctionName,
  { catalog, namespace, principal, source }: FunctionPlace,
): FunctionEntry {
  const found = functionsMeant(node, { catalog, namespace, principal, source });
  const [entry] = found;
  const shown = shownName(node, namespace);
  const position = node._location.start;
  if (entry === undefined) {
    throw new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find function ${shown}`, {
      position,
      hint: "SHOW FUNCTIONS lists the functions",
    });
  }
  if (found.length === 1) return entry;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot choose a function: ${found.length} functions have the name ${shown}`,
    { position, hint: `name its types: ${found.map((each) => each.name).join(" or ")}` },
  );
}

export interface FunctionPlace {
  readonly catalog: Pick<Catalog, "functionsNamed" | "namespace">;
  readonly principal: Principal;
  /** The namespace of unqualified names. */
  readonly namespace: string;
  readonly source: RelationSource;
}

/** Returns the functions to which a name may refer. */
export function functionsMeant(
  node: FunctionName,
  { catalog, namespace, principal, source }: FunctionPlace,
): readonly FunctionEntry[] {
  const { kind, name, parameters, schema = namespace } = node;
  const isOfKind = ({ routine }: FunctionEntry): boolean =>
    kind === undefined || (kind === "procedure") === (routine.isProcedure === true);
  const all = catalog
    .functionsNamed(schema, name)
    .filter(isOfKind)
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(schema)));
  if (parameters === undefined) return all;
  const wanted = functionKey(
    name,
    parameters.filter(isInput).map(({ dataType }) => routineTypeOf(dataType, source).shown),
  );
  return all.filter((entry) => entry.name === wanted);
}

/** Returns the name under which a function is stored. */
export function functionKey(name: string, types: readonly string[]): string {
  return `${name}(${types.join(", ")})`;
}

export function shownName({ name, schema }: FunctionName, namespace: string): string {
  return `${schema ?? namespace}.${name}`;
}

/** Names of types that the arguments of a call determine. */
const POLYMORPHIC: ReadonlyMap<string, PolymorphicType> = new Map([
  ["anyelement", "anyelement"],
  ["anynonarray", "anyelement"],
  ["anyenum", "anyelement"],
  ["anycompatible", "anyelement"],
  ["anycompatiblenonarray", "anyelement"],
  ["anyarray", "anyarray"],
  ["anycompatiblearray", "anyarray"],
  ["record", "record"],
  ["trigger", "trigger"],
  ["void", "void"],
]);

/** A type in a signature, with its name for messages and lists. */
export interface SignatureType {
  readonly type: RoutineType;
  readonly shown: string;
}

/**
 * Resolves a type in the signature of a function. The name of a table means the type of its rows.
 *
 * @throws {DatabaseError} UNSUPPORTED_TYPE, UNSUPPORTED_FEATURE
 */
export function routineTypeOf(
  node: FunctionParameterNode["dataType"],
  source: RelationSource,
): SignatureType {
  refuseDomain(node);
  // The value of a cursor is its name.
  if (node.kind !== "array" && node.name === "refcursor") return { type: TEXT, shown: "refcursor" };
  if (node.kind !== "array" && node.definedType === undefined && !isBuiltInType(node)) {
    const polymorphic = node.schema === undefined ? POLYMORPHIC.get(node.name) : undefined;
    if (polymorphic !== undefined) return { type: polymorphic, shown: node.name };
    const ofTable = rowTypeOf(node, source);
    if (ofTable !== undefined) return ofTable;
  }
  const type = resolveType(node);
  return { type, shown: typeName(type) };
}

function refuseDomain(node: DataTypeDef): void {
  const domain = domainOf(node);
  if (domain === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use domain ${domain.namespace}.${domain.name} in a function: its conditions would not be checked`,
    { position: node._location.start, hint: `use the type ${typeName(domain.base)}` },
  );
}

/** Returns the type of the rows of a table; undefined if there is no table of this name. */
function rowTypeOf(
  node: Exclude<DataTypeDef, { kind: "array" }>,
  source: RelationSource,
): SignatureType | undefined {
  try {
    const table = source.table(node, node);
    const fields = shownColumnsOf(table).map(({ name, type }) => ({ name, type }));
    return { type: { kind: "row", fields }, shown: `${table.namespace}.${table.name}` };
  } catch (error) {
    // Safe to ignore: the name may still be one of a type, which is resolved next.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}
