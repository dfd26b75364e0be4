/**
 * Implements a consumer of a group, which takes messages over HTTP. At random, it crashes while it
 * holds messages, sleeps for longer than its claim lasts, acknowledges late, or acknowledges out
 * of order.
 */
import type { SeededRandom } from "../../support/seeded_random.ts";
import type { World } from "../check_live/world.ts";
import type { Tamperer } from "./injected_faults.ts";
import type { GroupJudge, WireMessage } from "./judge.ts";

/** How the consumers of a group acknowledge messages. */
export type Manner = "single" | "cumulative" | "effects";

export interface GroupForm {
  readonly name: string;
  readonly topic: string;
  readonly consumers: number;
  readonly manner: Manner;
  readonly isOrdered: boolean;
}

export interface ConsumerOptions {
  readonly world: World;
  readonly token: string;
  readonly group: GroupForm;
  /** The partitions that the consumer polls in turn. */
  readonly partitions: readonly number[];
  readonly judge: GroupJudge;
  readonly random: SeededRandom;
  readonly visibilityMs: number;
  readonly tamperer?: Tamperer | undefined;
}

const LIMIT_MAX = 80;

/** How long a request waits if there is no message, in seconds. */
const WAIT_SECONDS = 1;

export class Consumer {
  readonly #options: ConsumerOptions;
  #isStopped = false;
  #isCalm = false;
  crashes = 0;
  stalls = 0;

  constructor(options: ConsumerOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Stops the consumer from crashing and stalling from now on, so that the group can finish. */
  settleDown(): void {
    this.#isCalm = true;
  }

  async run(): Promise<void> {
    const { partitions, world } = this.#options;
    for (let turn = 0; !this.#isStopped; turn += 1) {
      await world.whenUp();
      const partition = partitions[turn % partitions.length] ?? 0;
      const messages = await this.#take(partition);
      if (messages !== undefined && messages.length > 0) await this.#work(partition, messages);
    }
  }

  async #take(partition: number): Promise<readonly WireMessage[] | undefined> {
    const { group, judge, partitions, random, tamperer, world } = this.#options;
    const sentMs = performance.now();
    const { life } = world;
    const answer = await this.#post("consume", {
      topic_id: group.topic,
      group_id: group.name,
      partition_id: partition,
      start: "Earliest",
      limit: random.between(1, LIMIT_MAX),
      timeout_seconds: partitions.length === 1 ? WAIT_SECONDS : 0,
      ordered: group.isOrdered,
    });
    if (answer === undefined || life === undefined) return undefined;
    const whole = answer["messages"] as readonly WireMessage[];
    const messages = tamperer?.pass(whole) ?? whole;
    const when = { sentMs, receivedMs: performance.now(), life };
    judge.received(messages, when);
    if (messages.length > 0 && tamperer?.isHasty() === true) judge.received(messages, when);
    // After an empty response, the consumer moves on to another partition.
    if (whole.length === 0 && partitions.length > 1) await Bun.sleep(20);
    return whole;
  }

  async #work(partition: number, messages: readonly WireMessage[]): Promise<void> {
    const { group, random, visibilityMs } = this.#options;
    if (!this.#isCalm && random.chance(0.02)) {
      this.crashes += 1;
      return;
    }
    if (!this.#isCalm && random.chance(0.01)) {
      this.stalls += 1;
      await Bun.sleep(visibilityMs + random.between(0, 500));
    }
    const offsets = messages.map(({ offset }) => offset);
    if (group.manner === "effects") {
      await this.#commitEffects(partition, offsets);
    } else if (group.manner === "cumulative") {
      await this.#acknowledge(partition, offsets, { upto_offset: offsets.at(-1) });
    } else if (random.chance(0.3) && offsets.length > 1) {
      const shuffled = random.shuffle([...offsets]);
      const half = Math.floor(shuffled.length / 2);
      for (const part of [shuffled.slice(0, half), shuffled.slice(half)]) {
        await this.#acknowledge(partition, part, { offsets: part });
      }
    } else {
      await this.#acknowledge(partition, offsets, { offsets });
    }
  }

  async #acknowledge(
    partition: number,
    offsets: readonly number[],
    fields: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { group, judge, tamperer } = this.#options;
    judge.sending(partition, offsets);
    if (tamperer?.isForgotten() === true) {
      judge.acknowledged(partition, offsets);
      return;
    }
    const answer = await this.#post("ack", {
      topic_id: group.topic,
      group_id: group.name,
      partition_id: partition,
      ...fields,
    });
    if (answer !== undefined) judge.acknowledged(partition, offsets);
  }

  /** Commits an effect for each message together with the message's acknowledgement. */
  async #commitEffects(partition: number, offsets: readonly number[]): Promise<void> {
    const { group, judge, tamperer, token, world } = this.#options;
    const { life } = world;
    const rows = offsets.map((offset) => `(${partition}, ${offset})`).join(", ");
    const insert = `INSERT INTO app.effects (partition_id, message_offset) VALUES ${rows}`;
    const ack = `ACK ${group.topic} GROUP '${group.name}' PARTITION ${partition} OFFSETS (${offsets.join(", ")})`;
    judge.sending(partition, offsets);
    try {
      if (tamperer?.isEffectDoubled() === true) await world.server.rows(insert, { token });
      const { body } = await world.server.sql(`BEGIN; ${insert}; ${ack}; COMMIT`, { token });
      // A refusal means that another consumer acknowledged the messages first, after the claim had
      // expired.
      if (body.status === "success") judge.acknowledged(partition, offsets);
    } catch (error) {
      await this.#requireRestart(life, error);
    }
  }

  /** Returns the body of a response; undefined if the request was refused or the server ended. */
  async #post(
    path: string,
    body: Readonly<Record<string, unknown>>,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    const { token, world } = this.#options;
    const { life } = world;
    try {
      const response = await world.server.post(`/v1/api/topics/${path}`, body, {
        Authorization: `Bearer ${token}`,
      });
      const answer = (await response.json()) as Readonly<Record<string, unknown>>;
      if (response.ok) return answer;
      if (path === "ack" || response.status === 503) return undefined;
      throw new Error(`Cannot ${path}: ${response.status} ${JSON.stringify(answer)}`);
    } catch (error) {
      await this.#requireRestart(life, error);
      return undefined;
    }
  }

  /**
   * Requires that an error was caused by a restart of the server.
   * @throws The error, unless the server ended in the meantime.
   */
  async #requireRestart(life: number | undefined, error: unknown): Promise<void> {
    const { world } = this.#options;
    await Bun.sleep(1);
    if (life !== undefined && world.life === life) throw error;
  }
}
