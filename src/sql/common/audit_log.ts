/**
 * Who did what: `system.audit_log`, in a table of the store's own, so that it is as durable as
 * rows.
 *
 *     event ──► its ring's next place ──apply──► replaces the oldest event of that ring
 *
 * - It is bounded: there are two rings of places, and a full one forgets its oldest. What anybody
 *   can cause by trying, such as logins and statements that are refused, has a ring of its own, so
 *   that it crowds out no change.
 * - Whoever makes a change waits until its event is durable. Logins and statements in another's
 *   name do not wait, so that a crash may lose those of its last milliseconds.
 * - An event that cannot be written goes to the log of the server, and what it is about goes on: a
 *   full disk must not keep anybody from dropping a table, nor a damaged one anybody from logging
 *   in.
 * - An event's id is its `_seq`.
 */
import type { AuditEvent } from "../../auth/mod.ts";
import { type Clock, HOUR_MS } from "../../base/clock.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { Seq } from "../../base/seq.ts";
import {
  SEQ_COLUMN_ID,
  SHARED_OWNER,
  type Store,
  type TableDefinition,
  type TableWrite,
} from "../../storage/mod.ts";
import { BIGINT, type Row, TEXT, valueAt } from "../../types/mod.ts";

/** No table of a catalog ever gets this id: those count up from 1. */
const TABLE_ID = 0xffff_fffe;

const PLACE = 1;
const AT_MS = 2;
const ACTOR = 3;
const ACTION = 4;
const TARGET = 5;
const OUTCOME = 6;
const DETAILS = 7;
const ADDRESS = 8;
const SUBJECT = 9;
const COLUMN_IDS: readonly number[] = [
  PLACE,
  AT_MS,
  ACTOR,
  ACTION,
  TARGET,
  OUTCOME,
  DETAILS,
  ADDRESS,
  SUBJECT,
];

/** Events of a ring. Reading both is one turn of the event loop. */
export const AUDIT_RING_EVENTS = 20_000;

/** Longer names are cut: some are whatever a stranger wrote. */
const NAME_LENGTH_MAX = 300;

/**
 * The same where rows are so short: three names in any script fit the lowest limit there may be.
 */
const BRIEF_NAME_LENGTH_MAX = 60;

/** What happens often; all other actions change something, unless they fail. */
const ACCESS: ReadonlySet<string> = new Set(["login", "logout", "execute as"]);

/** The table of the events as a check of its files needs it. */
export const AUDIT_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.audit_log",
};

function textColumn(columnId: number, name: string): TableDefinition["columns"][number] {
  return { columnId, name, type: TEXT, missing: null };
}

/** The table of the events, which no catalog knows. */
export function auditTable(): TableDefinition {
  return {
    ...AUDIT_TABLE,
    columns: [
      { columnId: PLACE, name: "place", type: BIGINT, missing: null },
      { columnId: AT_MS, name: "at_ms", type: BIGINT, missing: null },
      textColumn(ACTOR, "actor"),
      textColumn(ACTION, "action"),
      textColumn(TARGET, "target"),
      textColumn(OUTCOME, "outcome"),
      textColumn(DETAILS, "details"),
      textColumn(ADDRESS, "address"),
      textColumn(SUBJECT, "subject"),
    ],
    keyColumnIds: [PLACE],
    flush: { rowsMax: 10_000, ageMsMax: HOUR_MS },
    historyMs: HOUR_MS,
  };
}

/** Takes events, and gives them back as the rows of the view. */
export class AuditLog {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  /** The next place of each ring; unknown until the first event. */
  #next: [changes: number, access: number] | undefined;

  constructor({ clock, log, store }: { store: Store; clock: Clock; log: Log }) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /** Notes an event; resolves when it is durable, or was given to the server's log instead. */
  async note(event: AuditEvent): Promise<void> {
    try {
      await this.#store.durable(this.#apply(event));
    } catch (error) {
      if (!isExpected(error)) throw error;
      const { action, actor, outcome, target } = event;
      const told = { actor, action, target, outcome, error: error.message };
      this.#log.error("an event is missing in system.audit_log", told);
    }
  }

  /** All events, the oldest first. @throws {DatabaseError} DATA_DAMAGED */
  rows(): Row[] {
    const found: Row[] = [];
    const { visibleSeq } = this.#store;
    for (const [seq, , at, actor, action, target, outcome, details, address, subject] of this.#read(
      visibleSeq,
      [SEQ_COLUMN_ID, ...COLUMN_IDS],
    )) {
      const texts = [actor, action, target, outcome, details, address, subject];
      found.push([seq ?? null, Number(at) * 1000, ...texts.map((text) => text ?? null)]);
    }
    return found;
  }

  #apply(event: AuditEvent): Seq {
    try {
      return this.#store.apply({ writes: [this.#write(event)], usesReserve: true }).lastSeq;
    } catch (error) {
      // Where rows are to be short, a long statement must not go unseen.
      if (!(error instanceof DatabaseError && error.condition === "ROW_TOO_LARGE")) throw error;
      const writes = [this.#write(briefly(event))];
      return this.#store.apply({ writes, usesReserve: true }).lastSeq;
    }
  }

  *#read(upTo: Seq, columnIds: readonly number[]): Generator<Row> {
    const scan = this.#store.scan(TABLE_ID, { owner: SHARED_OWNER, upTo, columnIds });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        for (let i = 0; i < batch.rowCount; i += 1) {
          yield batch.columns.map((column) => valueAt(column, i));
        }
      }
    } finally {
      scan.close();
    }
  }

  #write({ action, actor, address, details, outcome, subject, target }: AuditEvent): TableWrite {
    const isChange = outcome === "ok" && !ACCESS.has(action);
    const place = this.#takePlace(isChange ? 0 : 1);
    const row: Row = [
      place,
      this.#clock.nowMs(),
      actor.slice(0, NAME_LENGTH_MAX),
      action,
      target.slice(0, NAME_LENGTH_MAX),
      outcome,
      details === undefined ? null : JSON.stringify(details),
      address ?? null,
      subject?.slice(0, NAME_LENGTH_MAX) ?? null,
    ];
    const upTo = this.#store.appliedSeq;
    const options = { owner: SHARED_OWNER, key: [place], upTo, columnIds: [PLACE] };
    const isTaken = this.#store.lookup(TABLE_ID, options) !== undefined;
    const operation = isTaken ? "update" : "insert";
    return { tableId: TABLE_ID, owner: SHARED_OWNER, operation, rows: [row] };
  }

  #takePlace(ring: 0 | 1): number {
    this.#next ??= this.#findNext();
    const place = this.#next[ring];
    this.#next[ring] = (place + 1) % AUDIT_RING_EVENTS;
    return place + ring * AUDIT_RING_EVENTS;
  }

  /** The places behind the newest events: rows come in the order of their seqs. */
  #findNext(): [number, number] {
    const next: [number, number] = [0, 0];
    for (const [place] of this.#read(this.#store.appliedSeq, [PLACE])) {
      const ring = Number(place) < AUDIT_RING_EVENTS ? 0 : 1;
      next[ring] = (Number(place) + 1) % AUDIT_RING_EVENTS;
    }
    return next;
  }
}

/** Without what it says beside the names, and with those cut short. */
function briefly({ action, actor, address, outcome, subject, target }: AuditEvent): AuditEvent {
  const event = { action, actor: shortened(actor), target: shortened(target), outcome, address };
  return subject === undefined ? event : { ...event, subject: shortened(subject) };
}

function shortened(name: string): string {
  return name.slice(0, BRIEF_NAME_LENGTH_MAX);
}
