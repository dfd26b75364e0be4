/**
 * Finds the rows of live queries in another thread: a snapshot that passes by many rows for the few
 * that its filter keeps would hold the event loop for as long as a query does.
 *
 *     waiting for a turn ──► waiting for a reader ──► rows … end
 *              └───────────────────┴────────────────────┴──closed──► nothing more
 *
 * Thousands of clients may come back at once, and search for as long as the readers are there. So
 * few searches wait for a reader at a time, among the statements of their users, and the others
 * wait for one of these.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { putNewest } from "../../base/newest.ts";
import type { Batch } from "../../types/mod.ts";
import type { FoundRows, RowSearch, SearchRange } from "../common/engine.ts";
import { cancelRequest, newLedger, type RequestLedger } from "../execute/run/request_ledger.ts";
import type { BindingWorld } from "../prepare/binding_world.ts";
import {
  type LiveRowsQuery,
  type LiveRowsStatement,
  liveRowsStatement,
} from "../prepare/live_rows.ts";
import type { QueryReaders } from "./query_readers.ts";
import { READ_HERE, RowStream } from "./row_stream.ts";
import { type Asking, WaitingStatements } from "./waiting_statements.ts";

/** Searches that wait for a reader, or have one, at a time. */
const UNDER_WAY_MAX = 4;

/** Statements that are kept. */
const STATEMENTS_MAX = 32;

/** A search lasts as long as somebody wants its rows. */
const WITHOUT_END = { timeoutMs: 0, timeoutMsDefault: 0, timeoutMsMax: 0 };

export interface LiveSearchWorld extends BindingWorld {
  readonly clock: Clock;
}

interface SearchTurn {
  giveBack(): void;
}

/** The searches of all live queries. */
export class LiveSearches {
  readonly #world: LiveSearchWorld;
  readonly #readers: QueryReaders;
  readonly #waiting: WaitingStatements<SearchTurn>;
  /** The statements that were needed last: for rows, and for their seqs alone. */
  readonly #ofRows = new Map<LiveRowsQuery, LiveRowsStatement>();
  readonly #ofSeqs = new Map<LiveRowsQuery, LiveRowsStatement>();
  #underWayCount = 0;

  constructor(world: LiveSearchWorld, readers: QueryReaders) {
    this.#world = world;
    this.#readers = readers;
    this.#waiting = new WaitingStatements({
      clock: world.clock,
      hasMemory: () => true,
      placeFor: ({ userId }) => this.#turnFor(userId),
    });
  }

  /** The place where the rows of a live query are found. */
  searchFor(query: LiveRowsQuery): RowSearch {
    return new LiveSearch(this, query);
  }

  get takesAll(): boolean {
    return this.#readers.takesAll;
  }

  /** As {@linkcode RowSearch.begin}. */
  begin(query: LiveRowsQuery, range: SearchRange, onArrived: () => void): FoundRows | undefined {
    const statement = this.#statementOf(query, range.isOfSeqs);
    if (statement === undefined || !this.#readers.canRead(statement.prepared)) return undefined;
    const { clock } = this.#world;
    const ledger = newLedger(clock.monotonicMs(), WITHOUT_END);
    const open = (search: Search): Promise<RowStream | undefined> =>
      this.#open(search, { query, statement, range });
    return new Search(ledger, open, onArrived);
  }

  #statementOf(query: LiveRowsQuery, isOfSeqs: boolean): LiveRowsStatement | undefined {
    const statements = isOfSeqs ? this.#ofSeqs : this.#ofRows;
    const known = statements.get(query);
    if (known !== undefined) return known;
    const made = liveRowsStatement(this.#world, query, isOfSeqs);
    if (made !== undefined) putNewest(statements, [query, made], STATEMENTS_MAX);
    return made;
  }

  /** @throws {DatabaseError} @throws {CorruptionError} */
  async #open(search: Search, { query, range, statement }: Sought): Promise<RowStream | undefined> {
    const { ledger } = search;
    const { namespace, principal } = query;
    const { node, prepared, slots, types } = statement;
    const asking: Asking = { userId: principal.userId, prepared, ledger };
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
        nowMicros: this.#world.clock.nowMs() * 1000,
        staged: undefined,
        ledger,
      });
    } finally {
      place.giveBack();
    }
  }

  /** Returns undefined while a search has to wait. */
  #turnFor(userId: string): SearchTurn | undefined {
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

/** One for each plan, most of which are never searched. */
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

interface Sought {
  readonly query: LiveRowsQuery;
  readonly statement: LiveRowsStatement;
  readonly range: SearchRange;
}

/** The state to which `next` has come. */
type Arrived = { readonly rows: Batch | "refused" | undefined } | { readonly error: unknown };

class Search implements FoundRows {
  readonly ledger: RequestLedger;
  readonly #open: (search: Search) => Promise<RowStream | undefined>;
  readonly #onArrived: () => void;
  #turn: SearchTurn | undefined;
  #stream: RowStream | undefined;
  #arrived: Arrived | undefined;
  #isAsking = false;
  #isClosed = false;

  constructor(
    ledger: RequestLedger,
    open: (search: Search) => Promise<RowStream | undefined>,
    onArrived: () => void,
  ) {
    this.ledger = ledger;
    this.#open = open;
    this.#onArrived = onArrived;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Takes a turn over, which is given back at the end. */
  adopt(turn: SearchTurn): void {
    this.#turn = turn;
    if (this.#isClosed) turn.giveBack();
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
    this.#turn?.giveBack();
  }

  async #ask(): Promise<void> {
    this.#isAsking = true;
    this.#arrived = await this.#next();
    this.#isAsking = false;
    if (!this.#isClosed) this.#onArrived();
  }

  async #next(): Promise<Arrived> {
    try {
      this.#stream ??= await this.#open(this);
      const batch = this.#stream === undefined ? "refused" : await this.#stream.next();
      if (batch === undefined || batch === "refused") this.#turn?.giveBack();
      return { rows: batch };
    } catch (error) {
      this.#turn?.giveBack();
      return isRefusal(error) ? { rows: "refused" } : { error };
    }
  }
}

/** Whether rows have to be read on the event loop: no reader can, or too many searches wait. */
function isRefusal(error: unknown): boolean {
  if (error === READ_HERE) return true;
  return error instanceof DatabaseError && error.condition === "LIMIT_EXCEEDED";
}
