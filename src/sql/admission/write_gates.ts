/**
 * Implements the write gates of tables: while a gate is closed, statements that write to the table
 * wait, whereas reads continue.
 *
 * A long-running statement outside a transaction is run again if other statements have changed its
 * rows in the meantime. Before its third attempt, it closes the gates of its tables, so that no
 * new statement can conflict with it. However, a statement that began earlier does not check the
 * gate again and may still commit first. In that case, the statement is run again while the gates
 * stay closed.
 */
import type { Clock } from "../../base/clock.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";

/**
 * The interval, in milliseconds, at which a waiting statement checks whether it has been ended.
 */
const LOOK_MS = 20;

export class WriteGates {
  readonly #clock: Clock;
  readonly #closed = new Map<number, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the gate of any of these tables is closed. */
  areClosed(tableIds: readonly number[]): boolean {
    return this.#closed.size > 0 && tableIds.some((tableId) => this.#closed.has(tableId));
  }

  /**
   * Waits until the gates of all given tables are open. If they are already open, the caller
   * continues within the same tick.
   *
   * @throws {DatabaseError} STATEMENT_TIMEOUT, CANCELLED
   */
  async opened(tableIds: readonly number[], ledger: RequestLedger): Promise<void> {
    while (this.areClosed(tableIds)) {
      const looked = new Promise<void>((resolve) => {
        this.#clock.after(LOOK_MS, resolve);
      });
      await Promise.race([looked, ...tableIds.flatMap((id) => this.#closed.get(id) ?? [])]);
      // The deadline is checked even if the gate is open by now, because a statement that was
      // ended while it waited must not run.
      checkDeadline(ledger, this.#clock);
    }
  }

  /**
   * Closes several gates in one tick, once all of them are open, so that two statements can never
   * wait for each other. Returns a function that reopens the gates.
   */
  async close(tableIds: readonly number[], ledger: RequestLedger): Promise<() => void> {
    // Several statements may have waited for the gates, and another statement may have been the
    // first to close them again.
    while (this.areClosed(tableIds)) await this.opened(tableIds, ledger);
    return this.closeOpen(tableIds);
  }

  /** Closes several gates, all of which must be open. Returns a function that reopens them. */
  closeOpen(tableIds: readonly number[]): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const tableId of tableIds) this.#closed.set(tableId, promise);
    return () => {
      for (const tableId of tableIds) this.#closed.delete(tableId);
      resolve();
    };
  }
}
