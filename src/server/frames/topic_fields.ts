/**
 * Reads the fields of HTTP requests and socket messages about topics. Both use the same field
 * names, so a client that switches from one to the other need not change its fields.
 */
import type { DatabaseError } from "../../base/errors.ts";
import type { TopicStart } from "../../sql/mod.ts";
import { kindOf } from "../http/field_names.ts";
import { invalidInput, objectOf } from "../http/request_body.ts";

/** The fields of a request about topics, as received. */
export type TopicFields = Readonly<Record<string, unknown>>;

export interface ConsumeFields {
  /** The topic's qualified name, "namespace.topic". */
  readonly topicName: string;
  readonly group: string;
  readonly partition: number;
  readonly start: TopicStart;
  readonly limit: number;
  readonly timeoutMs: number;
  readonly isOrdered: boolean;
}

export interface AckFields {
  readonly topicName: string;
  readonly group: string;
  readonly partition: number;
  readonly upTo: number | undefined;
  /** The offsets to acknowledge, ascending and without duplicates; undefined if absent. */
  readonly offsets: readonly number[] | undefined;
}

const GROUP_BYTES_MAX = 128;

const LIMIT_DEFAULT = 100;

/**
 * The maximum number of messages that a single request may ask for or acknowledge individually.
 */
export const MESSAGES_MAX = 10_000;

const PARTITION_MAX = 0xffff;

/** The maximum delay before a message is delivered again, in milliseconds: one day. */
const DELAY_MS_MAX = 86_400_000;

/** Reads the fields of a request for messages. @throws {DatabaseError} INVALID_INPUT */
export function readConsume(fields: TopicFields): ConsumeFields {
  return {
    topicName: topicNameFrom(fields),
    group: groupFrom(fields),
    partition: partitionFrom(fields) ?? 0,
    start: startFrom(fields["start"]),
    limit: wholeNumber(fields, "limit", { min: 1, max: MESSAGES_MAX }) ?? LIMIT_DEFAULT,
    timeoutMs: 1000 * (wholeNumber(fields, "timeout_seconds", { min: 0 }) ?? 0),
    isOrdered: flagFrom(fields, "ordered"),
  };
}

/** Reads the fields of an acknowledgement. @throws {DatabaseError} INVALID_INPUT */
export function readAck(fields: TopicFields): AckFields {
  return {
    topicName: topicNameFrom(fields),
    group: groupFrom(fields),
    partition: partitionFrom(fields) ?? 0,
    ...acknowledgedFrom(fields),
  };
}

/** The messages that a negative acknowledgement returns to the consumer group. */
export interface NackFields {
  readonly partition: number;
  /** The offsets of the messages to return, ascending and without duplicates. */
  readonly offsets: readonly number[];
  readonly delayMs: number;
}

/** Reads the fields of a negative acknowledgement. @throws {DatabaseError} INVALID_INPUT */
export function readNack(fields: TopicFields): NackFields {
  const offsets = offsetsFrom(fields);
  if (offsets === undefined) {
    throw wrong("offsets", "a list", offsets);
  }
  const delayMs = wholeNumber(fields, "delay_ms", { min: 0, max: DELAY_MS_MAX }) ?? 0;
  return { partition: partitionFrom(fields) ?? 0, offsets, delayMs };
}

/**
 * Reads the acknowledged offsets, in either of their two forms.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function acknowledgedFrom(fields: TopicFields): Pick<AckFields, "offsets" | "upTo"> {
  const upTo = wholeNumber(fields, "upto_offset", { min: 0 });
  const offsets = offsetsFrom(fields);
  if ((upTo === undefined) === (offsets === undefined)) {
    throw invalidInput(
      'Cannot acknowledge messages: send "upto_offset" to acknowledge all messages up to an ' +
        'offset, or "offsets" for individual messages',
    );
  }
  return { upTo, offsets };
}

/**
 * Reads the list of offsets.
 * @returns The offsets, ascending and without duplicates; undefined if absent.
 * @throws {DatabaseError}
 */
function offsetsFrom(fields: TopicFields): readonly number[] | undefined {
  const offsets = fields["offsets"] ?? undefined;
  if (offsets === undefined) return undefined;
  const isList = Array.isArray(offsets) && offsets.length >= 1 && offsets.length <= MESSAGES_MAX;
  if (!isList || !offsets.every(isOffset)) {
    throw wrong("offsets", `a list of 1 to ${MESSAGES_MAX} non-negative whole numbers`, offsets);
  }
  return [...new Set<number>(offsets)].toSorted((left, right) => left - right);
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

/** Reads the topic's name. @throws {DatabaseError} INVALID_INPUT */
export function topicNameFrom(fields: TopicFields): string {
  const name = fields["topic_id"];
  if (typeof name === "string" && /^[^.]{1,64}\.[^.]{1,64}$/.test(name)) return name;
  throw wrong("topic_id", 'the name of a topic with its namespace, such as "chat.feed"', name);
}

/** Reads the group's name. @throws {DatabaseError} INVALID_INPUT */
export function groupFrom(fields: TopicFields): string {
  const group = fields["group_id"];
  const isName = typeof group === "string" && group !== "" && group.isWellFormed();
  if (isName && Buffer.byteLength(group) <= GROUP_BYTES_MAX) return group;
  throw wrong("group_id", `a string of 1 to ${GROUP_BYTES_MAX} bytes`, group);
}

/**
 * Reads the partition number.
 * @returns undefined if absent.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function partitionFrom(fields: TopicFields): number | undefined {
  return wholeNumber(fields, "partition_id", { min: 0, max: PARTITION_MAX });
}

/** Reads a boolean field, which is false if absent. @throws {DatabaseError} INVALID_INPUT */
export function flagFrom(fields: TopicFields, name: string): boolean {
  const flag = fields[name] ?? false;
  if (typeof flag === "boolean") return flag;
  throw wrong(name, "true or false", flag);
}

/**
 * Reads the position at which a new consumer group starts. @throws {DatabaseError} INVALID_INPUT
 */
export function startFrom(start: unknown): TopicStart {
  if (start === undefined || start === null) return { kind: "latest" };
  if (typeof start === "string") {
    const word = start.toLowerCase();
    if (word === "latest" || word === "earliest") return { kind: word };
  }
  const [[name, value] = ["", undefined], ...more] = Object.entries(objectOf(start) ?? {});
  if (more.length === 0 && isOffset(value)) {
    const word = name.toLowerCase();
    if (word === "offset") return { kind: "offset", offset: value };
    if (word === "timestamp") return { kind: "time", unixMs: value };
  }
  throw wrong("start", '"Latest", "Earliest", {"Offset": n} or {"Timestamp": milliseconds}', start);
}

/**
 * Reads an optional integer from `min` to `max`.
 * @returns undefined if absent.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function wholeNumber(
  fields: TopicFields,
  name: string,
  { max = Number.MAX_SAFE_INTEGER, min }: { min: number; max?: number },
): number | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max) {
    return Number(value);
  }
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw wrong(name, `a whole number ${range}`, value);
}

function wrong(name: string, expected: string, value: unknown): DatabaseError {
  if (value === undefined) {
    return invalidInput(`Cannot read "${name}": it is missing; expected ${expected}`);
  }
  const shown = typeof value === "number" ? String(value) : kindOf(value);
  return invalidInput(`Cannot read "${name}": it is ${shown}, but must be ${expected}`);
}
