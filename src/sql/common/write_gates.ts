/**
 * Gates of tables: while one is closed, statements that write the table wait, and reads go on.
 *
 * A long statement outside a transaction is run again when others have changed its rows meanwhile.
 * The last time it closes the gate first, so that it meets no new ones. A long statement that began
 * before that does not look at the gate again, and may still commit first: then the one behind the
 * gate fails.
 */
import type { Clock } from "../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";

/** How often a statement that waits looks whether it was ended. */
const LOOK_MS = 20;

export class WriteGates {
  readonly #clock: Clock;
  readonly #closed = new Map<number, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the table may not be written now. */
  isClosed(tableId: number): boolean {
    return this.#closed.size > 0 && this.#closed.has(tableId);
  }

  /** Whether any of the tables may not. */
  areClosed(tableIds: readonly number[]): boolean {
    return this.#closed.size > 0 && tableIds.some((tableId) => this.#closed.has(tableId));
  }

  /**
   * Resolves in a turn in which none of the gates is closed.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED
   */
  async opened(tableIds: readonly number[], ledger: RequestLedger): Promise<void> {
    while (this.areClosed(tableIds)) {
      const looked = new Promise<void>((resolve) => {
        this.#clock.after(LOOK_MS, resolve);
      });
      await Promise.race([looked, ...tableIds.flatMap((id) => this.#closed.get(id) ?? [])]);
      // Also when the gate is open by now: who was ended while it waited does not run any more.
      checkDeadline(ledger, this.#clock);
    }
  }

  /** Closes a gate when it is open; returns who opens it again. */
  async close(tableId: number, ledger: RequestLedger): Promise<() => void> {
    // Others may have waited for the same turn.
    while (this.isClosed(tableId)) await this.opened([tableId], ledger);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#closed.set(tableId, promise);
    return () => {
      this.#closed.delete(tableId);
      resolve();
    };
  }
}
