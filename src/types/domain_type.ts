/**
 * Defines domains: types that add conditions to the values of another type.
 *
 * A value of a domain is a value of its base type, so expressions do not distinguish the two. The
 * conditions are checked wherever a value is converted to the domain: in a cast, and when a row is
 * written.
 */
import { type DataType, typeName } from "./data_type.ts";
import { qualifiedTypeName } from "./enum_type.ts";

export interface DomainCheck {
  readonly name: string;
  /** The condition as SQL. `VALUE` denotes the value to check. */
  readonly sql: string;
}

export interface DomainRules {
  /** The type of the domain's values. */
  readonly base: DataType;
  readonly notNull: boolean;
  /** The default value, as SQL, for columns that do not declare their own. */
  readonly defaultSql?: string;
  readonly checks: readonly DomainCheck[];
}

export interface DomainType extends DomainRules {
  readonly typeId: number;
  readonly namespace: string;
  readonly name: string;
}

/** Returns the name of a domain for messages and definitions. */
export function domainName(domain: DomainType): string {
  return qualifiedTypeName(domain);
}

/** Returns a column's type as written in a definition. */
export function columnTypeName({
  domain,
  type,
}: {
  readonly type: DataType;
  readonly domain?: DomainType;
}): string {
  return domain === undefined ? typeName(type) : domainName(domain);
}

/** Returns the domains of the elements and fields in values of a type. */
export function domainsIn(type: DataType): DomainType[] {
  if (type.kind === "array")
    return [...(type.domain ? [type.domain] : []), ...domainsIn(type.element)];
  if (type.kind !== "row") return [];
  return type.fields.flatMap((field) => [
    ...(field.domain === undefined ? [] : [field.domain]),
    ...domainsIn(field.type),
  ]);
}
