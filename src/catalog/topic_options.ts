/**
 * Interprets the options of a topic and of its sources in `WITH (…)` and `SET (…)`.
 *
 * No option is ignored: unknown options and values out of range are refused.
 */
import { DatabaseError } from "../base/errors.ts";
import {
  type OptionSetting,
  placeOf,
  refuseTwice,
  wholeFrom,
  wordFrom,
} from "./option_settings.ts";
import type { TopicEntry, TopicPayload } from "./topic_entries.ts";

/** The properties of a topic set by its options. */
export type TopicOptions = Pick<
  TopicEntry,
  "deadLetter" | "maxDeliveries" | "retentionBytes" | "retentionHours"
>;

/** The default values of topic options. */
const DEFAULTS: TopicOptions = { retentionHours: 168, retentionBytes: 1024 ** 3 };

const HOURS_MAX = 87_600;
const BYTES_MAX = 2 ** 49;
const DELIVERIES_MAX = 1000;

const NAMES = "RETENTION_HOURS, RETENTION_BYTES, MAX_DELIVERIES, DEAD_LETTER";

const PAYLOADS: readonly TopicPayload[] = ["key", "full", "diff"];

/**
 * Returns the options of a topic after `WITH (…)` or `SET (…)`. The caller checks whether the
 * dead-letter topic exists, because the catalog is not accessible here.
 *
 * @param current The topic's options before the change; absent for a new topic.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function topicOptionsFrom(
  settings: readonly OptionSetting[],
  current: TopicOptions = DEFAULTS,
): TopicOptions {
  refuseTwice(settings);
  const next: { -readonly [Key in keyof TopicOptions]: TopicOptions[Key] } = {
    retentionHours: current.retentionHours,
    retentionBytes: current.retentionBytes,
  };
  let { deadLetter, maxDeliveries } = current;
  for (const setting of settings) {
    switch (setting.name.toUpperCase()) {
      case "RETENTION_HOURS":
        next.retentionHours = wholeFrom(setting, { max: HOURS_MAX });
        break;
      case "RETENTION_BYTES":
        next.retentionBytes = wholeFrom(setting, { max: BYTES_MAX });
        break;
      case "MAX_DELIVERIES":
        maxDeliveries = wholeFrom(setting, { min: 0, max: DELIVERIES_MAX }) || undefined;
        break;
      case "DEAD_LETTER":
        deadLetter = String(setting.value) || undefined;
        break;
      default:
        throw unknownOption(setting);
    }
  }
  if ((deadLetter === undefined) !== (maxDeliveries === undefined)) {
    throw new DatabaseError(
      "INVALID_OPTION",
      "Cannot set only one of MAX_DELIVERIES and DEAD_LETTER: after MAX_DELIVERIES deliveries, " +
        "a message goes to the topic that DEAD_LETTER names",
      placeOf(settings.at(-1)),
    );
  }
  if (maxDeliveries !== undefined) next.maxDeliveries = maxDeliveries;
  if (deadLetter !== undefined) next.deadLetter = deadLetter;
  return next;
}

/**
 * Returns the payload format of a source after `WITH (…)`.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function topicPayloadFrom(settings: readonly OptionSetting[]): TopicPayload {
  refuseTwice(settings);
  let payload: TopicPayload = "full";
  for (const setting of settings) {
    if (setting.name.toUpperCase() !== "PAYLOAD") {
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot set option ${JSON.stringify(setting.name)}: the only option of a topic source ` +
          "is PAYLOAD",
        placeOf(setting),
      );
    }
    payload = wordFrom(setting, PAYLOADS);
  }
  return payload;
}

function unknownOption(setting: OptionSetting): DatabaseError {
  const name = setting.name.toUpperCase();
  return new DatabaseError(
    "INVALID_OPTION",
    name === "PARTITIONS"
      ? "Cannot change PARTITIONS: the number of partitions cannot be changed after the topic is " +
          "created"
      : `Cannot set option ${JSON.stringify(setting.name)}: the options are ${NAMES}`,
    placeOf(setting),
  );
}
