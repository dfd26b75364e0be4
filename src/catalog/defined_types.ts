/**
 * Manages the types that users define, both as catalog entries and as data types.
 *
 * All columns of an enum type share one `EnumType` object, which ALTER TYPE changes in place, so
 * plans, live queries and topics see new labels immediately. On disk, the definition of a table
 * includes a copy of the type, so that it can be read even after the type was dropped. A domain
 * never changes in place: ALTER DOMAIN replaces the definitions of the tables whose columns have
 * the domain.
 */
import type { DataType, DomainType, EnumType } from "../types/mod.ts";
import type { ColumnEntry, TypeEntry } from "./entries.ts";
import { NamedEntries } from "./named_entries.ts";
import { allSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

/** What a name defined by CREATE TYPE or CREATE DOMAIN refers to. */
export interface DefinedType {
  readonly type: DataType;
  readonly domain?: DomainType;
}

export class DefinedTypes {
  readonly entries: NamedEntries<TypeEntry>;
  readonly #byId = new Map<number, EnumType>();
  readonly #domains = new Map<number, DomainType>();

  constructor(file: SqliteFile) {
    this.entries = new NamedEntries(file, { table: "types", idOf: ({ typeId }) => typeId });
    // The base type of a domain may be an enum type, so enum types are loaded first.
    const all = [...allSealed<TypeEntry>(file, "types")];
    for (const entry of all) if (entry.domain === undefined) this.remember(entry);
    for (const entry of all) if (entry.domain !== undefined) this.remember(entry);
  }

  named(namespace: string, name: string): DefinedType | undefined {
    const typeId = this.entries.named(namespace, name)?.typeId;
    if (typeId === undefined) return undefined;
    const domain = this.#domains.get(typeId);
    if (domain !== undefined) return { type: domain.base, domain };
    const enumType = this.#byId.get(typeId);
    return enumType === undefined ? undefined : { type: { kind: "enum", enumType } };
  }

  /** Adds a new type, or updates the existing object that all columns of the type share. */
  remember(entry: TypeEntry): void {
    const { domain, labels, name, namespace, typeId } = entry;
    this.entries.remember(entry);
    if (domain !== undefined) {
      const base = this.current(domain.base);
      this.#domains.set(typeId, { ...domain, base, typeId, namespace, name });
      return;
    }
    const known = this.#byId.get(typeId);
    if (known === undefined) this.#byId.set(typeId, { typeId, namespace, name, labels });
    else Object.assign(known, { namespace, name, labels });
  }

  forget(entries: readonly TypeEntry[]): void {
    this.entries.forget(entries);
    for (const { typeId } of entries) {
      this.#byId.delete(typeId);
      this.#domains.delete(typeId);
    }
  }

  /** Returns a column with the current states of its type and its domain. */
  currentColumn<Column extends Pick<ColumnEntry, "domain" | "type">>(column: Column): Column {
    const { domain, type } = column;
    const current = { ...column, type: this.current(type) };
    if (domain === undefined) return current;
    return { ...current, domain: this.#domains.get(domain.typeId) ?? domain };
  }

  /**
   * Returns the current form of a type. If the type was dropped, it keeps the form in which it was
   * stored.
   */
  current(type: DataType): DataType {
    if (type.kind === "array") return { kind: "array", element: this.current(type.element) };
    if (type.kind !== "enum") return type;
    const enumType = this.#byId.get(type.enumType.typeId);
    return enumType === undefined ? type : { kind: "enum", enumType };
  }
}
