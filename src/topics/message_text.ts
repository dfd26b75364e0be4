/**
 * Writes row versions as message payloads: JSON text in which cells have their wire form.
 *
 *     key    {"<key column>": …}
 *     full   {"<column>": …, "_seq": n, "_deleted": false, "_table": "ns.t"}
 *     diff   {"<key column>": …, "_seq": n, "_deleted": false, "_table": "ns.t",
 *             "changed": {"<column>": {"old": …, "new": …}}}
 */
import type { TableEntry, TopicPayload } from "../catalog/mod.ts";
import { cellMakerFor, type Value } from "../types/mod.ts";

interface Column {
  /** The column's name as a JSON string, followed by a colon. */
  readonly start: string;
  readonly toCell: (value: Value) => unknown;
}

/** The position of a row within a batch of columns. */
export interface RowPlace {
  readonly columns: readonly (readonly Value[])[];
  readonly row: number;
}

export interface WrittenVersion extends RowPlace {
  readonly seq: number;
  readonly isDeleted: boolean;
  /** The row version that was replaced; undefined for an insert. */
  readonly old: RowPlace | undefined;
}

/** Writes the messages for one table, using its current columns. */
export class MessageText {
  readonly columnIds: readonly number[];
  readonly #columns: readonly Column[];
  /** Indexes of the key columns, in the order of the key. */
  readonly #keyIndexes: readonly number[];
  readonly #tableText: string;

  constructor({ columns, name, namespace, primaryKey }: TableEntry) {
    this.columnIds = columns.map(({ columnId }) => columnId);
    this.#columns = columns.map((column) => ({
      start: `${JSON.stringify(column.name)}:`,
      toCell: cellMakerFor(column.type),
    }));
    this.#keyIndexes = primaryKey.map((columnId) => this.columnIds.indexOf(columnId));
    this.#tableText = `"_table":${JSON.stringify(`${namespace}.${name}`)}`;
  }

  /** Returns the primary key of a row as text; null if the table has no primary key. */
  keyOf(place: RowPlace): string | null {
    const [first, second] = this.#keyIndexes;
    if (first === undefined) return null;
    if (second !== undefined) return `{${this.#keyCells(place).join(",")}}`;
    const cell = this.#cell(first, place);
    return typeof cell === "string" ? cell : JSON.stringify(cell);
  }

  payloadOf(mode: TopicPayload, version: WrittenVersion): string {
    switch (mode) {
      case "key":
        return `{${this.#keyCells(version).join(",")}}`;
      case "full":
        return this.#full(version);
      case "diff":
        return this.#diff(version);
    }
  }

  #full(version: WrittenVersion): string {
    let text = "{";
    const columns = this.#columns;
    for (let index = 0; index < columns.length; index += 1) {
      text += `${columns[index]?.start ?? ""}${JSON.stringify(this.#cell(index, version))},`;
    }
    return `${text}${this.#ending(version)}}`;
  }

  #diff(version: WrittenVersion): string {
    const changed: string[] = [];
    const { isDeleted, old } = version;
    const before = isDeleted ? version : old;
    const after = isDeleted ? undefined : version;
    for (let index = 0; index < this.#columns.length; index += 1) {
      const from = before === undefined ? "null" : JSON.stringify(this.#cell(index, before));
      const to = after === undefined ? "null" : JSON.stringify(this.#cell(index, after));
      if (from === to) continue;
      changed.push(`${this.#columns[index]?.start ?? ""}{"old":${from},"new":${to}}`);
    }
    const keys = this.#keyCells(version).map((cell) => `${cell},`);
    return `{${keys.join("")}${this.#ending(version)},"changed":{${changed.join(",")}}}`;
  }

  #ending({ isDeleted, seq }: WrittenVersion): string {
    return `"_seq":${seq},"_deleted":${isDeleted ? "true" : "false"},${this.#tableText}`;
  }

  #keyCells(place: RowPlace): string[] {
    return this.#keyIndexes.map(
      (index) => `${this.#columns[index]?.start ?? ""}${JSON.stringify(this.#cell(index, place))}`,
    );
  }

  #cell(index: number, { columns, row }: RowPlace): unknown {
    const value = columns[index]?.[row] ?? null;
    return value === null ? null : this.#columns[index]?.toCell(value);
  }
}
