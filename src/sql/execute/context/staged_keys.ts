/**
 * Looks up a transaction's staged rows by their keys in unique indexes. The map for an index is
 * created when it is first needed, and is updated with every later change.
 */
import type { DataType, Row } from "../../../types/mod.ts";
import { keyTextOf } from "../keys/key_text.ts";
import type { StagedRow } from "./transaction.ts";

/** The keys of an index, and the types of their values. */
export interface StagedIndex {
  readonly id: number;
  readonly types: readonly DataType[];
  /** Returns the index key of a row; undefined if the key equals no other key. */
  readonly keyOf: (row: Row) => Row | undefined;
}

/** The staged rows with each key of an index. */
interface KnownKeys {
  readonly index: StagedIndex;
  readonly holders: Map<string, string[]>;
}

export class StagedKeys {
  readonly #maps = new Map<number, KnownKeys>();

  /**
   * Returns the primary keys, as text, of the staged rows that have the given index key. Several
   * rows may have the same key, but only while a statement that exchanges keys is staging its
   * rows.
   *
   * @param rows All staged rows of the owner, keyed by primary key text.
   */
  holdersOf(
    index: StagedIndex,
    keyText: string,
    rows: ReadonlyMap<string, StagedRow>,
  ): readonly string[] {
    let known = this.#maps.get(index.id);
    if (known === undefined) {
      known = { index, holders: new Map() };
      this.#maps.set(index.id, known);
      for (const [primary, staged] of rows) add(known, primary, staged);
    }
    return known.holders.get(keyText) ?? [];
  }

  /** Updates the maps of index keys after a change to a staged row. */
  note(primary: string, before: StagedRow | undefined, staged: StagedRow): void {
    for (const known of this.#maps.values()) {
      const text = before === undefined ? undefined : textOf(known.index, before);
      const holders = text === undefined ? [] : (known.holders.get(text) ?? []);
      const place = holders.indexOf(primary);
      if (place !== -1) holders.splice(place, 1);
      add(known, primary, staged);
    }
  }
}

function add({ holders, index }: KnownKeys, primary: string, staged: StagedRow): void {
  const text = textOf(index, staged);
  if (text === undefined) return;
  const known = holders.get(text);
  if (known === undefined) holders.set(text, [primary]);
  else known.push(primary);
}

/** Returns the index key of a live row as text; undefined if the key equals no other key. */
function textOf({ keyOf, types }: StagedIndex, staged: StagedRow): string | undefined {
  const key = staged.isDeleted ? undefined : keyOf(staged.row);
  return key === undefined ? undefined : keyTextOf(types, key);
}
