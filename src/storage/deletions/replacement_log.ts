/**
 * Replacements of the rows of a segment that came while it was merged, in order. A large commit
 * brings a million of them in one turn, so they are numbers in two lists and no object each.
 */
export class ReplacementLog {
  readonly #rows: number[] = [];
  readonly #seqs: number[] = [];

  get count(): number {
    return this.#rows.length;
  }

  /** @param seq Of the replacement; 0 when it was taken back. */
  note(row: number, seq: number): void {
    this.#rows.push(row);
    this.#seqs.push(seq);
  }

  /** Visits what was noted from an index (inclusive) to another (exclusive). */
  visit(from: number, to: number, visit: (row: number, seq: number) => void): void {
    for (let index = from; index < Math.min(to, this.count); index += 1) {
      visit(this.#rows[index] ?? 0, this.#seqs[index] ?? 0);
    }
  }
}
