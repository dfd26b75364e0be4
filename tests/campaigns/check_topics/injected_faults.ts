/**
 * Injects faults that the checker must notice. Each fault damages the messages or the actions of
 * one group.
 */
import { type Faults, placeOf, type WireMessage } from "./judge.ts";

export const INJECTED_FAULTS = [
  "lost",
  "doubled",
  "swapped",
  "altered",
  "shifted",
  "forgotten",
  "hasty",
  "effect_twice",
] as const;

export type InjectedFault = (typeof INJECTED_FAULTS)[number];

/**
 * The fault counts that each injected fault raises. An injected fault counts as found if at least
 * one of its counts is not 0.
 */
export const FOUND_AS: Readonly<Record<InjectedFault, readonly (keyof Faults)[]>> = {
  lost: ["lost"],
  doubled: ["surplus", "unstable"],
  swapped: ["outOfOrder", "unstable"],
  altered: ["surplus", "unstable"],
  shifted: ["gaps", "unstable"],
  forgotten: ["redelivered"],
  hasty: ["early"],
  effect_twice: ["effects"],
};

/** How many messages pass undamaged before the fault is injected. */
const SOUND_MESSAGES = 100;

/** Damages the messages of a single group. */
export class Tamperer {
  readonly #injected: InjectedFault;
  #passed = 0;
  #isDone = false;
  /** The messages that have passed so far, and the message that is dropped. */
  readonly #seen = new Set<string>();
  #lost: string | undefined;

  constructor(injected: InjectedFault) {
    this.#injected = injected;
  }

  /**
   * Returns the messages that the judge is shown in place of the real messages. The group
   * acknowledges the real messages.
   */
  pass(messages: readonly WireMessage[]): readonly WireMessage[] {
    this.#passed += messages.length;
    if (this.#injected === "lost") return this.#withoutLost(messages);
    if (this.#passed <= SOUND_MESSAGES) return messages;
    if (this.#injected === "shifted") {
      return messages.map((message) => ({ ...message, offset: message.offset + 1 }));
    }
    return this.#isDone ? messages : this.#damaged(messages);
  }

  /**
   * Whether to omit an acknowledgement that has been recorded as sent. Returns true only once,
   * because the fault is injected once per run.
   */
  isForgotten(): boolean {
    return this.#isOnce("forgotten");
  }

  /**
   * Whether to show the judge the messages of a response twice, as if they had been redelivered
   * while the claim was still valid. Returns true only once, because the fault is injected once
   * per run.
   */
  isHasty(): boolean {
    return this.#isOnce("hasty");
  }

  /**
   * Whether to repeat an effect outside its transaction. Returns true only once, because the fault
   * is injected once per run.
   */
  isEffectDoubled(): boolean {
    return this.#isOnce("effect_twice");
  }

  #isOnce(injected: InjectedFault): boolean {
    if (this.#injected !== injected || this.#isDone || this.#passed <= SOUND_MESSAGES) return false;
    this.#isDone = true;
    return true;
  }

  /**
   * Drops the same message each time it is delivered. The message must be new: after a crash of
   * the server, earlier messages are redelivered with the count of a first delivery.
   */
  #withoutLost(messages: readonly WireMessage[]): readonly WireMessage[] {
    if (this.#passed > SOUND_MESSAGES) {
      this.#lost ??= messages.map(placeOf).find((place) => !this.#seen.has(place));
    }
    for (const message of messages) this.#seen.add(placeOf(message));
    return messages.filter((message) => placeOf(message) !== this.#lost);
  }

  #damaged(messages: readonly WireMessage[]): readonly WireMessage[] {
    const [first, second, ...more] = messages;
    if (first === undefined || second === undefined) return messages;
    switch (this.#injected) {
      case "doubled":
        this.#isDone = true;
        return [first, { ...first, offset: second.offset }, ...more];
      case "swapped":
        return this.#swapped(messages);
      case "altered":
        this.#isDone = true;
        return [{ ...first, op: first.op === "Insert" ? "Delete" : "Insert" }, second, ...more];
      default:
        return messages;
    }
  }

  /** Swaps two messages of the same row. */
  #swapped(messages: readonly WireMessage[]): readonly WireMessage[] {
    for (const [index, left] of messages.entries()) {
      const other = messages.findIndex(({ key }, at) => at > index && key === left.key);
      const right = messages[other];
      if (right === undefined) continue;
      this.#isDone = true;
      return messages.map((message, at) => {
        if (at === index) return { ...right, offset: left.offset };
        return at === other ? { ...left, offset: right.offset } : message;
      });
    }
    return messages;
  }
}
