/**
 * Ties a JSON Schema to its TypeScript type: if a field is added to the type or becomes optional,
 * the code does not compile until the schema reflects the change.
 */
import type { Schema } from "../http/operation.ts";

/** Marks a property that may be absent. */
export interface Optional {
  readonly optional: Schema;
}

export type Properties<Body> = {
  readonly [Key in keyof Body]-?: Partial<Pick<Body, Key>> extends Pick<Body, Key>
    ? Optional
    : Schema;
};

export const TEXT: Schema = { type: "string" };
export const FLAG: Schema = { type: "boolean" };
export const COUNT: Schema = { type: "integer", minimum: 0 };

export function optional(schema: Schema): Optional {
  return { optional: schema };
}

/**
 * Returns the schema of an object. Additional fields are allowed, because readers ignore unknown
 * ones.
 */
export function bodyOf<Body>(given: Properties<Body>): Schema {
  const entries = Object.entries<Schema | Optional>(given);
  return {
    type: "object",
    properties: Object.fromEntries(
      entries.map(([name, it]) => [name, isOptional(it) ? it.optional : it]),
    ),
    required: entries.filter(([, it]) => !isOptional(it)).map(([name]) => name),
  };
}

/** Returns the schema of an object that must not have additional fields. */
export function strictBodyOf<Body>(given: Properties<Body>): Schema {
  return { ...bodyOf(given), additionalProperties: false };
}

function isOptional(property: Schema | Optional): property is Optional {
  return Object.hasOwn(property, "optional");
}
