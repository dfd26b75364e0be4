/**
 * Keeps the audit log `system.audit_log` in an internal table of the store, so that it is as
 * durable as rows.
 *
 *     event ──► next position in its ring ──apply──► replaces the oldest event of that ring
 *
 * - The log is bounded: there are two rings, and a full ring overwrites its oldest event. Events
 *   that anyone can trigger at will, such as logins and refused statements, have a separate ring,
 *   so that they cannot displace changes.
 * - A change waits until its event is durable. Logins and statements run in another user's name do
 *   not wait, so a crash may lose the events of the last few milliseconds.
 * - If an event cannot be written, it goes to the server's log, and the audited action continues:
 *   a full disk must not prevent users from dropping tables, and a damaged table must not prevent
 *   them from logging in.
 * - The id of an event is its `_seq`.
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

/**
 * The id of the internal table. Ids in the catalog count up from 1, so no other table has this id.
 */
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

/**
 * The number of events in each ring. It is small enough that both rings can be read in one tick of
 * the event loop.
 */
export const AUDIT_RING_EVENTS = 20_000;

/**
 * The maximum length of a name in an event. Longer names are truncated, because clients that have
 * not logged in can choose some of them.
 */
const NAME_LENGTH_MAX = 300;

/**
 * The maximum length of a name in an event when the row size limit is low. Three names of this
 * length fit within even the lowest possible limit, whatever script they are written in.
 */
const BRIEF_NAME_LENGTH_MAX = 60;

/** Frequent audited actions that change nothing. All other actions count as changes. */
const ACCESS: ReadonlySet<string> = new Set(["login", "logout", "execute as"]);

/** The id and name of the internal table, for checking its files. */
export const AUDIT_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.audit_log",
};

function textColumn(columnId: number, name: string): TableDefinition["columns"][number] {
  return { columnId, name, type: TEXT, missing: null };
}

/** Returns the definition of the audit log's table, which is not in the catalog. */
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

/** Writes audit events, and returns them as rows for the view `system.audit_log`. */
export class AuditLog {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #log: Log;
  /** The position of the next event in each ring; undefined until the first event. */
  #next: [changes: number, access: number] | undefined;

  constructor({ clock, log, store }: { store: Store; clock: Clock; log: Log }) {
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Writes an audit event. Resolves when the event is durable, or has gone to the server's log
   * instead.
   */
  async note(event: AuditEvent): Promise<void> {
    try {
      await this.#store.durable(this.#apply(event));
    } catch (error) {
      if (!isExpected(error)) throw error;
      const { action, actor, outcome, target } = event;
      const told = { actor, action, target, outcome, error: error.message };
      this.#log.error("an event is missing from system.audit_log", told);
    }
  }

  /** Returns all audit events, oldest first. @throws {DatabaseError} DATA_DAMAGED */
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
      // A long statement has to be recorded even if the row size limit is low.
      if (!(error instanceof DatabaseError && error.code === "ROW_TOO_LARGE")) throw error;
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

  /**
   * Returns the position after the newest event of each ring. Rows are read in ascending order of
   * seq.
   */
  #findNext(): [number, number] {
    const next: [number, number] = [0, 0];
    for (const [place] of this.#read(this.#store.appliedSeq, [PLACE])) {
      const ring = Number(place) < AUDIT_RING_EVENTS ? 0 : 1;
      next[ring] = (Number(place) + 1) % AUDIT_RING_EVENTS;
    }
    return next;
  }
}

/** Returns an audit event without its details and with truncated names. */
function briefly({ action, actor, address, outcome, subject, target }: AuditEvent): AuditEvent {
  const event = { action, actor: shortened(actor), target: shortened(target), outcome, address };
  return subject === undefined ? event : { ...event, subject: shortened(subject) };
}

function shortened(name: string): string {
  return name.slice(0, BRIEF_NAME_LENGTH_MAX);
}
