/**
 * Interprets the options of a view in `WITH (…)`, `SET (…)` and `RESET (…)`.
 *
 * The options are those of PostgreSQL, plus ACCESS_LEVEL, which tables also have. No option is
 * ignored: unknown options and values out of range are refused.
 */
import { DatabaseError } from "../base/errors.ts";
import type { ViewEntry, ViewLevel, ViewRights } from "./entries.ts";
import { type OptionSetting, placeOf, refuseTwice, wordFrom } from "./option_settings.ts";

const LEVELS: readonly ViewLevel[] = ["PUBLIC", "PRIVATE", "DBA"];

/** The access level of a view whose options do not set one. Tables have the same default. */
const DEFAULT_LEVEL: ViewLevel = "PRIVATE";

const FLAGS = ["true", "false", "on", "off"] as const;

export interface ViewOptionsPlace {
  /** The rights of the view before the change; absent if it ran with the rights of its reader. */
  readonly before?: ViewRights | undefined;
  /** The user who is setting the options. */
  readonly owner: string;
}

/**
 * Returns the rights of a view after `WITH (…)` or `SET (…)`; undefined if the view runs with the
 * rights of its reader.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
export function viewRightsFrom(
  settings: readonly OptionSetting[],
  { before, owner }: ViewOptionsPlace,
): ViewRights | undefined {
  refuseTwice(settings);
  let isOfReader = before === undefined;
  let level: OptionSetting | undefined;
  for (const setting of settings) {
    const name = optionNamed(setting);
    if (name === "SECURITY_INVOKER") isOfReader = isOn(setting);
    else if (name === "ACCESS_LEVEL") level = setting;
    else if (name === "CHECK_OPTION") wordFrom(setting, CHECKS);
    // The `security_barrier` option has no effect, because every view is a security barrier, but
    // its value is checked.
    else isOn(setting);
  }
  if (!isOfReader) {
    const accessLevel = level === undefined ? undefined : wordFrom(level, LEVELS);
    return { owner, accessLevel: accessLevel ?? before?.accessLevel ?? DEFAULT_LEVEL };
  }
  if (level === undefined) return undefined;
  throw new DatabaseError(
    "INVALID_OPTION",
    "Cannot set ACCESS_LEVEL on a view that runs with its reader's rights: the tables that it " +
      "reads determine who may read it",
    { ...placeOf(level), hint: "add SECURITY_INVOKER = false" },
  );
}

/** Returns the rights of a view after `RESET (…)`. @throws {DatabaseError} INVALID_OPTION */
export function resetViewRights(
  names: readonly Omit<OptionSetting, "value">[],
  { before, owner }: ViewOptionsPlace,
): ViewRights | undefined {
  const reset = new Set(names.map(optionNamed));
  if (before === undefined || reset.has("SECURITY_INVOKER")) return undefined;
  return { owner, accessLevel: reset.has("ACCESS_LEVEL") ? DEFAULT_LEVEL : before.accessLevel };
}

/**
 * Returns how a view checks written rows after `WITH (…)` or `SET (…)`.
 *
 * @param before How the view checked them before.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function checkOptionFrom(
  settings: readonly OptionSetting[],
  before?: CheckOption,
): CheckOption {
  const setting = settings.find((each) => optionNamed(each) === "CHECK_OPTION");
  return setting === undefined ? before : wordFrom(setting, CHECKS);
}

/** Returns how a view checks written rows after `RESET (…)`. */
export function resetCheckOption(
  names: readonly Omit<OptionSetting, "value">[],
  before: CheckOption,
): CheckOption {
  return names.some((each) => optionNamed(each) === "CHECK_OPTION") ? undefined : before;
}

type CheckOption = ViewEntry["checkOption"];

const CHECKS = ["local", "cascaded"] as const;

const NAMES = ["SECURITY_INVOKER", "SECURITY_BARRIER", "ACCESS_LEVEL", "CHECK_OPTION"] as const;

function optionNamed(setting: Omit<OptionSetting, "value">): (typeof NAMES)[number] {
  const given = setting.name.toUpperCase();
  const known = NAMES.find((name) => name === given);
  if (known !== undefined) return known;
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot set option ${JSON.stringify(setting.name)} on a view: the options are ` +
      NAMES.join(", "),
    placeOf(setting),
  );
}

function isOn(setting: OptionSetting): boolean {
  const word = wordFrom(setting, FLAGS);
  return word === "true" || word === "on";
}
