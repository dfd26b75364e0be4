/** Interprets the parsed options in the clauses `WITH (…)` and `SET (…)` of tables and topics. */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";

/** A parsed option of the form `name = value`. */
export interface OptionSetting {
  /** The name of the option as written, in upper or lower case. */
  readonly name: string;
  readonly value: string | number | boolean;
  /** The offset of the option in the SQL of the request. */
  readonly position?: number;
}

/**
 * Refuses a list of options that contains the same option twice.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function refuseTwice(settings: readonly OptionSetting[]): void {
  const seen = new Set<string>();
  for (const setting of settings) {
    const name = setting.name.toUpperCase();
    if (seen.has(name)) {
      throw new DatabaseError("INVALID_OPTION", `Cannot set ${name} twice`, placeOf(setting));
    }
    seen.add(name);
  }
}

/**
 * Interprets an option whose value must be one of several keywords, ignoring case.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function wordFrom<Word extends string>(
  setting: OptionSetting,
  words: readonly Word[],
): Word {
  const given = String(setting.value).toLowerCase();
  const word = words.find((candidate) => candidate.toLowerCase() === given);
  if (word !== undefined) return word;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot set ${setting.name.toUpperCase()} to ${JSON.stringify(setting.value)}: it must be ` +
      `one of ${words.map((candidate) => `'${candidate}'`).join(", ")}`,
    placeOf(setting),
  );
}

/**
 * Interprets an option whose value must be an integer, which may be written as a string.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function wholeFrom(
  setting: OptionSetting,
  { max, min = 1 }: { max: number; min?: number },
): number {
  const text = String(setting.value);
  const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
  if (value >= min && value <= max) return value;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot set ${setting.name.toUpperCase()} to ${JSON.stringify(setting.value)}: it must be ` +
      `a whole number from ${min} to ${max}`,
    placeOf(setting),
  );
}

/** Returns the offset of an option in the SQL, in the form of error details. */
export function placeOf(setting: { position?: number } | undefined): ErrorDetails {
  return setting?.position === undefined ? {} : { position: setting.position };
}
