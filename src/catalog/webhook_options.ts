/**
 * Interprets the options and the secret of a webhook.
 *
 * No option is ignored: unknown options and values out of range are refused.
 */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";
import {
  type OptionSetting,
  placeOf,
  refuseTwice,
  wholeFrom,
  wordFrom,
} from "./option_settings.ts";
import type { WebhookEntry } from "./topic_entries.ts";

/** The properties of a webhook set by its options. */
export type WebhookOptions = Pick<
  WebhookEntry,
  "concurrency" | "isOrdered" | "start" | "timeoutSecs"
>;

const TIMEOUT_SECS_MAX = 60;
const CONCURRENCY_MAX = 64;

/** The minimum length of a secret. A shorter secret could be found by brute force. */
const SECRET_LENGTH_MIN = 16;
const SECRET_LENGTH_MAX = 256;

const NAMES = "ORDERED, START, TIMEOUT_SECS, CONCURRENCY";

const DEFAULTS: WebhookOptions = {
  isOrdered: false,
  start: "created",
  timeoutSecs: 10,
  concurrency: 4,
};

/** Returns the options of a webhook after `WITH (…)`. @throws {DatabaseError} INVALID_OPTION */
export function webhookOptionsFrom(settings: readonly OptionSetting[]): WebhookOptions {
  return { ...DEFAULTS, ...givenOptions(settings) };
}

/** Returns the options that ALTER WEBHOOK changes. @throws {DatabaseError} INVALID_OPTION */
export function webhookChangesFrom(
  settings: readonly OptionSetting[],
): Partial<Omit<WebhookOptions, "start">> {
  const start = settings.find(({ name }) => name.toUpperCase() === "START");
  if (start === undefined) return givenOptions(settings);
  throw new DatabaseError(
    "INVALID_OPTION",
    "Cannot set option START on an existing webhook: the webhook continues from its current " +
      "position",
    placeOf(start),
  );
}

function givenOptions(settings: readonly OptionSetting[]): Partial<WebhookOptions> {
  refuseTwice(settings);
  const options: { -readonly [Key in keyof WebhookOptions]?: WebhookOptions[Key] } = {};
  for (const setting of settings) {
    switch (setting.name.toUpperCase()) {
      case "ORDERED":
        options.isOrdered = wordFrom(setting, ["true", "false"]) === "true";
        break;
      case "START":
        options.start = wordFrom(setting, ["created", "earliest"]);
        break;
      case "TIMEOUT_SECS":
        options.timeoutSecs = wholeFrom(setting, { max: TIMEOUT_SECS_MAX });
        break;
      case "CONCURRENCY":
        options.concurrency = wholeFrom(setting, { max: CONCURRENCY_MAX });
        break;
      default:
        throw new DatabaseError(
          "INVALID_OPTION",
          `Cannot set option ${JSON.stringify(setting.name)}: the options are ${NAMES}`,
          placeOf(setting),
        );
    }
  }
  return options;
}

/**
 * Requires that a webhook's secret has a valid form.
 * @throws {DatabaseError} INVALID_OPTION, with a message that does not repeat the secret.
 */
export function checkSecret(secret: string, details: ErrorDetails): void {
  if (secret.length >= SECRET_LENGTH_MIN && secret.length <= SECRET_LENGTH_MAX) return;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot use a SECRET of ${secret.length} characters: it must have ${SECRET_LENGTH_MIN} to ` +
      `${SECRET_LENGTH_MAX} characters`,
    details,
  );
}
