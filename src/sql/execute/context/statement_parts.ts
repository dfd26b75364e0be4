/**
 * Holds the state of a statement with changes in WITH, while its parts run one after another.
 *
 * All parts read the state before the statement. The changes of each part are therefore held back
 * until the last part has read its rows, and are staged only then.
 */
import type { WaitingSteps } from "../../../base/waiting_steps.ts";
import type { BoundRecursion } from "../../bind/bound.ts";
import type { MaterialisedRows } from "../materialised/materialised_rows.ts";

/** The changes made by one part of a statement, held back until all parts have read their rows. */
export interface HeldChanges {
  readonly rowCount: number;
  /** Stages the changes in steps of bounded length. */
  readonly staging: Generator<undefined, void>;
  /**
   * Checks foreign keys, carries out their actions and fires triggers. Called once all parts have
   * been staged.
   */
  follow(): WaitingSteps<void>;
}

export class StatementParts {
  /** The rows returned by the parts of the statement so far. */
  readonly rows: Map<BoundRecursion, MaterialisedRows> = new Map<
    BoundRecursion,
    MaterialisedRows
  >();
  readonly #held: HeldChanges[] = [];
  readonly #changed = new Set<string>();

  hold(changes: HeldChanges): void {
    this.#held.push(changes);
  }

  get held(): readonly HeldChanges[] {
    return this.#held;
  }

  /**
   * Records that a part changes a stored row. Returns false if another part has already changed
   * the row.
   */
  noteChanged(tableId: number, owner: number, keyText: string): boolean {
    const { size } = this.#changed;
    return this.#changed.add(`${tableId}/${owner}/${keyText}`).size > size;
  }
}
