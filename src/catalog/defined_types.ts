/**
 * The types that users define, as entries of the catalog and as data types.
 *
 * Every column of a type has the same `EnumType` object, which a change of the type changes in
 * place: plans, live queries and topics that hold it know new labels at once. The definition of a
 * table on disk repeats the type as it was, for the definitions that outlive it.
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

  /** Adds a new type, or changes the type that columns have. */
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

  /** Returns a type as it is now. A type that was dropped stays as it was when it was stored. */
  current(type: DataType): DataType {
    if (type.kind === "array") return { kind: "array", element: this.current(type.element) };
    if (type.kind !== "enum") return type;
    const enumType = this.#byId.get(type.enumType.typeId);
    return enumType === undefined ? type : { kind: "enum", enumType };
  }
}
