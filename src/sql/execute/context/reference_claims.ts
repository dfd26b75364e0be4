/**
 * Collects the parent keys on which a change depends, and the keys that it removes. Both are
 * checked again at the commit.
 */

/** A table and key that foreign keys reference, for one owner. */
export interface ClaimPlace {
  readonly tableId: number;
  /** The columns of the referenced primary key or unique index, in the order of the key. */
  readonly columnIds: readonly number[];
  readonly owner: number;
}

/** Keys of one table, all for the same owner. */
export interface Claim extends ClaimPlace {
  readonly keyTexts: ReadonlySet<string>;
}

/** The number of claims at a point to which a transaction can return. */
export type ClaimsMark = number;

export class ReferenceClaims {
  readonly #needed = new ClaimedKeys(() => this.#added);
  readonly #removed = new ClaimedKeys(() => this.#added);
  /**
   * Functions that undo the claims made since the first mark, oldest first; undefined if there is
   * no mark.
   */
  #added: (() => void)[] | undefined;

  /** Starts recording claims, so that `returnTo` can undo them. */
  mark(): ClaimsMark {
    this.#added ??= [];
    return this.#added.length;
  }

  /** Undoes the claims made since a mark. */
  returnTo(mark: ClaimsMark): void {
    for (const undo of this.#added?.splice(mark) ?? []) undo();
  }

  /** Stops recording claims, because no mark is left. */
  forgetMarks(): void {
    this.#added = undefined;
  }

  get isEmpty(): boolean {
    return this.#needed.isEmpty && this.#removed.isEmpty;
  }

  /** Records that a written row references the given key. */
  need(place: ClaimPlace, keyText: string): void {
    this.#needed.add(place, keyText);
  }

  /** Records that the row with the given key is deleted or gets a different key. */
  remove(place: ClaimPlace, keyText: string): void {
    this.#removed.add(place, keyText);
  }

  /** Discards the claims on a table that the transaction has dropped. */
  dropTable(tableId: number): void {
    this.#needed.dropTable(tableId);
    this.#removed.dropTable(tableId);
  }

  needed(): Iterable<Claim> {
    return this.#needed.all();
  }

  removed(): Iterable<Claim> {
    return this.#removed.all();
  }
}

class ClaimedKeys {
  readonly #undos: () => (() => void)[] | undefined;
  readonly #byPlace = new Map<string, ClaimPlace & { readonly keyTexts: Set<string> }>();

  /**
   * Creates an empty set of claims.
   * @param undos Returns the list that receives a function to undo each addition; undefined if
   *   there is no mark.
   */
  constructor(undos: () => (() => void)[] | undefined) {
    this.#undos = undos;
  }

  get isEmpty(): boolean {
    return this.#byPlace.size === 0;
  }

  add({ columnIds, owner, tableId }: ClaimPlace, keyText: string): void {
    const name = `${tableId}/${owner}/${columnIds.join()}`;
    let claim = this.#byPlace.get(name);
    if (claim === undefined) {
      claim = { tableId, columnIds, owner, keyTexts: new Set() };
      this.#byPlace.set(name, claim);
    }
    const { keyTexts } = claim;
    if (keyTexts.has(keyText)) return;
    keyTexts.add(keyText);
    this.#undos()?.push(() => void keyTexts.delete(keyText));
  }

  dropTable(tableId: number): void {
    for (const [name, claim] of this.#byPlace) {
      if (claim.tableId !== tableId) continue;
      this.#byPlace.delete(name);
      this.#undos()?.push(() => void this.#byPlace.set(name, claim));
    }
  }

  all(): Iterable<Claim> {
    return this.#byPlace.values();
  }
}
