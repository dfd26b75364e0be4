/**
 * Keeps all open connections, both sockets and event streams. It enforces the limits on their
 * number, ticks them for keep-alive, and ends them when a session is revoked or the server stops.
 *
 * Work on many connections is split into slices of a few milliseconds. Without slices, ending
 * 5,000 connections of one user would block the event loop for more than a second. In return, the
 * last connections stay open until their slice comes. Each tick visits a tenth of all connections,
 * so that connections opened at the same time, for example after a restart, are not pinged at the
 * same time.
 */
import { concerns, type Revocation } from "../../auth/mod.ts";
import { Arrivals } from "../../base/arrivals.ts";
import { assert } from "../../base/assert.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { senderOf } from "../../base/sender.ts";
import type { ConnectionAccess, ConnectionRow } from "../../sql/mod.ts";
import type { OpenConnection } from "./open_connection.ts";

/**
 * The number of groups into which the connections are split. Each tick visits one group, so each
 * connection is visited about once a second.
 */
const PARTS = 10;
const PART_MS = 100;

/**
 * How long the visits in a slice may take. The limit is a duration rather than a number of
 * connections, because the cost of ending a connection grows with the number of its subscriptions.
 */
const VISITS_MS_MAX = 4;

/** How long a connection's queue may take to send at shutdown. */
const FLUSH_MS_MAX = 5000;

/** The interval at which a shutdown checks whether all connections are gone. */
const FLUSH_POLL_MS = 20;

interface Visits {
  readonly visit: (connection: OpenConnection) => void;
  readonly onDone?: () => void;
}

export class Connections implements ConnectionAccess {
  readonly #clock: Clock;
  readonly #onBug: OnBug;
  readonly #open = new Set<OpenConnection>();
  readonly #arrivals = new Arrivals();
  readonly #byAddress = new Map<string, { readonly address: string; count: number }>();
  readonly #bySender = new Map<string, number>();
  #cancelTick: CancelTimer | undefined;
  /** The connections that the current round of ticks has not visited yet. */
  #round: Iterator<OpenConnection> = this.#open.values();
  #roundLeft = 0;
  #partsLeft = 0;
  #isStopping = false;

  /**
   * Creates an empty list of open connections.
   * @param onBug Called for a bug in a visited connection. The remaining connections are still
   *   visited.
   */
  constructor(clock: Clock, onBug: OnBug) {
    this.#clock = clock;
    this.#onBug = onBug;
  }

  get count(): number {
    return this.#open.size;
  }

  /** The total size of the queues of all connections: the bytes waiting for the network. */
  get queuedBytes(): number {
    let bytes = 0;
    for (const connection of this.#open) bytes += connection.queuedBytes;
    return bytes;
  }

  countBy(transport: OpenConnection["transport"]): number {
    let count = 0;
    for (const connection of this.#open) if (connection.transport === transport) count += 1;
    return count;
  }

  /** Returns the number of connections from an address. */
  countOf(address: string): number {
    return this.#bySender.get(senderOf(address)) ?? 0;
  }

  /**
   * Returns the stored copy of an address. Each request has its own copy of the string, so keeping
   * only one saves memory.
   */
  shared(address: string): string {
    return this.#byAddress.get(address)?.address ?? address;
  }

  add(connection: OpenConnection): void {
    this.#open.add(connection);
    this.#arrivals.add(1);
    const { address } = connection;
    const known = this.#byAddress.get(address);
    if (known === undefined) this.#byAddress.set(address, { address, count: 1 });
    else known.count += 1;
    const sender = senderOf(address);
    this.#bySender.set(sender, (this.#bySender.get(sender) ?? 0) + 1);
    this.#cancelTick ??= this.#tickLater();
  }

  remove(connection: OpenConnection): void {
    if (!this.#open.delete(connection)) return;
    const known = this.#byAddress.get(connection.address);
    assert(
      known !== undefined && known.count > 0,
      "connection count: no open connection is recorded for this client",
    );
    known.count -= 1;
    if (known.count === 0) this.#byAddress.delete(connection.address);
    const sender = senderOf(connection.address);
    const left = (this.#bySender.get(sender) ?? 0) - 1;
    if (left > 0) this.#bySender.set(sender, left);
    else this.#bySender.delete(sender);
  }

  rows(): readonly ConnectionRow[] {
    return [...this.#open].flatMap((connection) => connection.row() ?? []);
  }

  /** Executes KILL CONNECTION. Returns false if no connection has this id. */
  kill(connectionId: string): boolean {
    for (const connection of this.#open) {
      if (connection.row()?.connectionId !== connectionId) continue;
      connection.kill();
      return true;
    }
    return false;
  }

  /**
   * Ends the open connections of one session, or of all sessions of a user. Ending many
   * connections takes several time slices.
   */
  revoke(revocation: Revocation): void {
    const revoked = [...this.#open].filter(({ principal }) => {
      if (principal === undefined) return false;
      const { actorId: userId, sessionId } = principal;
      return concerns(revocation, { userId, sessionId });
    });
    this.#inSlices(revoked.values(), { visit: (connection) => connection.revoke() });
  }

  /**
   * Closes all connections with a given transport once their queues have been sent, after 5
   * seconds at the latest.
   */
  async shutDown(transport: OpenConnection["transport"]): Promise<void> {
    this.#isStopping = true;
    this.#cancelTick?.();
    const left = (): OpenConnection[] =>
      [...this.#open].filter((connection) => connection.transport === transport);
    for (const connection of left()) connection.shutDown();
    const deadlineMs = this.#clock.monotonicMs() + FLUSH_MS_MAX;
    while (this.countBy(transport) > 0 && this.#clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => void this.#clock.after(FLUSH_POLL_MS, resolve));
    }
    for (const connection of left()) connection.closeNow();
  }

  #tickLater(): CancelTimer {
    return this.#clock.after(PART_MS, () => {
      this.#inSlices(this.#part(), {
        visit: (connection) => connection.tick(),
        onDone: () => {
          this.#cancelTick = this.#open.size === 0 ? undefined : this.#tickLater();
        },
      });
    });
  }

  /** Yields the next part of a round. New connections may have to wait for the next round. */
  *#part(): Generator<OpenConnection> {
    if (this.#partsLeft === 0) {
      this.#round = this.#open.values();
      this.#roundLeft = this.#open.size;
      this.#partsLeft = PARTS;
    }
    const count = Math.ceil(this.#roundLeft / this.#partsLeft);
    this.#roundLeft -= count;
    this.#partsLeft -= 1;
    for (let taken = 0; taken < count; taken += 1) {
      const next = this.#round.next();
      if (next.done === true) return;
      yield next.value;
    }
  }

  /**
   * Visits the remaining connections, in several time slices if necessary. A visit may end the
   * round early.
   */
  #inSlices(left: Iterator<OpenConnection>, visits: Visits): void {
    if (this.#isStopping) return;
    const startMs = this.#clock.monotonicMs();
    do {
      const next = left.next();
      if (next.done === true) {
        visits.onDone?.();
        return;
      }
      try {
        visits.visit(next.value);
      } catch (error) {
        this.#onBug(error, "a connection", { connection: next.value.row()?.connectionId });
      }
    } while (this.#clock.monotonicMs() - startMs < VISITS_MS_MAX);
    void this.#clock.yield().then(() => this.#inSlices(left, visits));
  }
}
