/**
 * Follows the result of a maintained query for one subscriber.
 *
 *     (none) ──begin──► followed ──apply──► followed
 *        ▲                  │
 *        └── cannot follow ─┘
 *
 * A result begins with the rows of the seed, which is an ordinary statement. It begins again
 * whenever evaluating the seed costs less than following a change. Invariant: after all changes up
 * to a seq have been applied, the rows are those that the SELECT returns at that seq, including
 * duplicates.
 */
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { ReadGroup, RowChanges } from "./groups.ts";
import { isRefusal } from "./not_maintained.ts";
import { changesOfRows, type RowWindow } from "./row_window.ts";

/** Lets other work run if the time slice is over. Call it after each bounded piece of work. */
export type Pause = () => Promise<void>;

/** The kept state from which result rows are computed: groups, or the rows of a set operation. */
export interface KeptRows {
  /** The approximate memory of the state, in bytes. */
  readonly bytes: number;
  begin(seeds: readonly Row[], pause: Pause): Promise<readonly Row[]>;
  rows(): Iterable<Row>;
  /**
   * Applies changes to the joined rows. Returns the resulting changes to the result.
   * @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  apply(changes: JoinChanges, read: ReadGroup | undefined): RowChanges;
}

export interface MaintainedResultOptions {
  readonly groups: KeptRows | undefined;
  /** Computes the changed rows of a query without groups. */
  readonly rowsOf: (changes: JoinChanges) => RowChanges;
  /**
   * Computes rows in advance, in steps, so that `rowsOf` can use them; absent if `rowsOf` takes
   * little time.
   */
  readonly computeAhead?: FollowedPart["computeAhead"] | undefined;
  readonly window: RowWindow | undefined;
  /** Reads the tuples of a group at a seq; absent if only a scan finds them. */
  readonly readGroup: ((upTo: Seq) => ReadGroup) | undefined;
}

/** The approximate memory in bytes of a row that a window keeps beyond the result. */
const WINDOW_ROW_BYTES = 200;

/** A subscriber's share of a maintained query. */
export interface FollowedPart {
  /** The approximate memory, in bytes, of the state kept beyond the rows of the result. */
  readonly bytes: number;
  /** Initialises the state from the rows of the seed. Returns the rows of the result. */
  begin(seeds: readonly Row[], pause: Pause): Promise<readonly Row[]>;
  /**
   * Computes in advance, in steps, the data that the next `apply` of the same changes needs;
   * undefined if `apply` alone takes little time. No other state changes, so the result may start
   * again or be removed between two steps.
   */
  computeAhead(joined: JoinChanges): Generator<undefined, void> | undefined;
  /**
   * Applies changes to the joined rows to the result. Returns the resulting row changes; undefined
   * if the query must be evaluated again.
   */
  apply(joined: JoinChanges): RowChanges | undefined;
}

/** Returns the state of a maintained query that keeps no rows. All of its subscribers share it. */
export function partWithoutRows(rowsOf: MaintainedResultOptions["rowsOf"]): FollowedPart {
  return {
    bytes: 0,
    begin: (seeds) => Promise.resolve(seeds),
    computeAhead: () => undefined,
    apply: (joined) => unlessRefused(() => rowsOf(joined)),
  };
}

export class MaintainedResult implements FollowedPart {
  readonly #options: MaintainedResultOptions;
  #isFollowed = false;

  constructor(options: MaintainedResultOptions) {
    this.#options = options;
  }

  get bytes(): number {
    const { groups, window } = this.#options;
    return (groups?.bytes ?? 0) + (window?.rowCount ?? 0) * WINDOW_ROW_BYTES;
  }

  async begin(seeds: readonly Row[], pause: Pause): Promise<readonly Row[]> {
    const { groups, window } = this.#options;
    this.#isFollowed = false;
    const rows = groups === undefined ? seeds : await groups.begin(seeds, pause);
    this.#isFollowed = true;
    if (window === undefined) return rows;
    window.begin(rows);
    return window.shown;
  }

  computeAhead(joined: JoinChanges): Generator<undefined, void> | undefined {
    return this.#isFollowed ? this.#options.computeAhead?.(joined) : undefined;
  }

  apply(joined: JoinChanges): RowChanges | undefined {
    if (!this.#isFollowed) return undefined;
    this.#isFollowed = false;
    const changes = unlessRefused(() => this.#changesOf(joined));
    this.#isFollowed = changes !== undefined;
    return changes;
  }

  #changesOf(joined: JoinChanges): RowChanges | undefined {
    const { groups, readGroup, rowsOf, window } = this.#options;
    const changes =
      groups === undefined ? rowsOf(joined) : groups.apply(joined, readGroup?.(joined.upTo));
    if (window === undefined) return changes;
    const before = window.shown;
    window.apply(changes);
    if (window.isShort) {
      if (groups === undefined) return undefined;
      window.begin(groups.rows());
    }
    return changesOfRows(before, window.shown);
  }
}

/**
 * Runs a function that follows changes. Returns undefined if the changes cannot be followed; the
 * caller then evaluates the query again.
 */
function unlessRefused(follow: () => RowChanges | undefined): RowChanges | undefined {
  try {
    return follow();
  } catch (error) {
    if (isRefusal(error)) return undefined;
    throw error;
  }
}
