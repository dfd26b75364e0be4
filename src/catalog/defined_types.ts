/**
 * Manages user-defined types, both as catalog entries and as data types.
 *
 * All columns of an enum type share one `EnumType` object, which ALTER TYPE changes in place, so
 * plans, live queries and topics see new labels immediately. On disk, a table's definition
 * includes a copy of the type, so that the table can be read even after the type has been dropped.
 * A domain never changes in place: ALTER DOMAIN replaces the definitions of the tables with
 * columns of that domain.
 */
import { defined } from "../base/assert.ts";
import {
  type Collation,
  type DataType,
  type DomainType,
  type EnumType,
  isRangeType,
  type NamedRange,
  type RangeType,
  type RowField,
  TEXT,
  withCollation,
} from "../types/mod.ts";
import type { ColumnEntry, RoutineSteps, RoutineType, TypeEntry, ViewEntry } from "./entries.ts";
import { NamedEntries } from "./named_entries.ts";
import { allSealed } from "./records.ts";
import type { SealedFile } from "./sqlite_file.ts";

/**
 * The type to which a name refers, if it was defined by CREATE TYPE, CREATE DOMAIN or CREATE
 * COLLATION.
 */
export interface DefinedType {
  readonly type: DataType;
  readonly domain?: DomainType;
  /**
   * The collation, if the name was defined by CREATE COLLATION. In that case, `type` is text with
   * this collation.
   */
  readonly collation?: Collation;
}

export class DefinedTypes {
  readonly entries: NamedEntries<TypeEntry>;
  readonly #byId: Map<number, EnumType> = new Map();
  readonly #domains: Map<number, DomainType> = new Map();
  readonly #rows: Map<number, DataType & { kind: "row" }> = new Map();
  /** The range and multirange types. */
  readonly #ranges: Map<number, DefinedRange> = new Map();
  readonly #collations: Map<number, Collation> = new Map();

  /**
   * Reads or copies the user-defined types.
   * @param from The types to copy; absent to read them from the file.
   */
  constructor(file: SealedFile, from?: DefinedTypes) {
    this.entries = new NamedEntries(file, {
      table: "types",
      idOf: ({ typeId }) => typeId,
      from: from?.entries,
    });
    if (from !== undefined) {
      this.#byId = new Map(from.#byId);
      this.#domains = new Map(from.#domains);
      this.#rows = new Map(from.#rows);
      this.#ranges = new Map(from.#ranges);
      this.#collations = new Map(from.#collations);
      return;
    }
    // A type must be loaded after the types to which it refers. Enum types and collations are
    // loaded first, then the other types from oldest to newest.
    const all = [...allSealed<TypeEntry>(file, "types")];
    const others = all.filter((entry) => !isFirst(entry));
    for (const entry of all) if (isFirst(entry)) this.remember(entry);
    for (const entry of others.toSorted((a, b) => a.typeId - b.typeId)) this.remember(entry);
  }

  named(namespace: string, name: string): DefinedType | undefined {
    const typeId = this.entries.named(namespace, name)?.typeId;
    if (typeId === undefined) return undefined;
    const domain = this.#domains.get(typeId);
    if (domain !== undefined) return { type: domain.base, domain };
    const row = this.#rows.get(typeId);
    if (row !== undefined) return { type: this.current(row) };
    const range = this.#ranges.get(typeId);
    if (range !== undefined) return { type: this.current(range) };
    const collation = this.#collations.get(typeId);
    if (collation !== undefined) return { type: withCollation(TEXT, collation), collation };
    const enumType = this.#byId.get(typeId);
    return enumType === undefined ? undefined : { type: { kind: "enum", enumType } };
  }

  /** Adds a new type, or updates the object that all columns of an existing type share. */
  remember(entry: TypeEntry): void {
    const { collation, domain, fields, labels, multirangeOf, name, namespace, range, typeId } =
      entry;
    this.entries.remember(entry);
    if (collation !== undefined) {
      // All columns with the collation share this object, in which only the name can change.
      const known = this.#collations.get(typeId) ?? { ...collation, typeId };
      this.#collations.set(typeId, Object.assign(known, { namespace, name }));
      return;
    }
    if (domain !== undefined) {
      const base = this.current(domain.base);
      this.#domains.set(typeId, { ...domain, base, typeId, namespace, name });
      return;
    }
    if (fields !== undefined) {
      // All columns of the row type share this object, in which only the name can change.
      const named = Object.assign(this.#rows.get(typeId)?.named ?? { typeId }, { namespace, name });
      this.#rows.set(typeId, { kind: "row", fields: this.#currentFields(fields), named });
      return;
    }
    if (range !== undefined || multirangeOf !== undefined) {
      this.#rememberRange(entry);
      return;
    }
    const known = this.#byId.get(typeId);
    if (known === undefined) this.#byId.set(typeId, { typeId, namespace, name, labels });
    else Object.assign(known, { namespace, name, labels });
  }

  /**
   * Remembers a range type, or its multirange type, which must come later. All columns of the two
   * share the object with their names, which can change.
   */
  #rememberRange({ multirangeOf, name, namespace, range, typeId }: TypeEntry): void {
    if (range !== undefined) {
      const multirange = { typeId: range.multirangeId, namespace, name };
      const known = this.#ranges.get(typeId)?.named ?? { typeId, multirange };
      const named = Object.assign(known, { namespace, name });
      this.#ranges.set(typeId, { kind: "range", bound: range.bound, named });
      return;
    }
    const { bound, named } = defined(
      this.#ranges.get(multirangeOf ?? -1),
      "catalog: multirange type has no range type",
    );
    Object.assign(named.multirange, { namespace, name });
    this.#ranges.set(typeId, { kind: "multirange", bound, named });
  }

  forget(entries: readonly TypeEntry[]): void {
    this.entries.forget(entries);
    for (const { typeId } of entries) {
      this.#byId.delete(typeId);
      this.#domains.delete(typeId);
      this.#rows.delete(typeId);
      this.#ranges.delete(typeId);
      this.#collations.delete(typeId);
    }
  }

  /** Returns a column with the current definitions of its type and its domain. */
  currentColumn<Column extends Pick<ColumnEntry, "domain" | "type">>(column: Column): Column {
    const { domain, type } = column;
    const current = { ...column, type: this.current(type) };
    if (domain === undefined) return current;
    return { ...current, domain: this.#domains.get(domain.typeId) ?? domain };
  }

  /**
   * Returns a function with the current definitions of its types. A view is returned unchanged.
   */
  currentQuery(entry: ViewEntry): ViewEntry {
    const { routine } = entry;
    if (routine === undefined) return entry;
    const now = (type: RoutineType): RoutineType =>
      typeof type === "string" ? type : this.current(type);
    const parameters = routine.parameters.map((each) => ({ ...each, type: now(each.type) }));
    const types = routine.types.map((each) => this.current(each));
    const { aggregate, returns } = routine;
    const stepsNow = (steps: RoutineSteps): RoutineSteps => {
      return { ...steps, stateType: now(steps.stateType) };
    };
    const current = {
      ...routine,
      parameters,
      types,
      ...(aggregate === undefined
        ? {}
        : {
            aggregate: {
              plain: stepsNow(aggregate.plain),
              moving: aggregate.moving && stepsNow(aggregate.moving),
            },
          }),
    };
    return {
      ...entry,
      routine: returns === undefined ? current : { ...current, returns: now(returns) },
    };
  }

  #currentText(type: DataType & { kind: "text" }): DataType {
    const { collation } = type;
    if (collation === undefined || collation.kind === "mixed") return type;
    const known = this.#collations.get(collation.typeId ?? -1);
    return known === undefined ? type : withCollation(type, known);
  }

  #currentFields(fields: readonly RowField[]): readonly RowField[] {
    return fields.map((field) => {
      const domain = field.domain && (this.#domains.get(field.domain.typeId) ?? field.domain);
      return {
        name: field.name,
        type: this.current(field.type),
        ...(domain === undefined ? {} : { domain }),
      };
    });
  }

  /**
   * Returns the current definition of a type. If the type was dropped, returns the given
   * definition, which a table has stored.
   */
  current(type: DataType): DataType {
    if (type.kind === "array") {
      const domain = type.domain && (this.#domains.get(type.domain.typeId) ?? type.domain);
      const element = this.current(type.element);
      return domain === undefined ? { ...type, element } : { ...type, element, domain };
    }
    if (type.kind === "row") {
      const known = type.named === undefined ? undefined : this.#rows.get(type.named.typeId);
      return { ...(known ?? type), fields: this.#currentFields((known ?? type).fields) };
    }
    if (isRangeType(type)) {
      const known = type.named === undefined ? undefined : this.#ranges.get(type.named.typeId);
      const named = known?.named ?? type.named;
      return {
        ...type,
        bound: this.current(type.bound),
        ...(named === undefined ? {} : { named }),
      };
    }
    if (type.kind === "text") return this.#currentText(type);
    if (type.kind !== "enum") return type;
    const enumType = this.#byId.get(type.enumType.typeId);
    return enumType === undefined ? type : { kind: "enum", enumType };
  }
}

/** Returns whether a type can be loaded first, because it refers to no other type. */
function isFirst(entry: TypeEntry): boolean {
  const kind = typeKindOf(entry);
  return kind === "enum" || kind === "collation";
}

/** A type of ranges or multiranges that CREATE TYPE has defined. */
type DefinedRange = RangeType & { readonly named: NamedRange };

/** Returns the word for a defined type in messages and lists. */
export function typeKindOf(
  entry: TypeEntry,
): "collation" | "domain" | "enum" | "multirange" | "range" | "row" {
  if (entry.collation !== undefined) return "collation";
  if (entry.domain !== undefined) return "domain";
  if (entry.fields !== undefined) return "row";
  if (entry.range !== undefined) return "range";
  return entry.multirangeOf === undefined ? "enum" : "multirange";
}
