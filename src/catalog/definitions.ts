/**
 * Namespaces, tables and views: what is defined, in memory for reading and in SQLite to stay.
 *
 * Invariants:
 * - `default` always exists.
 * - Every definition that a table ever had stays in `table_definitions` with the seqs between which
 *   it held, for as long as the table exists; of a table that is gone the last one, until another
 *   of its name is dropped.
 * - What the catalog knows of a table goes in one transaction: its definitions, its files, and what
 *   the manifest lists of it. A DROP that is refused has changed nothing.
 * - Memory changes only after the transaction is durable.
 */
import { assert, defined } from "../base/assert.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Seq } from "../base/seq.ts";
import type { Counters } from "./counters.ts";
import type { NamespaceEntry, TableEntry, ViewEntry } from "./entries.ts";
import type { FileList } from "./file_list.ts";
import type { ManifestDatabase } from "./manifest_database.ts";
import { DEFAULT_NAMESPACE } from "./names.ts";
import {
  allSealed,
  jsonFromValue,
  putSealed,
  removeSealed,
  type ValueJson,
  valueFromJson,
} from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";
import { isOpened } from "./table_options.ts";
import { Views } from "./views.ts";

export interface DefinitionsOptions {
  readonly file: SqliteFile;
  readonly counters: Counters;
  readonly files: FileList;
  readonly manifest: ManifestDatabase;
}

/** Definitions of tables that are gone, removed with each change: more than a change adds. */
const REMOVED_PER_CHANGE = 16;

export class Definitions {
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #files: FileList;
  readonly #manifest: ManifestDatabase;
  readonly #views: Views;
  readonly #namespaces = new Map<string, NamespaceEntry>();
  readonly #byId = new Map<number, TableEntry>();
  /** The definition in force of each table. */
  readonly #records = new Map<number, DefinitionRecord>();
  /** Of all definitions of each table, ascending. */
  readonly #definitionIds = new Map<number, number[]>();
  /** Definitions that were found, and that nobody needs. */
  #orphans: readonly number[];
  /** By namespace, then by name. */
  readonly #byName = new Map<string, Map<string, TableEntry>>();
  /** One for each schema version, ascending; of tables that exist. */
  readonly #versions = new Map<number, readonly TableVersion[]>();
  /** The last definition of the last table of a name that was dropped, by {@linkcode pathOf}. */
  readonly #dropped = new Map<string, DefinitionRecord>();
  /** By table id: see {@linkcode tableOpenedSeq}. */
  readonly #opened = new Map<number, number>();
  #sorted: readonly TableEntry[] | undefined;
  #sortedNamespaces: readonly NamespaceEntry[] | undefined;
  #nextTableId: number;

  constructor({ counters, file, files, manifest }: DefinitionsOptions) {
    this.#file = file;
    this.#counters = counters;
    this.#files = files;
    this.#manifest = manifest;
    this.#views = new Views(file);
    this.#nextTableId = counters.get("next_table_id");
    for (const entry of allSealed<NamespaceEntry>(file, "namespaces")) {
      this.#namespaces.set(entry.name, entry);
    }
    const records = allSealed<DefinitionRecord>(file, "table_definitions");
    const current = new Set(
      records.filter(({ toSeq }) => toSeq === undefined).map(({ table }) => table.tableId),
    );
    const orphans: number[] = [];
    for (const record of records) {
      if (current.has(record.table.tableId)) this.#remember(record);
      else orphans.push(...this.#noteDropped(record));
    }
    this.#orphans = orphans;
  }

  get version(): number {
    return this.#counters.get("catalog_version");
  }

  namespace(name: string): NamespaceEntry | undefined {
    return this.#namespaces.get(name);
  }

  namespaces(): readonly NamespaceEntry[] {
    this.#sortedNamespaces ??= [...this.#namespaces.values()].toSorted((left, right) =>
      left.name < right.name ? -1 : 1,
    );
    return this.#sortedNamespaces;
  }

  createNamespace(entry: NamespaceEntry): void {
    if (this.#namespaces.has(entry.name)) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create namespace ${entry.name}: it already exists`,
      );
    }
    this.#putNamespace(entry);
  }

  changeNamespace(entry: NamespaceEntry): void {
    this.#namespaceOrThrow(entry.name, "change");
    this.#putNamespace(entry);
  }

  /**
   * Leaves the namespaces of a user to nobody, within the running transaction. Memory follows with
   * the function that is returned, once that is durable.
   */
  storeWithoutOwner(userId: string): () => void {
    const left: NamespaceEntry[] = [];
    for (const entry of this.namespaces()) {
      if (entry.owner === userId) left.push({ ...entry, owner: undefined });
    }
    const version = this.version + 1;
    for (const entry of left) this.#storeNamespace(entry);
    if (left.length > 0) this.#counters.store("catalog_version", version);
    return () => {
      if (left.length === 0) return;
      for (const entry of left) this.#rememberNamespace(entry);
      this.#counters.raise("catalog_version", version);
    };
  }

  dropNamespace(name: string): void {
    this.#namespaceOrThrow(name, "drop");
    assert(name !== DEFAULT_NAMESPACE, "the default namespace always exists");
    const tableCount = this.#byName.get(name)?.size ?? 0;
    const held = tableCount + this.views().filter(({ namespace }) => namespace === name).length;
    if (held > 0) {
      throw new DatabaseError(
        "DEPENDENT_OBJECTS",
        `Cannot drop namespace ${name}: it holds ${held} table(s) and views`,
        { hint: "use CASCADE to drop them too" },
      );
    }
    this.#change(() => removeSealed(this.#file, "namespaces", name));
    this.#namespaces.delete(name);
    this.#sortedNamespaces = undefined;
  }

  table(namespace: string, name: string): TableEntry | undefined {
    return this.#byName.get(namespace)?.get(name);
  }

  tableById(tableId: number): TableEntry | undefined {
    return this.#byId.get(tableId);
  }

  tables(): readonly TableEntry[] {
    this.#sorted ??= [...this.#byId.values()].toSorted(compareTables);
    return this.#sorted;
  }

  tableVersions(tableId: number): readonly TableEntry[] {
    return (this.#versions.get(tableId) ?? []).map(({ table }) => table);
  }

  tableAt(tableId: number, seq: Seq): TableEntry | undefined {
    return this.#versions.get(tableId)?.findLast(({ fromSeq }) => fromSeq <= seq)?.table;
  }

  tableDroppedSeq(namespace: string, name: string): number {
    return this.#dropped.get(pathOf({ namespace, name }))?.toSeq ?? 0;
  }

  tableOpenedSeq(tableId: number): number {
    return this.#opened.get(tableId) ?? 0;
  }

  /** An id that no row on disk can name: it becomes durable with the table that takes it. */
  nextTableId(): number {
    const tableId = this.#nextTableId;
    this.#nextTableId += 1;
    return tableId;
  }

  createTable(entry: TableEntry, seq: Seq): void {
    assert(!this.#byId.has(entry.tableId), "a table id is used once");
    this.#namespaceOrThrow(entry.namespace, `create table ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    const record = this.#newRecord(entry, seq);
    this.#change(() => {
      this.#counters.store("next_table_id", entry.tableId + 1);
      this.#put(record);
    }, seq);
    this.#counters.raise("next_table_id", entry.tableId + 1);
    this.#nextTableId = Math.max(this.#nextTableId, entry.tableId + 1);
    this.#remember(record);
  }

  changeTable(entry: TableEntry, seq: Seq, views: readonly ViewEntry[]): void {
    const before = defined(this.#byId.get(entry.tableId), "a table that changes exists");
    assert(entry.schemaVersion >= before.schemaVersion, "schema versions ascend");
    if (before.name !== entry.name || before.namespace !== entry.namespace) {
      this.#refuseTaken(entry, "rename");
    }
    const record = this.#newRecord(entry, seq);
    this.#change(() => {
      this.#views.remove(views);
      this.#endDefinition(entry.tableId, seq);
      this.#put(record);
    }, seq);
    this.#views.forget(views);
    this.#remember(record);
  }

  dropTable(tableId: number, seq: Seq, views: readonly ViewEntry[]): void {
    const entry = defined(this.#byId.get(tableId), "a table that is dropped exists");
    const definitionIds = defined(this.#definitionIds.get(tableId), "a table has definitions");
    const record = defined(this.#records.get(tableId), "a table has a definition in force");
    const ended = { ...record, toSeq: seq };
    const before = this.#dropped.get(pathOf(entry));
    const outdated = definitionIds.filter((id) => id !== record.definitionId);
    if (before !== undefined) outdated.push(before.definitionId);
    // Others are for the caller: each takes up to 20 µs to read, and more to remove.
    const [files = []] = this.#files.portions({ tableId });
    const fileIds = files.map(({ fileId }) => fileId);
    const listed = this.#manifest.listedOf(tableId);
    this.#change(() => {
      this.#views.remove(views);
      this.#put(ended);
      for (const id of outdated) removeSealed(this.#file, "table_definitions", id);
      this.#files.storeWithout(fileIds);
      this.#manifest.remove(listed);
    }, seq);
    this.#views.forget(views);
    this.#files.forget(fileIds.length);
    this.#manifest.forget(listed);
    this.#byId.delete(tableId);
    this.#records.delete(tableId);
    this.#definitionIds.delete(tableId);
    this.#versions.delete(tableId);
    this.#opened.delete(tableId);
    this.#byName.get(entry.namespace)?.delete(entry.name);
    this.#dropped.set(pathOf(entry), ended);
    this.#sorted = undefined;
  }

  view(namespace: string, name: string): ViewEntry | undefined {
    return this.#views.named(namespace, name);
  }

  views(): readonly ViewEntry[] {
    return this.#views.all();
  }

  createView(entry: ViewEntry): void {
    this.#namespaceOrThrow(entry.namespace, `create view ${entry.name} in`);
    this.#refuseTaken(entry, "create");
    this.#change(() => {
      this.#counters.store("next_table_id", entry.viewId + 1);
      this.#views.put(entry);
    });
    this.#counters.raise("next_table_id", entry.viewId + 1);
    this.#nextTableId = Math.max(this.#nextTableId, entry.viewId + 1);
    this.#views.remember(entry);
  }

  changeView(entry: ViewEntry): void {
    assert(this.#views.has(entry.viewId), "a view that changes exists");
    this.#change(() => this.#views.put(entry));
    this.#views.remember(entry);
  }

  dropViews(entries: readonly ViewEntry[]): void {
    if (entries.length === 0) return;
    this.#change(() => this.#views.remove(entries));
    this.#views.forget(entries);
  }

  #putNamespace(entry: NamespaceEntry): void {
    this.#change(() => this.#storeNamespace(entry));
    this.#rememberNamespace(entry);
  }

  #storeNamespace(entry: NamespaceEntry): void {
    putSealed(this.#file, "namespaces", { key: entry.name, value: entry });
  }

  #rememberNamespace(entry: NamespaceEntry): void {
    this.#namespaces.set(entry.name, entry);
    this.#sortedNamespaces = undefined;
  }

  /** One durable transaction that moves the catalog version. */
  #change(work: () => void, seq = 0): void {
    const version = this.version + 1;
    const orphans = this.#orphans.slice(0, REMOVED_PER_CHANGE);
    this.#file.transaction(() => {
      work();
      for (const id of orphans) removeSealed(this.#file, "table_definitions", id);
      this.#counters.store("catalog_version", version);
      this.#counters.store("highest_seq", seq);
    });
    this.#orphans = this.#orphans.slice(orphans.length);
    this.#counters.raise("catalog_version", version);
    this.#counters.raise("highest_seq", seq);
  }

  #newRecord(entry: TableEntry, seq: Seq): DefinitionRecord {
    const definitionId = this.#counters.get("next_definition_id");
    return { definitionId, fromSeq: seq, table: jsonFromTable(entry) };
  }

  #put(record: DefinitionRecord): void {
    this.#counters.store("next_definition_id", record.definitionId + 1);
    putSealed(this.#file, "table_definitions", { key: record.definitionId, value: record });
  }

  #endDefinition(tableId: number, seq: Seq): void {
    const record = defined(this.#records.get(tableId), "a table has a definition in force");
    this.#put({ ...record, toSeq: seq });
  }

  /** Takes a definition of a table that is newer than all before it into memory. */
  #remember(record: DefinitionRecord): void {
    const entry = tableFromJson(record.table);
    this.#counters.raise("next_definition_id", record.definitionId + 1);
    this.#records.set(entry.tableId, record);
    const definitionIds = this.#definitionIds.get(entry.tableId) ?? [];
    this.#definitionIds.set(entry.tableId, [...definitionIds, record.definitionId]);
    const before = this.#byId.get(entry.tableId);
    if (before !== undefined) this.#byName.get(before.namespace)?.delete(before.name);
    if (before !== undefined && isOpened(before, entry)) {
      this.#opened.set(entry.tableId, record.fromSeq);
    }
    this.#byId.set(entry.tableId, entry);
    const names = this.#byName.get(entry.namespace) ?? new Map<string, TableEntry>();
    names.set(entry.name, entry);
    this.#byName.set(entry.namespace, names);
    const versions = this.#versions.get(entry.tableId) ?? [];
    // A change of options keeps the schema version: the newest definition stands for it.
    const same = versions.at(-1);
    const isSame = same?.table.schemaVersion === entry.schemaVersion;
    const fromSeq = isSame ? same.fromSeq : record.fromSeq;
    const earlier = isSame ? versions.slice(0, -1) : versions;
    this.#versions.set(entry.tableId, [...earlier, { fromSeq, table: entry }]);
    this.#sorted = undefined;
  }

  /** Takes a definition of a table that is gone. Returns those that nobody needs any more. */
  #noteDropped(record: DefinitionRecord): readonly number[] {
    const path = pathOf(record.table);
    const before = this.#dropped.get(path);
    if (before === undefined || (before.toSeq ?? 0) < (record.toSeq ?? 0)) {
      this.#dropped.set(path, record);
      return before === undefined ? [] : [before.definitionId];
    }
    return [record.definitionId];
  }

  /** Tables and views share names. */
  #refuseTaken({ name, namespace }: Named, action: "create" | "rename"): void {
    const taken = this.table(namespace, name) ?? this.view(namespace, name);
    if (taken === undefined) return;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot ${action} ${namespace}.${name}: it already exists`,
    );
  }

  #namespaceOrThrow(name: string, action: string): void {
    if (this.#namespaces.has(name)) return;
    throw new DatabaseError(
      "NAMESPACE_NOT_FOUND",
      `Cannot ${action} namespace ${name}: it does not exist`,
    );
  }
}

interface Named {
  readonly namespace: string;
  readonly name: string;
}

/** A schema of a table, and the seq from which it held. */
interface TableVersion {
  readonly fromSeq: number;
  readonly table: TableEntry;
}

/** One definition of a table, and the seqs between which it held. */
interface DefinitionRecord {
  readonly definitionId: number;
  /** Inclusive. */
  readonly fromSeq: number;
  /** Exclusive; absent for the definition in force. */
  readonly toSeq?: number;
  readonly table: TableJson;
}

interface TableJson extends Omit<TableEntry, "columns"> {
  readonly columns: readonly (Omit<TableEntry["columns"][number], "missing"> & {
    readonly missing: ValueJson;
  })[];
}

function jsonFromTable(entry: TableEntry): TableJson {
  return {
    ...entry,
    columns: entry.columns.map((column) => ({
      ...column,
      missing: jsonFromValue(column.missing),
    })),
  };
}

function tableFromJson(json: TableJson): TableEntry {
  return {
    ...json,
    columns: json.columns.map((column) => ({ ...column, missing: valueFromJson(column.missing) })),
  };
}

/** One text for each pair: either part may hold any character. */
function pathOf({ name, namespace }: Named): string {
  return JSON.stringify([namespace, name]);
}

function compareTables(left: TableEntry, right: TableEntry): number {
  if (left.namespace !== right.namespace) return left.namespace < right.namespace ? -1 : 1;
  return left.name < right.name ? -1 : 1;
}
