/**
 * Interprets the options of a table: `WITH (…)`, `SET (…)`, `RESET (…)`, and the value of
 * FLUSH_POLICY.
 *
 * No option is ignored: unknown options, values out of range, and options that the kind of table
 * does not have are refused.
 */
import { DatabaseError, type ErrorDetails } from "../base/errors.ts";
import type { AccessLevel, TableEntry, TableKind, TableOptions } from "./entries.ts";
import {
  type OptionSetting,
  placeOf,
  refuseTwice,
  wholeFrom,
  wordFrom,
} from "./option_settings.ts";

/**
 * Determines when a table's buffered row versions are written to a segment. For each absent field,
 * the server's default applies.
 */
export interface FlushPolicyOption {
  readonly rows?: number;
  readonly intervalSeconds?: number;
}

/**
 * Returns the kind and the options of a table that a statement creates.
 *
 * @param prefix The kind given before TABLE, if any.
 * @throws {DatabaseError} INVALID_OPTION
 */
export function tableOptionsFrom(
  prefix: TableKind | undefined,
  settings: readonly OptionSetting[],
): { kind: TableKind; options: TableOptions } {
  refuseTwice(settings);
  const own = settings.filter(isOwn);
  const typeSetting = settings.find(({ name }) => name.toUpperCase() === "TYPE");
  const type = typeSetting === undefined ? undefined : kindFrom(typeSetting);
  if (type !== undefined && prefix !== undefined && type !== prefix) {
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot create a ${prefix.toUpperCase()} table with TYPE = '${type.toUpperCase()}': the ` +
        "two kinds contradict each other",
      placeOf(typeSetting),
    );
  }
  const kind = type ?? prefix ?? "shared";
  const others = own.filter((setting) => setting !== typeSetting);
  const isShared = others.some(({ name }) => name.toUpperCase() === "ACCESS_LEVEL");
  const options = apply(kind === "stream" && isShared ? SHARED_STREAM : [kind], {}, others);
  if (kind === "stream" && options.ttlSeconds === undefined) {
    throw new DatabaseError("INVALID_OPTION", "Cannot create a STREAM table without TTL_SECONDS", {
      hint: "add WITH (TTL_SECONDS = 3600)",
    });
  }
  return { kind: kind === "stream" && isShared ? "shared" : kind, options };
}

/**
 * The kinds whose options a STREAM table with an ACCESS_LEVEL accepts. The catalog stores such a
 * table as a SHARED table whose rows expire.
 */
const SHARED_STREAM: readonly TableKind[] = ["shared", "stream"];

/** Returns the table kinds whose options apply to a table. */
function kindsOf(table: KindAndOptions): readonly TableKind[] {
  return deletedAfterMs(table) === undefined ? [table.kind] : SHARED_STREAM;
}

type KindAndOptions = Pick<TableEntry, "kind" | "options">;

/** Returns the keyword for the kind of a table in CREATE TABLE, or "MATERIALIZED VIEW". */
export function shownKindOf({
  kind,
  materialized,
  options,
}: KindAndOptions & Pick<TableEntry, "materialized">):
  | "MATERIALIZED VIEW"
  | "SHARED"
  | "STREAM"
  | "USER" {
  if (materialized !== undefined) return "MATERIALIZED VIEW";
  if (kind === "user") return "USER";
  return options.ttlSeconds === undefined ? "SHARED" : "STREAM";
}

/**
 * Returns the age, in milliseconds, at which rows of a SHARED table are deleted; undefined if they
 * never expire. Also returns undefined for STREAM tables that are not SHARED, because their
 * expired rows are hidden, not deleted.
 */
export function deletedAfterMs({ kind, options }: KindAndOptions): number | undefined {
  const { ttlSeconds } = options;
  return kind === "shared" && ttlSeconds !== undefined ? ttlSeconds * 1000 : undefined;
}

/**
 * Returns the options of a table after `SET (…)`.
 * @throws {DatabaseError} See {@linkcode tableOptionsFrom}.
 */
export function changedTableOptions(
  table: KindAndOptions,
  settings: readonly OptionSetting[],
): TableOptions {
  refuseTwice(settings);
  return apply(kindsOf(table), table.options, settings.filter(isOwn));
}

/**
 * Matches PostgreSQL's storage parameters. They tune mechanisms that do not exist here and do not
 * affect the contents of a table, but they occur in dumps, so they are accepted without any
 * effect.
 */
const STORAGE_PARAMETER =
  /^(?:toast\.)?(?:fillfactor|(?:log_)?autovacuum_\w+|parallel_workers|toast_tuple_target|user_catalog_table|vacuum_(?:index_cleanup|truncate))$/;

function isStorageParameter(name: string): boolean {
  return STORAGE_PARAMETER.test(name.toLowerCase());
}

function isOwn({ name }: Pick<OptionSetting, "name">): boolean {
  return !isStorageParameter(name);
}

/** Returns the options of a table after `RESET (…)`. @throws {DatabaseError} INVALID_OPTION */
export function resetTableOptions(
  table: KindAndOptions,
  names: readonly Omit<OptionSetting, "value">[],
): TableOptions {
  const reset = new Set<string>();
  for (const setting of names.filter(isOwn)) {
    const { key } = ruleFor(kindsOf(table), setting);
    if (key === "ttlSeconds") {
      throw new DatabaseError(
        "INVALID_OPTION",
        "Cannot reset TTL_SECONDS: a STREAM table requires this option",
        placeOf(setting),
      );
    }
    reset.add(key);
  }
  return Object.fromEntries(Object.entries(table.options).filter(([key]) => !reset.has(key)));
}

/**
 * Parses `rows:N`, `interval:S`, or both in any order.
 *
 * @throws {DatabaseError} INVALID_OPTION
 */
export function flushPolicyFrom(text: string, details: ErrorDetails = {}): FlushPolicyOption {
  let rows: number | undefined;
  let intervalSeconds: number | undefined;
  for (const part of text.split(",")) {
    const [, word, digits] = /^\s*(rows|interval)\s*:\s*(\d{1,9})\s*$/i.exec(part) ?? [];
    const count = Number(digits);
    const isRows = word?.toLowerCase() === "rows";
    const max = isRows ? FLUSH_ROWS_MAX : FLUSH_INTERVAL_SECONDS_MAX;
    const isTwice = (isRows ? rows : intervalSeconds) !== undefined;
    if (word === undefined || isTwice || count < 1 || count > max) {
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot read FLUSH_POLICY ${JSON.stringify(text)}: it must be 'rows:<1 to ` +
          `${FLUSH_ROWS_MAX}>', 'interval:<1 to ${FLUSH_INTERVAL_SECONDS_MAX} seconds>', or both`,
        details,
      );
    }
    if (isRows) rows = count;
    else intervalSeconds = count;
  }
  return {
    ...(rows === undefined ? {} : { rows }),
    ...(intervalSeconds === undefined ? {} : { intervalSeconds }),
  };
}

const FLUSH_ROWS_MAX = 999_999;
const FLUSH_INTERVAL_SECONDS_MAX = 86_399;
const TTL_SECONDS_MAX = 31_536_000;
const RETENTION_HOURS_MAX = 8760;

interface OptionRule {
  readonly key: keyof TableOptions;
  readonly kinds: readonly TableKind[];
  /** Converts a setting to the table options that it sets. */
  readonly read: (setting: OptionSetting) => TableOptions;
}

const NOT_STREAM: readonly TableKind[] = ["user", "shared"];

const RULES: ReadonlyMap<string, OptionRule> = new Map<string, OptionRule>([
  ["FLUSH_POLICY", { key: "flushPolicy", kinds: NOT_STREAM, read: readFlushPolicy }],
  [
    "STORAGE_ID",
    {
      key: "storageId",
      kinds: NOT_STREAM,
      // The caller checks whether the storage exists, because the catalog is not accessible here.
      read: (setting) => ({ storageId: String(setting.value) }),
    },
  ],
  [
    "TTL_SECONDS",
    {
      key: "ttlSeconds",
      kinds: ["stream"],
      read: (setting) => ({ ttlSeconds: wholeFrom(setting, { max: TTL_SECONDS_MAX }) }),
    },
  ],
  [
    "ACCESS_LEVEL",
    {
      key: "accessLevel",
      kinds: ["shared"],
      read: (setting) => ({ accessLevel: wordFrom(setting, ACCESS_LEVELS) }),
    },
  ],
  [
    "DELETED_RETENTION_HOURS",
    {
      key: "deletedRetentionHours",
      kinds: NOT_STREAM,
      read: (setting) => ({
        deletedRetentionHours: wholeFrom(setting, { max: RETENTION_HOURS_MAX }),
      }),
    },
  ],
  [
    "COMPRESSION",
    {
      key: "compression",
      kinds: NOT_STREAM,
      read: (setting) => ({ compression: wordFrom(setting, COMPRESSIONS) }),
    },
  ],
]);

const ACCESS_LEVELS: readonly AccessLevel[] = ["PUBLIC", "PRIVATE", "RESTRICTED", "DBA"];
const COMPRESSIONS: readonly ("auto" | "none" | "zstd")[] = ["auto", "none", "zstd"];
const KINDS: readonly TableKind[] = ["user", "shared", "stream"];

/**
 * Returns the access level of a SHARED table; undefined for other tables, whose rows are private.
 */
export function accessLevelOf({ kind, options }: KindAndOptions): AccessLevel | undefined {
  return kind === "shared" ? (options.accessLevel ?? "PRIVATE") : undefined;
}

/**
 * Returns whether two definitions of a table have the same ACCESS_LEVEL and, if policies control
 * access to its rows, the same policies.
 */
export function hasSameAccess(before: TableEntry, after: TableEntry): boolean {
  const level = accessLevelOf(after);
  if (accessLevelOf(before) !== level) return false;
  return level !== "RESTRICTED" || haveSamePolicies(before, after);
}

/**
 * Compares policies by content rather than by object identity, because every definition read from
 * disk consists of new objects.
 */
function haveSamePolicies(
  { policies: before }: TableEntry,
  { policies: after }: TableEntry,
): boolean {
  return before === after || JSON.stringify(before) === JSON.stringify(after);
}

function apply(
  kinds: readonly TableKind[],
  current: TableOptions,
  settings: readonly OptionSetting[],
): TableOptions {
  const parts = settings.map((setting) => ruleFor(kinds, setting).read(setting));
  return Object.assign({}, current, ...parts) as TableOptions;
}

function ruleFor(kinds: readonly TableKind[], setting: Omit<OptionSetting, "value">): OptionRule {
  const name = setting.name.toUpperCase();
  const rule = RULES.get(name);
  if (rule === undefined) {
    throw new DatabaseError(
      "INVALID_OPTION",
      name === "TYPE"
        ? "Cannot change TYPE: the kind of a table cannot be changed after its creation"
        : `Cannot set option ${JSON.stringify(setting.name)}: the options are ` +
            [...RULES.keys()].join(", "),
      placeOf(setting),
    );
  }
  if (kinds.some((kind) => rule.kinds.includes(kind))) return rule;
  const kind = kinds.join(" ").toUpperCase();
  const isLate = rule.key === "accessLevel" && kind === "STREAM";
  throw new DatabaseError(
    "INVALID_OPTION",
    `Cannot set ${name} on a ${kind} table: this option applies only to ` +
      `${rule.kinds.map((word) => word.toUpperCase()).join(" and ")} tables`,
    {
      ...placeOf(setting),
      ...(isLate && {
        hint:
          "the rows of this table belong to individual users; for rows that others may read, " +
          "create a STREAM table WITH (ACCESS_LEVEL = …)",
      }),
    },
  );
}

function kindFrom(setting: OptionSetting): TableKind {
  return wordFrom(setting, KINDS);
}

function readFlushPolicy(setting: OptionSetting): TableOptions {
  const text = String(setting.value);
  flushPolicyFrom(text, placeOf(setting));
  return { flushPolicy: text };
}
