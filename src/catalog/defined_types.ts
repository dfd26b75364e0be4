/**
 * The types that users define, as entries of the catalog and as data types.
 *
 * All columns of a type share one `EnumType` object, which ALTER TYPE changes in place, so plans,
 * live queries and topics see new labels immediately. The definition of a table on disk includes a
 * copy of the type, so that it stays readable after the type is dropped.
 */
import type { DataType, EnumType } from "../types/mod.ts";
import type { TypeEntry } from "./entries.ts";
import { NamedEntries } from "./named_entries.ts";
import { allSealed } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

export class DefinedTypes {
  readonly entries: NamedEntries<TypeEntry>;
  readonly #byId = new Map<number, EnumType>();

  constructor(file: SqliteFile) {
    this.entries = new NamedEntries(file, { table: "types", idOf: ({ typeId }) => typeId });
    for (const entry of allSealed<TypeEntry>(file, "types")) this.remember(entry);
  }

  named(namespace: string, name: string): DataType | undefined {
    const typeId = this.entries.named(namespace, name)?.typeId;
    const enumType = typeId === undefined ? undefined : this.#byId.get(typeId);
    return enumType === undefined ? undefined : { kind: "enum", enumType };
  }

  /** Adds a new type, or updates the existing object that all columns of the type share. */
  remember(entry: TypeEntry): void {
    const { labels, name, namespace, typeId } = entry;
    this.entries.remember(entry);
    const known = this.#byId.get(typeId);
    if (known === undefined) this.#byId.set(typeId, { typeId, namespace, name, labels });
    else Object.assign(known, { namespace, name, labels });
  }

  forget(entries: readonly TypeEntry[]): void {
    this.entries.forget(entries);
    for (const { typeId } of entries) this.#byId.delete(typeId);
  }

  /** Returns the current form of a type. A dropped type keeps the form in which it was stored. */
  current(type: DataType): DataType {
    if (type.kind === "array") return { kind: "array", element: this.current(type.element) };
    if (type.kind !== "enum") return type;
    const enumType = this.#byId.get(type.enumType.typeId);
    return enumType === undefined ? type : { kind: "enum", enumType };
  }
}
