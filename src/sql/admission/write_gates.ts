/**
 * Write gates of tables: while a gate is closed, statements that write the table wait, and reads
 * continue.
 *
 * A long statement outside a transaction is run again if other statements have changed its rows in
 * the meantime. For its last attempt it first closes the gate, so that no new conflict arises. A
 * long statement that began earlier does not check the gate again and may still commit first; the
 * statement that closed the gate then fails.
 */
import type { Clock } from "../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";

/** The interval at which a waiting statement checks whether it was ended. */
const LOOK_MS = 20;

export class WriteGates {
  readonly #clock: Clock;
  readonly #closed = new Map<number, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the gate of any of the tables is closed. */
  areClosed(tableIds: readonly number[]): boolean {
    return this.#closed.size > 0 && tableIds.some((tableId) => this.#closed.has(tableId));
  }

  /**
   * Waits until none of the gates is closed; the caller may continue within the same tick.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED
   */
  async opened(tableIds: readonly number[], ledger: RequestLedger): Promise<void> {
    while (this.areClosed(tableIds)) {
      const looked = new Promise<void>((resolve) => {
        this.#clock.after(LOOK_MS, resolve);
      });
      await Promise.race([looked, ...tableIds.flatMap((id) => this.#closed.get(id) ?? [])]);
      // Checked even if the gate is open by now: a statement that was ended while it waited must
      // not run.
      checkDeadline(ledger, this.#clock);
    }
  }

  /**
   * Closes gates once all of them are open, in one tick, so that no two statements wait for each
   * other. Returns a function that opens the gates again.
   */
  async close(tableIds: readonly number[], ledger: RequestLedger): Promise<() => void> {
    // Several statements may have waited for the same tick.
    while (this.areClosed(tableIds)) await this.opened(tableIds, ledger);
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const tableId of tableIds) this.#closed.set(tableId, promise);
    return () => {
      for (const tableId of tableIds) this.#closed.delete(tableId);
      resolve();
    };
  }
}
