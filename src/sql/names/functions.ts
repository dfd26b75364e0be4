/**
 * Finds the functions named in statements, and resolves the types in their signatures. `views.ts`
 * resolves the names in the text of a function.
 */
import { mayReadView, type Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type FunctionEntry,
  type PolymorphicType,
  type RoutineType,
  rowTypeOfTable,
} from "../../catalog/mod.ts";
import { TEXT, typeName } from "../../types/mod.ts";
import { domainOf, isBuiltInType, resolveType } from "../bind/expression/types.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import { type RelationSource, tableNamed } from "../bind/query/select_deps.ts";
import type { DataTypeDef, FunctionName, FunctionParameterNode } from "../parse/ast/ast.ts";

/**
 * Returns the functions that a caller may use. The scope of a service token may exclude other
 * namespaces.
 */
export function visibleFunctions(
  catalog: Pick<Catalog, "functions" | "namespace">,
  principal: Principal,
): readonly FunctionEntry[] {
  return catalog
    .functions()
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(entry.namespace)));
}

/**
 * Returns the function that a statement refers to.
 *
 * @param place.source Resolves the tables whose row types occur in the signature.
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
    const kind = node.kind ?? "function";
    throw new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find ${kind} ${shown}`, {
      position,
      hint: "to list the functions, run SHOW FUNCTIONS",
    });
  }
  if (found.length === 1) return entry;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot choose between functions: ${found.length} functions have the name ${shown}`,
    { position, hint: `add the parameter types: ${found.map((each) => each.name).join(" or ")}` },
  );
}

export interface FunctionPlace {
  readonly catalog: Pick<Catalog, "functionsNamed" | "namespace">;
  readonly principal: Principal;
  /** The namespace in which unqualified names are looked up. */
  readonly namespace: string;
  readonly source: RelationSource;
}

/** Returns all functions to which a function name may refer. */
export function functionsMeant(
  node: FunctionName,
  { catalog, namespace, principal, source }: FunctionPlace,
): readonly FunctionEntry[] {
  const { kind, name, parameters, schema = namespace } = node;
  const isOfKind = ({ routine }: FunctionEntry): boolean => {
    if (kind === "aggregate") return routine.aggregate !== undefined;
    return kind === undefined || (kind === "procedure") === (routine.isProcedure === true);
  };
  const all = catalog
    .functionsNamed(schema, name)
    .filter(isOfKind)
    .filter((entry) => mayReadView(principal, entry, catalog.namespace(schema)));
  if (parameters === undefined) return all;
  const shownTypes = (nodes: readonly FunctionParameterNode[]): readonly string[] =>
    nodes.map(({ dataType }) => routineTypeOf(dataType, source).shown);
  const wanted = functionKey(name, shownTypes(parameters.filter(isInput)));
  // Without modes, the types of a procedure may also include those of its output parameters.
  const isOpen =
    kind !== "function" && kind !== "aggregate" && !parameters.some(({ hasMode }) => hasMode);
  const everyType = isOpen ? shownTypes(parameters).join(", ") : undefined;
  return all.filter(
    ({ name: key, routine }) =>
      key === wanted ||
      (routine.isProcedure === true &&
        routine.parameters.map(({ typeName: shown }) => shown).join(", ") === everyType),
  );
}

/** Returns the catalog key of a function, such as `f(integer)`. */
export function functionKey(name: string, types: readonly string[]): string {
  return `${name}(${types.join(", ")})`;
}

export function shownName({ name, schema }: FunctionName, namespace: string): string {
  return `${schema ?? namespace}.${name}`;
}

/** Names of polymorphic types, which the arguments of each call determine. */
const POLYMORPHIC: ReadonlyMap<string, PolymorphicType> = new Map([
  ["any", "any"],
  ["anyelement", "anyelement"],
  ["anynonarray", "anyelement"],
  ["anyenum", "anyelement"],
  ["anyarray", "anyarray"],
  ["anyrange", "anyrange"],
  ["anymultirange", "anymultirange"],
  ["anycompatible", "anycompatible"],
  ["anycompatiblenonarray", "anycompatible"],
  ["anycompatiblearray", "anycompatiblearray"],
  ["anycompatiblerange", "anycompatiblerange"],
  ["anycompatiblemultirange", "anycompatiblemultirange"],
  ["record", "record"],
  ["trigger", "trigger"],
  ["void", "void"],
]);

/** A type in a function signature, with the name shown in messages and lists. */
export interface SignatureType {
  readonly type: RoutineType;
  readonly shown: string;
}

/**
 * Resolves a type in the signature of a function. A table name denotes the table's row type.
 *
 * @throws {DatabaseError} UNSUPPORTED_TYPE, UNSUPPORTED_FEATURE
 */
export function routineTypeOf(
  node: FunctionParameterNode["dataType"],
  source: RelationSource,
): SignatureType {
  refuseDomain(node);
  // A cursor is passed by its name.
  if (node.kind !== "array" && node.name === "refcursor") return { type: TEXT, shown: "refcursor" };
  if (node.kind !== "array" && node.definedType === undefined && !isBuiltInType(node)) {
    const polymorphic = node.schema === undefined ? POLYMORPHIC.get(node.name) : undefined;
    if (polymorphic !== undefined) return { type: polymorphic, shown: node.name };
    const ofTable = rowTypeOf(node, source);
    if (ofTable !== undefined) return ofTable;
  }
  const type = resolveType(node, (name) => {
    const table = tableNamed(name, source);
    return table && rowTypeOfTable(table);
  });
  return { type, shown: typeName(type) };
}

function refuseDomain(node: DataTypeDef): void {
  if (node.kind === "array") return refuseDomain(node.arrayOf);
  const domain = domainOf(node);
  if (domain === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use domain ${domain.namespace}.${domain.name} in a function: the domain's ` +
      "conditions would not be checked",
    { position: node._location.start, hint: `use the type ${typeName(domain.base)}` },
  );
}

/** Returns the row type of the table with the given name; undefined if there is no such table. */
function rowTypeOf(
  node: Exclude<DataTypeDef, { kind: "array" }>,
  source: RelationSource,
): SignatureType | undefined {
  const table = tableNamed(node, source);
  if (table === undefined) return undefined;
  return { type: rowTypeOfTable(table), shown: `${table.namespace}.${table.name}` };
}
