/**
 * Computes the rows of a block for one subscriber, one group after the other, so that other work
 * runs in between. The result still follows the change in a single step.
 *
 *     changes ──computeAhead, in steps──► rows, kept ──rowsOf──► result
 *
 * Invariant: rows are kept for the changes that were computed last, and until they are used.
 */
import { DatabaseError } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { RowChanges } from "./groups.ts";
import type { KeyedBlock } from "./keyed_block.ts";
import { CannotFollow } from "./not_maintained.ts";
import type { StepContexts } from "./query_at.ts";

interface BlockAheadOptions {
  readonly newContexts: () => StepContexts;
  /** The partition whose changes affect the subscriber. */
  readonly partition: string;
}

export class BlockAhead {
  readonly #block: KeyedBlock;
  readonly #options: BlockAheadOptions;
  /** The rows of the changes that were computed last; undefined if the block refused them. */
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
      if (!(error instanceof CannotFollow || error instanceof DatabaseError)) throw error;
      // A refusal here has the same effect as any other: the result is evaluated again.
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
