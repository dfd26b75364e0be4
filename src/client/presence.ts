/**
 * Implements presence, which shows who is currently in a room.
 *
 *     heartbeats of a tab ──► its row in a STREAM table ──► live query ──► people
 *     a closed tab or a lost connection ──► no heartbeats ──► the row expires ──► gone
 *
 * Each tab has its own row, so a person stays as long as one of their tabs does. The heartbeats are
 * separate requests, so they continue while the live connection is reopened.
 *
 * Invariants: at most one heartbeat is in flight. After `leave`, no heartbeat follows, and no
 * handler is called.
 */
import {
  ANYTHING,
  type Call,
  FILLED_TEXT,
  type FieldRules,
  HANDLER,
  requireOptions,
  requireRule,
  type ValueRule,
} from "./checks.ts";
import type { WholeEnvironment } from "./environment.ts";
import { ServerError } from "./errors.ts";
import { guarded } from "./handlers.ts";
import type { LiveQuery } from "./live.ts";
import type { LiveOptions, LiveStatus } from "./live_options.ts";
import { type Duration, isPassing, msFromDuration } from "./repeats.ts";
import type { Session } from "./session.ts";
import type { Statements } from "./statements.ts";
import type { CellObject, Values } from "./values.ts";

/** A person who is in a room. */
export interface Person<State = unknown> {
  readonly person: string;
  /** The states published by each of the person's tabs. */
  readonly states: readonly State[];
}

export interface PresenceOptions<State = unknown> {
  /**
   * The name of the table, such as "chat.presence". The table must have the columns `room`, `tab`,
   * `person`, `state` and `beat`, as described in the client guide.
   */
  readonly table: string;
  /**
   * The state of this tab, as seen by other people in the room. It must be representable as JSON;
   * defaults to null.
   */
  readonly state?: State;
  /** Called with all people in the room as soon as they are known, and again after each change. */
  readonly onChange: (people: readonly Person<State>[]) => void;
  /**
   * Called when a heartbeat is refused, and not again until one has succeeded. Also called when
   * the live query ends with an error, which ends the presence. Without this handler, the error is
   * thrown in a separate tick.
   */
  readonly onError?: (error: ServerError) => void;
  /**
   * The interval between heartbeats; defaults to "2s". It should be at most a third of the table's
   * TTL_SECONDS.
   */
  readonly beat?: Duration;
}

export interface Presence<State = unknown> {
  /**
   * All people in the room, sorted by name. While the connection is lost, these are the people
   * last known to be there.
   */
  readonly people: readonly Person<State>[];
  /** The status of the live query that provides the list of people. */
  readonly status: LiveStatus;
  /** Immediately changes the state that others see. */
  set(state: State): void;
  /**
   * Leaves the room. Resolves once others can see that this tab has left, or if the server cannot
   * be reached.
   */
  leave(): Promise<void>;
}

const CALL: Call = {
  doing: "enter the room",
  example: 'presence("lobby", { table: "chat.presence", onChange: (people) => show(people) })',
};

/** Matches a table name that needs no quotes, optionally qualified by its namespace. */
const TABLE: ValueRule = {
  should: 'the name of a table, such as "chat.presence"',
  holds: (value) => typeof value === "string" && /^[a-z_]\w*(?:\.[a-z_]\w*)?$/i.test(value),
};

const RULES: FieldRules = {
  table: TABLE,
  state: ANYTHING,
  onChange: HANDLER,
  onError: HANDLER,
  // The duration is checked where it is parsed, with an error message of its own.
  beat: ANYTHING,
};

const BEAT: Duration = "2s";

/** The client functions that presence uses. */
export interface PresenceParts {
  readonly environment: WholeEnvironment;
  readonly statements: Pick<Statements, "execute">;
  readonly session: Pick<Session, "userId">;
  readonly values: Values;
  readonly live: (sql: string, options: LiveOptions) => LiveQuery;
}

/** The rooms in which a client is present. */
export class Rooms {
  readonly #parts: PresenceParts;
  readonly #entered = new Set<RoomPresence>();

  constructor(parts: PresenceParts) {
    this.#parts = parts;
  }

  /** Enters a room. @throws {TypeError} */
  enter(room: string, options: PresenceOptions): Presence {
    requireRule("the room", room, FILLED_TEXT);
    requireOptions(CALL, options, RULES);
    const { onChange, table } = options;
    requireRule("table", table, TABLE);
    requireRule("onChange", onChange, HANDLER);
    const presence = new RoomPresence(this.#parts, {
      room,
      options,
      beatMs: msFromDuration(options.beat ?? BEAT),
      onLeft: () => this.#entered.delete(presence),
    });
    this.#entered.add(presence);
    presence.begin();
    return presence;
  }

  leaveAll(): void {
    for (const presence of this.#entered) void presence.leave();
  }
}

interface RoomOptions {
  readonly room: string;
  readonly options: PresenceOptions;
  readonly beatMs: number;
  readonly onLeft: () => void;
}

class RoomPresence implements Presence {
  readonly #parts: PresenceParts;
  readonly #given: RoomOptions;
  readonly #tellError: (error: ServerError) => void;
  readonly #tellPeople: (people: readonly Person[]) => void;
  #live: LiveQuery | undefined;
  #people: readonly Person[] = [];
  #state: unknown;
  #tab: string;
  /** The user who owns this tab's row, once known. */
  #userId: string | undefined;
  #beatCount = 0;
  /** The heartbeat that has been sent but not answered yet. */
  #sending: Promise<void> | undefined;
  /** Whether the state has changed since the current heartbeat was sent. */
  #isBehind = false;
  #wasRefused = false;
  #hasLeft = false;
  #cancelNext: () => void = () => {};
  #cancelBack: () => void = () => {};

  constructor(parts: PresenceParts, given: RoomOptions) {
    const { onChange, onError, state } = given.options;
    this.#parts = parts;
    this.#given = given;
    this.#state = state;
    this.#tab = this.#newTab();
    this.#tellPeople = guarded(parts.environment, onChange);
    this.#tellError = guarded(parts.environment, (error) => {
      if (onError === undefined) throw error;
      onError(error);
    });
  }

  get people(): readonly Person[] {
    return this.#people;
  }

  get status(): LiveStatus {
    return this.#live?.status ?? "connecting";
  }

  begin(): void {
    const { options, room } = this.#given;
    // ORDER BY makes the query materialised, so a heartbeat that changes only `beat` causes no
    // message.
    const sql = `SELECT tab, person, state FROM ${options.table} WHERE room = $1 ORDER BY person, tab`;
    this.#live = this.#parts.live(sql, {
      params: [room],
      onRows: (rows) => this.#take(rows),
      onEvent: (event) => {
        if (event.type === "status" && event.status === "ended") void this.leave();
      },
      onError: this.#tellError,
    });
    // A page that becomes visible or online again sends a heartbeat immediately.
    this.#cancelBack = this.#parts.environment.whenBack?.(() => this.#beat()) ?? this.#cancelBack;
    this.#beat();
  }

  set(state: unknown): void {
    this.#state = state;
    this.#beat();
  }

  async leave(): Promise<void> {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#cancelNext();
    this.#cancelBack();
    this.#live?.close();
    this.#given.onLeft();
    await this.#sending;
    const { options, room } = this.#given;
    const sql = `DELETE FROM ${options.table} WHERE room = $1 AND tab = $2`;
    try {
      await this.#parts.statements.execute(sql, { params: [room, this.#tab] });
    } catch {
      // If the row cannot be deleted, it expires soon anyway.
    }
  }

  #take(rows: readonly CellObject[]): void {
    if (this.#hasLeft) return;
    const isText = this.#parts.values === "wire";
    const people = new Map<string, unknown[]>();
    for (const { person, state } of rows) {
      const states = people.get(String(person)) ?? [];
      people.set(String(person), states);
      states.push(isText && typeof state === "string" ? JSON.parse(state) : state);
    }
    this.#people = [...people].map(([person, states]) => ({ person, states }));
    this.#tellPeople(this.#people);
  }

  #beat(): void {
    if (this.#hasLeft) return;
    if (this.#sending !== undefined) {
      this.#isBehind = true;
      return;
    }
    this.#cancelNext();
    this.#isBehind = false;
    this.#sending = this.#send().finally(() => {
      this.#sending = undefined;
      if (this.#hasLeft) return;
      if (this.#isBehind) this.#beat();
      else {
        const { beatMs } = this.#given;
        this.#cancelNext = this.#parts.environment.after(beatMs, () => this.#beat());
      }
    });
  }

  async #send(): Promise<void> {
    const { options, room } = this.#given;
    const { session, statements } = this.#parts;
    // A new user needs a new row, because no user may change another user's row.
    if (this.#userId !== undefined && this.#userId !== session.userId) this.#tab = this.#newTab();
    this.#userId = session.userId;
    this.#beatCount += 1;
    const sql = `INSERT INTO ${options.table} (room, tab, state, beat) VALUES ($1, $2, $3, $4) ON CONFLICT (room, tab) DO UPDATE SET state = EXCLUDED.state, beat = EXCLUDED.beat`;
    const state = this.#state === undefined ? null : JSON.stringify(this.#state);
    try {
      await statements.execute(sql, { params: [room, this.#tab, state, this.#beatCount] });
      this.#wasRefused = false;
    } catch (error) {
      // A temporary failure is not reported, because the next heartbeat is another attempt.
      if (!(error instanceof ServerError) || isPassing(error) || this.#hasLeft) return;
      if (!this.#wasRefused) this.#tellError(error);
      this.#wasRefused = true;
    }
  }

  #newTab(): string {
    const { environment } = this.#parts;
    const numbers = [environment.random(), environment.random()];
    return numbers.map((each) => Math.floor(each * 2 ** 32).toString(36)).join("-");
  }
}
