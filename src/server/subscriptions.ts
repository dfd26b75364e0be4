/**
 * The subscriptions of one connection, by the id that the client chose, and which of them wait for
 * the socket to have room.
 */
import type { LiveSubscription } from "../live/mod.ts";
import { PROTOCOL_WORD, refusal } from "./client_message.ts";

export class Subscriptions {
  readonly #byId = new Map<string, LiveSubscription>();
  /** To be resumed, those that have waited longest first. */
  readonly #paused = new Set<LiveSubscription>();

  get count(): number {
    return this.#byId.size;
  }

  ids(): readonly string[] {
    return [...this.#byId.keys()];
  }

  add(id: string, subscription: LiveSubscription): void {
    this.#byId.set(id, subscription);
  }

  /** Ends one without a message; an unknown id changes nothing. */
  close(id: string): void {
    const subscription = this.#byId.get(id);
    if (subscription === undefined) return;
    this.forget(id);
    subscription.close();
  }

  /** Ends all without a message. */
  closeAll(): void {
    const subscriptions = [...this.#byId.values()];
    this.#byId.clear();
    this.#paused.clear();
    for (const subscription of subscriptions) subscription.close();
  }

  /** One has ended by itself. */
  forget(id: string): void {
    const subscription = this.#byId.get(id);
    if (subscription === undefined) return;
    this.#byId.delete(id);
    this.#paused.delete(subscription);
  }

  /** The socket is full: all wait. */
  pause(): void {
    for (const subscription of this.#byId.values()) this.#paused.add(subscription);
  }

  /** Lets waiting ones go on, in turn, until `hasRoom` says no; the rest keep their turn. */
  resume(hasRoom: () => boolean): void {
    for (const subscription of this.#paused) {
      if (!hasRoom()) return;
      this.#paused.delete(subscription);
      subscription.resume();
    }
  }

  /**
   * Asks for one more batch.
   *
   * @param id Undefined for the only loading one.
   * @throws {SubscriptionError} BATCH_FETCH_FAILED, AMBIGUOUS_SUBSCRIPTION
   */
  nextBatch(id: string | undefined): void {
    if (id !== undefined) {
      const subscription = this.#byId.get(id);
      if (subscription === undefined) {
        throw refusal("BATCH_FETCH_FAILED", id, `There is no subscription "${id}"`);
      }
      if (subscription.state === "loading") subscription.nextBatch();
      return;
    }
    if (this.#byId.size === 0) {
      throw refusal("BATCH_FETCH_FAILED", PROTOCOL_WORD, "There is no subscription");
    }
    this.#onlyLoading()?.nextBatch();
  }

  /** Resume points of the ready ones. */
  positions(): Readonly<Record<string, number>> {
    const positions: [string, number][] = [];
    for (const [id, { state, position }] of this.#byId) {
      if (state === "ready" && position !== undefined) positions.push([id, position]);
    }
    return Object.fromEntries(positions);
  }

  #onlyLoading(): LiveSubscription | undefined {
    let loading: LiveSubscription | undefined;
    for (const subscription of this.#byId.values()) {
      if (subscription.state !== "loading") continue;
      if (loading !== undefined) {
        const message = "Several subscriptions are loading: name one by subscription_id";
        throw refusal("AMBIGUOUS_SUBSCRIPTION", PROTOCOL_WORD, message);
      }
      loading = subscription;
    }
    return loading;
  }
}
