/**
 * Judges the messages that a group received: no message is missing, none is at two offsets, the
 * messages of a row are in order, and only unacknowledged messages are redelivered.
 *
 * The content of an offset never changes, whichever group reads it and however many times the
 * server restarts: all groups of a topic share the known contents.
 */
import { type Ledger, rowName } from "./ledger.ts";

/** A message in its wire form. */
export interface WireMessage {
  readonly topic_id: string;
  readonly partition_id: number;
  readonly offset: number;
  /** The payload: JSON in Base64. */
  readonly payload: string;
  readonly key: string | null;
  readonly user?: string;
  readonly timestamp_ms: number;
  readonly op: "Insert" | "Update" | "Delete";
}

export interface Faults {
  /** How many messages the group never received. */
  lost: number;
  /**
   * The number of messages that no change explains, plus the number of changes that have two
   * messages.
   */
  surplus: number;
  outOfOrder: number;
  /** How many offsets are not contiguous from 0. */
  gaps: number;
  /** How many offsets have changed their contents. */
  unstable: number;
  /** How many rows have messages in two partitions. */
  divided: number;
  /** The number of messages redelivered after they had been acknowledged. */
  redelivered: number;
  /** The number of messages redelivered while another consumer's claim was still valid. */
  early: number;
  /**
   * The number of messages of an ordered group that arrived before the preceding message was
   * acknowledged.
   */
  overtaken: number;
  /** How many effects are missing or occurred twice. */
  effects: number;
}

export function noFaults(): Faults {
  return {
    lost: 0,
    surplus: 0,
    outOfOrder: 0,
    gaps: 0,
    unstable: 0,
    divided: 0,
    redelivered: 0,
    early: 0,
    overtaken: 0,
    effects: 0,
  };
}

interface Content {
  readonly row: string;
  readonly said: string;
}

/** The contents of a topic's messages, keyed by partition and offset. */
export type Contents = Map<number, Map<number, Content>>;

/** When a request was sent, when its response arrived, and which life of the server responded. */
export interface Received {
  readonly sentMs: number;
  readonly receivedMs: number;
  readonly life: number;
}

const FINDINGS_MAX = 20;

export class GroupJudge {
  readonly faults: Faults = noFaults();
  readonly findings: string[] = [];
  deliveryCount = 0;
  redeliveryCount = 0;
  readonly #name: string;
  readonly #contents: Contents;
  readonly #isOrdered: boolean;
  readonly #visibilityMs: number;
  readonly #delivered = new Map<string, Received>();
  #lastDeliveryMs = 0;
  /** The time at which the acknowledgement of each message was answered. */
  readonly #acknowledgedMs = new Map<string, number>();
  /** The messages for which an acknowledgement was sent. */
  readonly #sent = new Set<string>();
  /** The offsets that this group has received for each row. */
  readonly #offsetsByRow = new Map<string, number[]>();

  constructor(options: {
    name: string;
    contents: Contents;
    isOrdered: boolean;
    visibilityMs: number;
  }) {
    this.#name = options.name;
    this.#contents = options.contents;
    this.#isOrdered = options.isOrdered;
    this.#visibilityMs = options.visibilityMs;
  }

  /**
   * Returns whether the group is done with this many messages. An acknowledgement without a
   * response may have been accepted, so its message counts as done if it was not redelivered in
   * time. A group that receives nothing for much longer also counts as done, because its missing
   * messages must be lost.
   */
  isDone(messageCount: number): boolean {
    if (this.#acknowledgedMs.size >= messageCount) return true;
    const quietMs = performance.now() - this.#lastDeliveryMs;
    const isComplete = this.#delivered.size >= messageCount;
    return quietMs > (isComplete ? 3 : 15) * this.#visibilityMs;
  }

  /** Records that an acknowledgement is about to be sent. */
  sending(partition: number, offsets: readonly number[]): void {
    for (const offset of offsets) this.#sent.add(`${partition}/${offset}`);
  }

  /** Records that an acknowledgement succeeded. */
  acknowledged(partition: number, offsets: readonly number[]): void {
    const nowMs = performance.now();
    for (const offset of offsets) {
      const place = `${partition}/${offset}`;
      if (!this.#acknowledgedMs.has(place)) this.#acknowledgedMs.set(place, nowMs);
    }
  }

  /** Records the messages of a response. */
  received(messages: readonly WireMessage[], when: Received): void {
    const batch = new Set(messages.map((message) => placeOf(message)));
    if (messages.length > 0) this.#lastDeliveryMs = when.receivedMs;
    for (const message of messages) this.#receive(message, when, batch);
  }

  #receive(message: WireMessage, when: Received, batch: ReadonlySet<string>): void {
    const place = placeOf(message);
    this.deliveryCount += 1;
    const before = this.#delivered.get(place);
    if (before !== undefined) {
      this.redeliveryCount += 1;
      const acknowledgedMs = this.#acknowledgedMs.get(place);
      if (acknowledgedMs !== undefined && acknowledgedMs < when.sentMs) {
        this.#find("redelivered", `${place} was redelivered after its acknowledgement`);
      }
      const isInTime = when.receivedMs < before.sentMs + this.#visibilityMs;
      if (isInTime && before.life === when.life && !this.#sent.has(place)) {
        this.#find("early", `${place} was redelivered after ${when.receivedMs - before.sentMs} ms`);
      }
    }
    this.#delivered.set(place, when);
    const content = this.#noteContent(message);
    if (before === undefined) this.#noteOrder(message, content, batch);
  }

  #noteContent(message: WireMessage): Content {
    const content = contentOf(message);
    const partition = this.#contents.get(message.partition_id) ?? new Map<number, Content>();
    this.#contents.set(message.partition_id, partition);
    const known = partition.get(message.offset);
    if (known === undefined) partition.set(message.offset, content);
    else if (known.row !== content.row || known.said !== content.said) {
      this.#find(
        "unstable",
        `${placeOf(message)} was ${known.row} ${known.said}, and is ${content.row} ${content.said}`,
      );
    }
    return content;
  }

  #noteOrder(
    { offset, partition_id: partition }: WireMessage,
    { row }: Content,
    batch: ReadonlySet<string>,
  ): void {
    const offsets = this.#offsetsByRow.get(row) ?? [];
    this.#offsetsByRow.set(row, offsets);
    if (this.#isOrdered) {
      const open = offsets.find((earlier) => {
        const place = `${partition}/${earlier}`;
        return earlier < offset && !this.#sent.has(place) && !batch.has(place);
      });
      if (open !== undefined) {
        this.#find(
          "overtaken",
          `${partition}/${offset} of ${row} arrived while ${open} was unacknowledged`,
        );
      }
    }
    offsets.push(offset);
  }

  /**
   * Compares everything that the group received with the ledger. Called once everything has been
   * delivered.
   */
  finish(topic: string, ledger: Ledger): void {
    const observed = new Map<string, { offset: number; said: string }[]>();
    const partitionOf = new Map<string, number>();
    for (const [partition, offsets] of this.#contents) {
      const end = Math.max(...offsets.keys()) + 1;
      if (offsets.size !== end) {
        this.#find("gaps", `partition ${partition} has ${offsets.size} offsets below ${end}`);
      }
      for (const [offset, { row, said }] of offsets) {
        if (!this.#delivered.has(`${partition}/${offset}`)) {
          this.#find("lost", `${partition}/${offset} never came`);
        }
        if ((partitionOf.get(row) ?? partition) !== partition) {
          this.#find("divided", `${row} is in partitions ${partitionOf.get(row)} and ${partition}`);
        }
        partitionOf.set(row, partition);
        const list = observed.get(row) ?? [];
        list.push({ offset, said });
        observed.set(row, list);
      }
    }
    this.#compare(ledger.expected(topic), observed);
  }

  #compare(
    expected: ReadonlyMap<string, readonly string[]>,
    observed: ReadonlyMap<string, { offset: number; said: string }[]>,
  ): void {
    for (const row of new Set([...expected.keys(), ...observed.keys()])) {
      const wanted = expected.get(row) ?? [];
      const list = observed.get(row)?.toSorted((left, right) => left.offset - right.offset) ?? [];
      const got = list.map(({ said }) => said);
      if (wanted.join("\n") === got.join("\n")) continue;
      const missing = difference(wanted, got);
      const surplus = difference(got, wanted);
      for (const said of missing) this.#find("lost", `${row}: ${said}`);
      for (const said of surplus) this.#find("surplus", `${row}: ${said}`);
      if (missing.length === 0 && surplus.length === 0) this.#find("outOfOrder", row);
    }
  }

  /** Counts a fault, and keeps a description of the first few. */
  #find(fault: keyof Faults, what: string): void {
    this.faults[fault] += 1;
    if (this.findings.length < FINDINGS_MAX) {
      this.findings.push(`${this.#name}: ${fault}: ${what}`);
    }
  }
}

/** Returns a string that identifies a message by partition and offset. */
export function placeOf({ offset, partition_id: partition }: WireMessage): string {
  return `${partition}/${offset}`;
}

function difference(from: readonly string[], without: readonly string[]): string[] {
  const left = [...from];
  for (const said of without) {
    const index = left.indexOf(said);
    if (index >= 0) left.splice(index, 1);
  }
  return left;
}

interface Payload {
  readonly n?: number;
  readonly ["_table"]?: string;
  readonly changed?: { readonly n?: { readonly old: number | null; readonly new: number | null } };
}

/** Returns a message's content in the form in which the ledger states expected content. */
function contentOf({ key, op, payload, user }: WireMessage): Content {
  const said = JSON.parse(Buffer.from(payload, "base64").toString("utf8")) as Payload;
  // The payload of an inserted item contains only the key and no table.
  const named = said["_table"];
  const table = named?.replace(/^app\./, "") ?? "items";
  const owner = table === "notes" ? user : undefined;
  const row = rowName({ table, user: owner, key: key ?? "" });
  if (named === undefined) return { row, said: op };
  if (said.changed === undefined) return { row, said: `${op} ${said.n}` };
  const { n } = said.changed;
  return { row, said: `${op} ${n?.old ?? "-"} to ${n?.new}` };
}
