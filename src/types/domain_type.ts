/**
 * Defines domains, which are named conditions on the values of another type.
 *
 * A value of a domain is a value of its base type, so expressions do not distinguish the two. The
 * conditions are checked wherever a value is converted to the domain: in a cast, and when a row is
 * written.
 */
import { type DataType, typeName } from "./data_type.ts";
import { qualifiedTypeName } from "./enum_type.ts";

export interface DomainCheck {
  readonly name: string;
  /** The condition as SQL text, in which `VALUE` denotes the value to check. */
  readonly sql: string;
}

export interface DomainRules {
  /** The type of the values in a domain. */
  readonly base: DataType;
  readonly notNull: boolean;
  /** The DEFAULT, as SQL text, of columns that declare none themselves. */
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

/** Returns the type of a column as a definition names it. */
export function columnTypeName({
  domain,
  type,
}: {
  readonly type: DataType;
  readonly domain?: DomainType;
}): string {
  return domain === undefined ? typeName(type) : domainName(domain);
}
