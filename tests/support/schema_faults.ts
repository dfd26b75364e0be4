/**
 * Validates a value against a JSON Schema, supporting only the keywords that the schemas of
 * `/v1/openapi.json` use.
 */
import type { Schema } from "../../src/server/http/operation.ts";

export type { Schema } from "../../src/server/http/operation.ts";

/**
 * Lists the places where a value differs from its schema. A field that the schema does not declare
 * is also a difference.
 *
 * @param schemas The named schemas to which references may point.
 */
export function schemaFaults(
  value: unknown,
  schema: Schema,
  schemas: Readonly<Record<string, Schema>>,
  at = "body",
): readonly string[] {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    return schemaFaults(value, schemas[name] ?? {}, schemas, at);
  }
  const { anyOf } = schema;
  if (anyOf !== undefined) {
    const fits = anyOf.some((each) => schemaFaults(value, each, schemas, at).length === 0);
    return fits ? [] : [`${at} fits none of ${anyOf.length} schemas`];
  }
  const faults: string[] = [];
  const types = [schema.type ?? []].flat();
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) {
    faults.push(`${at} is no ${types.join(" or ")}`);
  }
  if (schema.enum !== undefined && typeof value === "string" && !schema.enum.includes(value)) {
    faults.push(`${at} is "${value}"`);
  }
  if (schema.const !== undefined && schema.const !== value) faults.push(`${at} is not constant`);
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    for (const [index, item] of value.entries()) {
      faults.push(...schemaFaults(item, items, schemas, `${at}[${index}]`));
    }
  } else if (typeof value === "object" && value !== null && schema.properties !== undefined) {
    const { properties, required = [] } = schema;
    for (const name of required) if (!(name in value)) faults.push(`${at}.${name} is missing`);
    for (const [name, member] of Object.entries(value)) {
      const known = properties[name];
      if (known === undefined) faults.push(`${at}.${name} is not described`);
      else faults.push(...schemaFaults(member, known, schemas, `${at}.${name}`));
    }
  }
  return faults;
}

function isOfType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    default:
      return typeof value === type;
  }
}
