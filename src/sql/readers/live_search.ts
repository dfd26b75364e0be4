/**
 * Finds the rows of live queries in another thread. If only a few of many rows match the filter, a
 * snapshot would occupy the event loop for as long as an ordinary query.
 *
 *     waiting for a permit ──► waiting for a reader ──► rows … end
 *              └───────────────────┴────────────────────┴──closed──► nothing more
 *
 * When thousands of clients reconnect at once, their searches could occupy every reader.
 * Therefore, only a few searches at a time may wait for a reader, in the same queue as the
 * statements of their users. All other searches wait for a permit.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { putNewest } from "../../base/newest.ts";
import type { Batch } from "../../types/mod.ts";
import { cancelRequest, newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { FoundRows, RowSearch, SearchRange } from "../ports/engine.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import {
  type LiveRowsQuery,
  type LiveRowsStatement,
  liveRowsStatement,
} from "../prepare/live_rows.ts";
import { OwnObjectCalls } from "../prepare/object_calls.ts";
import type { QueryReaders } from "./query_readers.ts";
import { READ_HERE, RowStream } from "./row_stream.ts";
import { type PlaceRequest, WaitingStatements } from "./waiting_statements.ts";

/** The maximum number of searches that occupy a reader or wait for one. */
const UNDER_WAY_MAX = 4;

/** The maximum number of cached search statements. */
const STATEMENTS_MAX = 32;

/** Searches have no time limit, because a search may last as long as its rows are needed. */
const WITHOUT_END = { timeoutMs: 0, timeoutMsDefault: 0, timeoutMsMax: 0 };

export interface LiveSearchDeps extends BindingDeps {
  readonly clock: Clock;
}

interface SearchPermit {
  giveBack(): void;
}

/** Manages the searches of all live queries. */
export class LiveSearches {
  readonly #deps: LiveSearchDeps;
  readonly #readers: QueryReaders;
  readonly #waiting: WaitingStatements<SearchPermit>;
  /**
   * The most recently used search statements that yield rows. The statements that yield only seqs
   * are cached separately.
   */
  readonly #ofRows = new Map<LiveRowsQuery, LiveRowsStatement>();
  readonly #ofSeqs = new Map<LiveRowsQuery, LiveRowsStatement>();
  #underWayCount = 0;

  constructor(deps: LiveSearchDeps, readers: QueryReaders) {
    this.#deps = deps;
    this.#readers = readers;
    this.#waiting = new WaitingStatements({
      clock: deps.clock,
      hasMemory: () => true,
      placeFor: ({ userId }) => this.#permitFor(userId),
    });
  }

  /** Returns the object that searches for the rows of a live query. */
  searchFor(query: LiveRowsQuery): RowSearch {
    return new LiveSearch(this, query);
  }

  get takesAll(): boolean {
    return this.#readers.takesAll;
  }

  /** Begins a search; see {@linkcode RowSearch.begin}. */
  begin(query: LiveRowsQuery, range: SearchRange, onArrived: () => void): FoundRows | undefined {
    const statement = this.#statementOf(query, range.isOfSeqs);
    if (statement === undefined || !this.#readers.canRead(statement.prepared)) return undefined;
    const { clock } = this.#deps;
    const ledger = newLedger(clock.monotonicMs(), WITHOUT_END);
    const open = (search: ReaderSearch): Promise<RowStream | undefined> =>
      this.#open(search, { query, statement, range });
    return new ReaderSearch(ledger, open, onArrived);
  }

  #statementOf(query: LiveRowsQuery, isOfSeqs: boolean): LiveRowsStatement | undefined {
    const statements = isOfSeqs ? this.#ofSeqs : this.#ofRows;
    const known = statements.get(query);
    if (known !== undefined) return known;
    const made = liveRowsStatement(this.#deps, query, isOfSeqs);
    if (made !== undefined) putNewest(statements, [query, made], STATEMENTS_MAX);
    return made;
  }

  /** Begins a search in a reader. @throws {DatabaseError} @throws {CorruptionError} */
  async #open(
    search: ReaderSearch,
    { query, range, statement }: SearchedQuery,
  ): Promise<RowStream | undefined> {
    const { ledger } = search;
    const { namespace, principal } = query;
    const { node, prepared, slots, types } = statement;
    const asking: PlaceRequest = { userId: principal.userId, prepared, ledger };
    search.adopt(await this.#waiting.place(asking));
    const place = await this.#readers.place(asking);
    try {
      if (search.isClosed) return undefined;
      return RowStream.begin(place, {
        prepared,
        source: () => ({ node, types }),
        slots: [...slots, range.after, range.rowsMax],
        principal,
        namespace,
        snapshotSeq: range.upTo,
        pastSeqs: () => [],
        nowMicros: this.#deps.clock.nowMs() * 1000,
        staged: undefined,
        sequences: undefined,
        objects: new OwnObjectCalls({ catalog: this.#deps.catalog, namespace, principal }),
        settings: undefined,
        ledger,
      });
    } finally {
      place.giveBack();
    }
  }

  /** Returns a permit for a search; undefined if the search has to wait. */
  #permitFor(userId: string): SearchPermit | undefined {
    if (this.#underWayCount === UNDER_WAY_MAX) return undefined;
    this.#underWayCount += 1;
    this.#waiting.noteTaken(userId);
    let isHeld = true;
    const giveBack = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#underWayCount -= 1;
      this.#waiting.noteGivenBack(userId);
    };
    return { giveBack };
  }
}

/** Searches for the rows of a single live plan. Most plans are never searched. */
class LiveSearch implements RowSearch {
  readonly #searches: LiveSearches;
  readonly #query: LiveRowsQuery;

  constructor(searches: LiveSearches, query: LiveRowsQuery) {
    this.#searches = searches;
    this.#query = query;
  }

  get takesAll(): boolean {
    return this.#searches.takesAll;
  }

  begin(range: SearchRange, onArrived: () => void): FoundRows | undefined {
    return this.#searches.begin(this.#query, range, onArrived);
  }
}

interface SearchedQuery {
  readonly query: LiveRowsQuery;
  readonly statement: LiveRowsStatement;
  readonly range: SearchRange;
}

/** The latest result of a search in a reader: rows, the end, a refusal, or an error. */
type SearchState = { readonly rows: Batch | "refused" | undefined } | { readonly error: unknown };

class ReaderSearch implements FoundRows {
  readonly ledger: RequestLedger;
  readonly #open: (search: ReaderSearch) => Promise<RowStream | undefined>;
  readonly #onArrived: () => void;
  #permit: SearchPermit | undefined;
  #stream: RowStream | undefined;
  #arrived: SearchState | undefined;
  #isAsking = false;
  #isClosed = false;

  constructor(
    ledger: RequestLedger,
    open: (search: ReaderSearch) => Promise<RowStream | undefined>,
    onArrived: () => void,
  ) {
    this.ledger = ledger;
    this.#open = open;
    this.#onArrived = onArrived;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Gives this search a permit, which the search returns when it ends. */
  adopt(permit: SearchPermit): void {
    this.#permit = permit;
    if (this.#isClosed) permit.giveBack();
  }

  next(): Batch | "waiting" | "refused" | undefined {
    const arrived = this.#arrived;
    if (arrived === undefined) {
      if (!this.#isAsking) void this.#ask();
      return "waiting";
    }
    this.#arrived = undefined;
    if ("error" in arrived) throw arrived.error;
    return arrived.rows;
  }

  close(): void {
    this.#isClosed = true;
    cancelRequest(this.ledger, "kill");
    this.#stream?.close();
    this.#permit?.giveBack();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    this.#arrived = await this.#next();
    this.#isAsking = false;
    if (!this.#isClosed) this.#onArrived();
  }

  async #next(): Promise<SearchState> {
    try {
      this.#stream ??= await this.#open(this);
      const batch = this.#stream === undefined ? "refused" : await this.#stream.next();
      if (batch === undefined || batch === "refused") this.#permit?.giveBack();
      return { rows: batch };
    } catch (error) {
      this.#permit?.giveBack();
      return isRefusal(error) ? { rows: "refused" } : { error };
    }
  }
}

/**
 * Whether an error means that the event loop has to read the rows, because no reader can read them
 * or too many searches are waiting.
 */
function isRefusal(error: unknown): boolean {
  if (error === READ_HERE) return true;
  return error instanceof DatabaseError && error.code === "LIMIT_EXCEEDED";
}
