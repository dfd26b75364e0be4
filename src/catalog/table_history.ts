/**
 * Keeps the definitions of tables in memory: current definitions, earlier definitions of existing
 * tables, and those definitions of dropped tables that are still needed.
 *
 * `Definitions` writes the records to SQLite. It calls the functions that change this state only
 * after the transaction is durable.
 */

import { defined } from "../base/assert.ts";
import type { Seq } from "../base/seq.ts";
import { domainsIn } from "../types/mod.ts";
import type { DefinedTypes } from "./defined_types.ts";
import type { TableEntry } from "./entries.ts";
import { deletedAfterMs, hasSameAccess } from "./table_options.ts";
import { type DefinitionRecord, tableFromJson } from "./table_records.ts";

export interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** The maximum age of a table's rows, and the seq from which this limit applied. */
interface DeletionAge {
  readonly fromSeq: number;
  readonly ageMs: number | undefined;
}

/** A schema version of a table, and the seq from which it applied. */
interface TableVersion {
  readonly fromSeq: number;
  readonly table: TableEntry;
}

export class TableHistory {
  readonly #types: DefinedTypes;
  readonly #byId: Map<number, TableEntry> = new Map();
  /** The current definition of each table, keyed by table id. */
  readonly #records: Map<number, DefinitionRecord> = new Map();
  /** The ids of all definitions of each table, in ascending order. */
  readonly #definitionIds: Map<number, number[]> = new Map();
  /** The current table entries, keyed by namespace and then by name. */
  readonly #byName: Map<string, Map<string, TableEntry>> = new Map();
  /** The schema versions of each existing table, in ascending order. */
  readonly #versions: Map<number, readonly TableVersion[]> = new Map();
  /**
   * The last definition of the most recently dropped table of each name, keyed by {@linkcode
   * pathOf}.
   */
  readonly #dropped: Map<string, DefinitionRecord> = new Map();
  /** For each existing table, the last definition under each of its former names. */
  #formerNames: readonly DefinitionRecord[] = [];
  /** The seqs returned by {@linkcode accessSeq}, keyed by table id. */
  readonly #accessSeqs: Map<number, number> = new Map();
  /** The ages returned by {@linkcode deletionAgeMs}, keyed by table id, in ascending seq order. */
  readonly #deletionAges: Map<number, readonly DeletionAge[]> = new Map();
  #sorted: readonly TableEntry[] | undefined;

  /** @param copied The history to copy; omitted to start without tables. */
  constructor(types: DefinedTypes, copied?: TableHistory) {
    this.#types = types;
    if (copied === undefined) return;
    this.#byId = new Map(copied.#byId);
    this.#records = new Map(copied.#records);
    this.#definitionIds = new Map(copied.#definitionIds);
    this.#byName = new Map([...copied.#byName].map(([name, tables]) => [name, new Map(tables)]));
    this.#versions = new Map(copied.#versions);
    this.#dropped = new Map(copied.#dropped);
    this.#formerNames = copied.#formerNames;
    this.#accessSeqs = new Map(copied.#accessSeqs);
    this.#deletionAges = new Map(copied.#deletionAges);
    this.#sorted = copied.#sorted;
  }

  /**
   * Adds the definitions stored on disk, in ascending order of id. Returns the ids of definitions
   * that are no longer needed.
   */
  read(records: readonly DefinitionRecord[]): readonly number[] {
    const current = new Set(
      records.filter(({ toSeq }) => toSeq === undefined).map(({ table }) => table.tableId),
    );
    const orphans: number[] = [];
    for (const record of records) {
      if (current.has(record.table.tableId)) this.remember(record);
      else orphans.push(...this.#noteDropped(record));
    }
    return orphans;
  }

  named(namespace: string, name: string): TableEntry | undefined {
    return this.#byName.get(namespace)?.get(name);
  }

  byId(tableId: number): TableEntry | undefined {
    return this.#byId.get(tableId);
  }

  /** Returns all tables, ordered by namespace and name. */
  all(): readonly TableEntry[] {
    this.#sorted ??= [...this.#byId.values()].toSorted(compareTables);
    return this.#sorted;
  }

  countIn(namespace: string): number {
    return this.#byName.get(namespace)?.size ?? 0;
  }

  versionsOf(tableId: number): readonly TableEntry[] {
    return (this.#versions.get(tableId) ?? []).map(({ table }) => table);
  }

  at(tableId: number, seq: Seq): TableEntry | undefined {
    return this.#versions.get(tableId)?.findLast(({ fromSeq }) => fromSeq <= seq)?.table;
  }

  droppedSeq(namespace: string, name: string): number {
    const path = pathOf({ namespace, name });
    const former = this.#formerNames.filter(({ table }) => pathOf(table) === path);
    return Math.max(this.#dropped.get(path)?.toSeq ?? 0, ...former.map(({ toSeq }) => toSeq ?? 0));
  }

  deletionAgeMs(tableId: number, seq: Seq): number | undefined {
    return this.#deletionAges.get(tableId)?.findLast(({ fromSeq }) => fromSeq <= seq)?.ageMs;
  }

  accessSeq(tableId: number): number {
    return this.#accessSeqs.get(tableId) ?? 0;
  }

  /** Returns the current definition of an existing table. */
  recordOf(tableId: number): DefinitionRecord {
    return defined(this.#records.get(tableId), "table history: table has no current definition");
  }

  /** Returns the ids of the definitions no longer needed once a table is dropped. */
  outdatedBy(entry: TableEntry): number[] {
    const { tableId } = entry;
    const kept = new Set(
      [this.recordOf(tableId), ...this.#formerNamesOf(tableId)].map((each) => each.definitionId),
    );
    const definitionIds = defined(
      this.#definitionIds.get(tableId),
      "table history: table has no recorded definitions",
    );
    const before = this.#dropped.get(pathOf(entry));
    const outdated = definitionIds.filter((id) => !kept.has(id));
    return before === undefined ? outdated : [...outdated, before.definitionId];
  }

  /** Adds a definition. It must be newer than all other definitions of its table. */
  remember(record: DefinitionRecord): void {
    const entry = tableFromJson(record.table, this.#types);
    const last = this.#records.get(entry.tableId);
    if (last !== undefined && pathOf(last.table) !== pathOf(entry)) {
      this.#formerNames = [...this.#formerNames, { ...last, toSeq: record.fromSeq }];
    }
    this.#records.set(entry.tableId, record);
    const definitionIds = this.#definitionIds.get(entry.tableId) ?? [];
    this.#definitionIds.set(entry.tableId, [...definitionIds, record.definitionId]);
    const before = this.#byId.get(entry.tableId);
    if (before !== undefined) this.#byName.get(before.namespace)?.delete(before.name);
    if (before !== undefined && !hasSameAccess(before, entry)) {
      this.#accessSeqs.set(entry.tableId, record.fromSeq);
    }
    this.#rememberAge(record.fromSeq, entry);
    this.#byId.set(entry.tableId, entry);
    const names = this.#byName.get(entry.namespace) ?? new Map<string, TableEntry>();
    names.set(entry.name, entry);
    this.#byName.set(entry.namespace, names);
    const versions = this.#versions.get(entry.tableId) ?? [];
    // If only options change, the schema version stays the same, and the new definition replaces
    // the previous definition of that version.
    const same = versions.at(-1);
    const isSame = same?.table.schemaVersion === entry.schemaVersion;
    const fromSeq = isSame ? same.fromSeq : record.fromSeq;
    const earlier = isSame ? versions.slice(0, -1) : versions;
    this.#versions.set(entry.tableId, [...earlier, { fromSeq, table: entry }]);
    this.#sorted = undefined;
  }

  /**
   * Removes a table.
   * @param ended Its last definition, with the seq at which the table was dropped.
   */
  forget(entry: TableEntry, ended: DefinitionRecord): void {
    const { tableId } = entry;
    const former = this.#formerNamesOf(tableId);
    this.#byId.delete(tableId);
    this.#records.delete(tableId);
    this.#definitionIds.delete(tableId);
    this.#versions.delete(tableId);
    this.#accessSeqs.delete(tableId);
    this.#deletionAges.delete(tableId);
    this.#byName.get(entry.namespace)?.delete(entry.name);
    this.#dropped.set(pathOf(entry), ended);
    this.#formerNames = this.#formerNames.filter((each) => !former.includes(each));
    // Definition records that are no longer needed stay on disk until the next startup removes
    // them.
    for (const each of former) this.#noteDropped(each);
    this.#sorted = undefined;
  }

  /** Updates the columns of all tables that use a domain to the domain's current definition. */
  renewUsersOf(typeId: number): void {
    for (const table of this.#byId.values()) {
      const isUser = table.columns.some(({ domain, type }) =>
        [domain, ...domainsIn(type)].some((each) => each?.typeId === typeId),
      );
      if (!isUser) continue;
      const entry = {
        ...table,
        columns: table.columns.map((column) => this.#types.currentColumn(column)),
      };
      this.#byId.set(entry.tableId, entry);
      this.#byName.get(entry.namespace)?.set(entry.name, entry);
      const versions = this.#versions.get(entry.tableId) ?? [];
      const newest = defined(versions.at(-1), "table history: table has no current version");
      const earlier = versions.slice(0, -1);
      this.#versions.set(entry.tableId, [...earlier, { ...newest, table: entry }]);
    }
    this.#sorted = undefined;
  }

  #formerNamesOf(tableId: number): readonly DefinitionRecord[] {
    return this.#formerNames.filter(({ table }) => table.tableId === tableId);
  }

  #rememberAge(fromSeq: number, entry: TableEntry): void {
    const ages = this.#deletionAges.get(entry.tableId) ?? [];
    const ageMs = deletedAfterMs(entry);
    if (ageMs === ages.at(-1)?.ageMs) return;
    this.#deletionAges.set(entry.tableId, [...ages, { fromSeq, ageMs }]);
  }

  /**
   * Records a definition of a dropped table. Returns the ids of the definitions no longer needed.
   */
  #noteDropped(record: DefinitionRecord): readonly number[] {
    const path = pathOf(record.table);
    const before = this.#dropped.get(path);
    if (before === undefined || (before.toSeq ?? 0) < (record.toSeq ?? 0)) {
      this.#dropped.set(path, record);
      return before === undefined ? [] : [before.definitionId];
    }
    return [record.definitionId];
  }
}

/**
 * Returns a key for a namespace and a name. Both are encoded, because they may contain any
 * character and different pairs must have different keys.
 */
export function pathOf({ name, namespace }: Named): string {
  return JSON.stringify([namespace, name]);
}

function compareTables(left: TableEntry, right: TableEntry): number {
  if (left.namespace !== right.namespace) return left.namespace < right.namespace ? -1 : 1;
  return left.name < right.name ? -1 : 1;
}
