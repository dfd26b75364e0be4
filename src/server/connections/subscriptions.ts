/**
 * The subscriptions of one connection, by the id that the client chose. Which of them wait for the
 * socket to have room the live engine knows.
 */
import type { LiveSubscription } from "../../live/mod.ts";
import { PROTOCOL_WORD, refusal } from "../frames/client_message.ts";

/**
 * A list and no map: most connections have few, which are found sooner by looking, and a map of
 * its own would be a third of what an idle connection costs.
 */
export class Subscriptions {
  /** The oldest, beside the list: most connections have one, which then needs none. */
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

  /** Ends one without a message; an unknown id changes nothing. */
  close(id: string): void {
    const subscription = this.#find(id);
    if (subscription === undefined) return;
    this.forget(id);
    subscription.close();
  }

  /** Ends all without a message. */
  closeAll(): void {
    const subscriptions = this.#all();
    this.#first = undefined;
    this.#others = undefined;
    for (const subscription of subscriptions) subscription.close();
  }

  /** One has ended by itself. */
  forget(id: string): void {
    const subscription = this.#find(id);
    if (subscription === undefined) return;
    const others = this.#others;
    if (subscription === this.#first) this.#first = others?.shift();
    else others?.splice(others.indexOf(subscription), 1);
    if (others?.length === 0) this.#others = undefined;
  }

  /** The socket has room again; said of one it is said of all. */
  drained(): void {
    this.#first?.drained();
  }

  /**
   * Asks for one more batch.
   *
   * @param id Undefined for the only loading one.
   * @throws {SubscriptionError} BATCH_FETCH_FAILED, AMBIGUOUS_SUBSCRIPTION
   */
  nextBatch(id: string | undefined): void {
    if (id !== undefined) {
      const subscription = this.#find(id);
      if (subscription === undefined) {
        throw refusal("BATCH_FETCH_FAILED", id, `There is no subscription "${id}"`);
      }
      if (subscription.state === "loading") subscription.nextBatch();
      return;
    }
    if (this.#first === undefined) {
      throw refusal("BATCH_FETCH_FAILED", PROTOCOL_WORD, "There is no subscription");
    }
    this.#onlyLoading()?.nextBatch();
  }

  /** Resume points of those that have loaded. */
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
        const message = "Several subscriptions are loading: name one by subscription_id";
        throw refusal("AMBIGUOUS_SUBSCRIPTION", PROTOCOL_WORD, message);
      }
      loading = subscription;
    }
    return loading;
  }
}
