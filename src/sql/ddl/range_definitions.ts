/** Executes CREATE TYPE … AS RANGE, which defines a range type and its multirange type. */
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog, FunctionEntry, RangeRules, TypeEntry } from "../../catalog/mod.ts";
import {
  bareTypeName,
  canBeBound,
  type DataType,
  isCollatable,
  isCollated,
  sameType,
  typeName,
  unbounded,
} from "../../types/mod.ts";
import { typeWithCollation } from "../bind/expression/collation_names.ts";
import { domainOf, resolveType } from "../bind/expression/types.ts";
import { isInput } from "../bind/query/routine_resolution.ts";
import { requireHolder } from "../names/table_names.ts";
import type { CreateTypeStatement, QName, RangeNode } from "../parse/ast/ast.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { requireStorable } from "./table_elements.ts";
import { requireFreeName, type TypeCaller, type TypeDeps } from "./type_definitions.ts";

/** The statement that defines a range type. */
export type CreateRangeStatement = CreateTypeStatement & { readonly range: RangeNode };

export function isRangeDefinition(node: CreateTypeStatement): node is CreateRangeStatement {
  return node.range !== undefined;
}

/**
 * Binds CREATE TYPE … AS RANGE against the current catalog.
 *
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_DEFINITION, RESERVED_NAME, UNSUPPORTED_FEATURE, …
 */
export function createRangeType(
  node: CreateRangeStatement,
  { namespace, principal }: TypeCaller,
  { catalog, clock, store }: TypeDeps,
): BoundDefinition {
  const { name, schema = namespace, _location } = node.name;
  requireHolder(catalog, schema, node.name);
  requireFreeName(catalog, { namespace: schema, name, position: _location.start }, "create");
  const rules = rulesOf(node.range, { catalog, namespace });
  const multirange = multirangeNameOf(node);
  const several = { name: multirange.name, namespace: multirange.schema ?? namespace };
  requireHolder(catalog, several.namespace, multirange);
  const position = multirange._location.start;
  const hint = "give the multirange type another name with MULTIRANGE_TYPE_NAME";
  requireFreeName(catalog, { ...several, position }, "create", hint);
  if (several.name === name && several.namespace === schema) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create type ${schema}.${name}: its multirange type needs a name of its own`,
      { position, hint },
    );
  }
  return () => {
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    const typeId = catalog.nextTableId();
    const multirangeId = catalog.nextTableId();
    const made: Pick<TypeEntry, "createdAtMs" | "createdBy" | "labels" | "updatedAtMs"> = {
      labels: [],
      createdBy: principal.userId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    const range = { ...rules, multirangeId };
    catalog.createTypes([
      { ...made, typeId, namespace: schema, name, range },
      { ...made, ...several, typeId: multirangeId, multirangeOf: typeId },
    ]);
    return `Type ${schema}.${name} created`;
  };
}

interface RangePlace {
  readonly catalog: Catalog;
  readonly namespace: string;
}

/**
 * Returns the type of the bounds.
 * @throws {DatabaseError} INVALID_DEFINITION, UNSUPPORTED_FEATURE, FUNCTION_NOT_FOUND, …
 */
function rulesOf(range: RangeNode, place: RangePlace): Omit<RangeRules, "multirangeId"> {
  const { collation, dataType } = range;
  const domain = domainOf(dataType);
  if (domain !== undefined && (domain.notNull || domain.checks.length > 0)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create ranges of domain ${domain.namespace}.${domain.name}: its conditions would ` +
        "not be checked for the bounds",
      { position: dataType._location.start, hint: `use the type ${typeName(domain.base)}` },
    );
  }
  const type = unbounded(resolveType(dataType));
  if (collation !== undefined && !isCollatable(type)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot create ranges of type ${typeName(type)} with a collation: only text has one`,
      { position: collation._location.start, hint: "remove COLLATION" },
    );
  }
  const bound = collation === undefined ? type : typeWithCollation(type, collation);
  requireStorable(bound, dataType, "shared");
  if (isCollated(bound)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot create ranges of text with a collation that does not compare code points",
      { position: (collation ?? dataType)._location.start, hint: 'write collation = "C"' },
    );
  }
  if (!canBeBound(bound)) {
    throw new DatabaseError(
      "UNSUPPORTED_TYPE",
      `Cannot create ranges of type ${typeName(bound)}: its values have no order`,
      { position: dataType._location.start, hint: "use a subtype whose values can be sorted" },
    );
  }
  requireOperatorClass(range, bound);
  requireDifference(range, bound, place);
  return { bound, ...(domain === undefined ? {} : { domainId: domain.typeId }) };
}

/** The names of the operator classes for the order of a type, if they differ from its kind. */
const OPERATOR_CLASSES: Readonly<Partial<Record<DataType["kind"], readonly string[]>>> = {
  boolean: ["bool_ops"],
  smallint: ["int2_ops"],
  int: ["int4_ops"],
  bigint: ["int8_ops"],
  float: ["float4_ops"],
  double: ["float8_ops"],
  text: ["text_ops", "varchar_ops", "text_pattern_ops", "varchar_pattern_ops"],
  datetime: ["timestamptz_ops"],
  bytes: ["bytea_ops"],
  json: ["jsonb_ops"],
  row: ["record_ops"],
  tsvector: ["tsvector_ops"],
};

/**
 * Requires that an operator class has the order of the subtype, because a type has only one order.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function requireOperatorClass({ operatorClass }: RangeNode, bound: DataType): void {
  if (operatorClass === undefined) return;
  const known = OPERATOR_CLASSES[bound.kind] ?? [`${bound.kind}_ops`];
  if (known.includes(operatorClass.name)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use operator class ${operatorClass.name} for ranges of type ${typeName(bound)}`,
    { position: operatorClass._location.start, hint: "remove SUBTYPE_OPCLASS" },
  );
}

/** PostgreSQL's functions for differences, by the kind of the type of their arguments. */
const DIFFERENCES: Readonly<Partial<Record<DataType["kind"], string>>> = {
  int: "int4range_subdiff",
  bigint: "int8range_subdiff",
  numeric: "numrange_subdiff",
  double: "float8mi",
  date: "daterange_subdiff",
  timestamp: "tsrange_subdiff",
  datetime: "tstzrange_subdiff",
};

/**
 * Requires that the function for differences exists. It has no effect, because it serves only
 * indexes of overlapping ranges.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
function requireDifference(
  { difference }: RangeNode,
  bound: DataType,
  { catalog, namespace }: RangePlace,
): void {
  if (difference === undefined) return;
  const { name, schema, _location } = difference;
  const isBuiltIn = schema === undefined || schema === "pg_catalog";
  if (isBuiltIn && DIFFERENCES[bound.kind] === name) return;
  const found = catalog.functionsNamed(schema ?? namespace, name);
  if (found.some((entry) => isDifference(entry, bound))) return;
  const type = bareTypeName(bound);
  throw new DatabaseError(
    "FUNCTION_NOT_FOUND",
    `Cannot find function ${name}(${type}, ${type}) that returns double precision`,
    { position: _location.start, hint: "create the function first, or remove SUBTYPE_DIFF" },
  );
}

function isDifference({ routine }: FunctionEntry, bound: DataType): boolean {
  const inputs = routine.parameters.filter(isInput);
  const { returns } = routine;
  return (
    inputs.length === 2 &&
    inputs.every(({ type }) => typeof type === "object" && sameType(type, bound)) &&
    typeof returns === "object" &&
    returns.kind === "double"
  );
}

/** The maximum length of a name, as in PostgreSQL. */
const NAME_MAX = 63;

/**
 * Returns the name of the multirange type. By default, "multirange" takes the place of "range" in
 * the name of the range type, or is appended.
 */
export function multirangeNameOf({ name: own, range }: CreateRangeStatement): QName {
  if (range.multirange !== undefined) return range.multirange;
  const { name } = own;
  const at = name.indexOf("range");
  const made = at < 0 ? `${name}_multirange` : `${name.slice(0, at)}multi${name.slice(at)}`;
  return { ...own, name: made.slice(0, NAME_MAX) };
}
