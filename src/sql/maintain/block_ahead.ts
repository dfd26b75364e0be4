/**
 * Computes the rows of a block for one subscriber in advance, group by group, so that other work
 * can run in between. The result is still updated by the whole change at once.
 *
 *     changes ──computeAhead, in steps──► rows, kept ──rowsOf──► result
 *
 * Invariant: rows are kept only for the most recently computed changes, and only until they are
 * used.
 */
import { runToCompletion } from "../../base/steps.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { RowChanges } from "./groups.ts";
import type { KeyedBlock } from "./keyed_block.ts";
import { CannotFollow, isRefusal } from "./not_maintained.ts";
import type { StepContexts } from "./query_at.ts";

interface BlockAheadOptions {
  readonly newContexts: () => StepContexts;
  /** The partition whose changes affect the subscriber. */
  readonly partition: string;
}

export class BlockAhead {
  readonly #block: KeyedBlock;
  readonly #options: BlockAheadOptions;
  /**
   * The most recently computed rows and their changes. `rows` is undefined if the block cannot
   * follow the changes.
   */
  #last: { readonly joined: JoinChanges; readonly rows: RowChanges | undefined } | undefined;

  constructor(block: KeyedBlock, options: BlockAheadOptions) {
    this.#block = block;
    this.#options = options;
  }

  readonly computeAhead = (joined: JoinChanges): Generator<undefined, void> =>
    this.#compute(joined);

  *#compute(joined: JoinChanges): Generator<undefined, void> {
    try {
      this.#last = { joined, rows: yield* this.#steps(joined) };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // `rowsOf` then throws CannotFollow, and the query is evaluated again.
      this.#last = { joined, rows: undefined };
    }
  }

  /** Computes how the rows of the block change. @throws {CannotFollow} @throws {DatabaseError} */
  readonly rowsOf = (joined: JoinChanges): RowChanges => {
    const last = this.#last;
    this.#last = undefined;
    if (last?.joined !== joined) return runToCompletion(this.#steps(joined));
    if (last.rows === undefined) throw new CannotFollow();
    return last.rows;
  };

  *#steps(joined: JoinChanges): Generator<undefined, RowChanges> {
    const { newContexts, partition } = this.#options;
    const contexts = newContexts();
    const isWanted = (other: string): boolean => other === partition;
    try {
      return yield* this.#block.steps(joined, { contexts, isWanted });
    } finally {
      contexts.close();
    }
  }
}
