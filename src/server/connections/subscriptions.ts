/**
 * Keeps the subscriptions of a connection, keyed by the ids that the client chose. The live engine
 * keeps track of the subscriptions that are waiting for space in the socket's queue.
 */
import type { LiveSubscription } from "../../live/mod.ts";
import { PROTOCOL_WORD, refusal } from "../frames/client_message.ts";

/**
 * The subscriptions are stored in a list, because most connections have only a few. Searching
 * through a few entries is faster than a map, and a map would take up a third of an idle
 * connection's memory.
 */
export class Subscriptions {
  /**
   * The oldest subscription. It is stored outside the list, because most connections have only
   * one.
   */
  #first: LiveSubscription | undefined;
  #others: LiveSubscription[] | undefined;

  get count(): number {
    return (this.#first === undefined ? 0 : 1) + (this.#others?.length ?? 0);
  }

  ids(): readonly string[] {
    return this.#all().map(({ id }) => id);
  }

  add(subscription: LiveSubscription): void {
    if (this.#first === undefined) this.#first = subscription;
    else if (this.#others === undefined) this.#others = [subscription];
    else this.#others.push(subscription);
  }

  /** Ends a subscription without sending a message. An unknown id has no effect. */
  close(id: string): void {
    const subscription = this.#find(id);
    if (subscription === undefined) return;
    this.forget(id);
    subscription.close();
  }

  /** Ends all subscriptions without sending a message. */
  closeAll(): void {
    const subscriptions = this.#all();
    this.#first = undefined;
    this.#others = undefined;
    for (const subscription of subscriptions) subscription.close();
  }

  /** Removes a subscription that has ended by itself. */
  forget(id: string): void {
    const subscription = this.#find(id);
    if (subscription === undefined) return;
    const others = this.#others;
    if (subscription === this.#first) this.#first = others?.shift();
    else others?.splice(others.indexOf(subscription), 1);
    if (others?.length === 0) this.#others = undefined;
  }

  /**
   * Notifies the live engine that the socket's queue has space again. Notifying any one
   * subscription resumes all of them.
   */
  drained(): void {
    this.#first?.drained();
  }

  /**
   * Requests another batch.
   *
   * @param id Undefined for the only loading subscription.
   * @throws {SubscriptionError} BATCH_FETCH_FAILED, AMBIGUOUS_SUBSCRIPTION
   */
  nextBatch(id: string | undefined): void {
    if (id !== undefined) {
      const subscription = this.#find(id);
      if (subscription === undefined) {
        throw refusal("BATCH_FETCH_FAILED", id, `This connection has no subscription "${id}"`);
      }
      if (subscription.state === "loading") subscription.nextBatch();
      return;
    }
    if (this.#first === undefined) {
      throw refusal("BATCH_FETCH_FAILED", PROTOCOL_WORD, "This connection has no subscriptions");
    }
    this.#onlyLoading()?.nextBatch();
  }

  /** Returns the positions from which loaded subscriptions can resume. */
  positions(): Readonly<Record<string, number>> {
    const positions: [string, number][] = [];
    for (const { id, position, state } of this.#all()) {
      const hasLoaded = state === "behind" || state === "following";
      if (hasLoaded && position !== undefined) positions.push([id, position]);
    }
    return Object.fromEntries(positions);
  }

  #all(): LiveSubscription[] {
    return this.#first === undefined ? [] : [this.#first, ...(this.#others ?? [])];
  }

  #find(id: string): LiveSubscription | undefined {
    if (this.#first?.id === id) return this.#first;
    return this.#others?.find((subscription) => subscription.id === id);
  }

  #onlyLoading(): LiveSubscription | undefined {
    let loading: LiveSubscription | undefined;
    for (const subscription of this.#all()) {
      if (subscription.state !== "loading") continue;
      if (loading !== undefined) {
        const message =
          "Several subscriptions are loading: specify one of them with subscription_id";
        throw refusal("AMBIGUOUS_SUBSCRIPTION", PROTOCOL_WORD, message);
      }
      loading = subscription;
    }
    return loading;
  }
}
