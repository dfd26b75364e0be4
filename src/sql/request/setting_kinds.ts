/**
 * Defines the settings that a request may change: the values that each setting accepts, and its
 * default.
 *
 * Most of them exist for programs written for PostgreSQL, which begin by setting options that
 * already apply here. Such a setting accepts only values that describe this server, so that no
 * request of a program is silently ignored. Settings that only advise PostgreSQL's planner accept
 * any value that PostgreSQL accepts, because they change no result.
 */
import type { SqlLimits } from "../ports/environment.ts";

/** The reason why a setting cannot have a value, and advice on what to do instead. */
export interface Refusal {
  readonly why: string;
  readonly hint?: string;
}

export interface SettingKind {
  readonly name: string;
  readonly description: string;
  /** Returns the value of the setting that applies unless SET changes it. */
  defaultOf(limits: SqlLimits): string;
  /** Returns a value in its stored form, or the reason for refusing it. */
  read(text: string, limits: SqlLimits): string | Refusal;
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["min", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

const NO_LENGTH: Refusal = {
  why: "the value is not a duration",
  hint: "write a number of milliseconds, or a number with the unit ms, s, min, h or d",
};

/** Matches a number with an optional unit of memory or time. */
const AMOUNT = /^-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,3})?\s*(?:B|kB|MB|GB|TB|us|ms|s|min|h|d)?$/;

const BOOLEANS: ReadonlyMap<string, string> = new Map([
  ["on", "on"],
  ["true", "on"],
  ["yes", "on"],
  ["1", "on"],
  ["off", "off"],
  ["false", "off"],
  ["no", "off"],
  ["0", "off"],
]);

const STATEMENT_TIMEOUT: SettingKind = {
  name: "statement_timeout",
  description:
    "How long a statement may run, in milliseconds; at most performance.request_timeout; 0 " +
    "means no limit",
  defaultOf: ({ timeoutMs }) => String(timeoutMs),
  read(text, { timeoutMs }) {
    const ms = readMs(text);
    if (ms === undefined) return NO_LENGTH;
    // If a program turns off its time limit, the server's limit applies.
    if (ms === 0) return String(timeoutMs);
    if (timeoutMs > 0 && ms > timeoutMs) {
      return {
        why: `the value exceeds performance.request_timeout (${timeoutMs} ms)`,
        hint: "use a smaller value, or DEFAULT",
      };
    }
    return String(ms);
  },
};

/** The PostgreSQL planner settings that are either on or off. */
const PLANNER_FLAGS = [
  "enable_async_append",
  "enable_bitmapscan",
  "enable_gathermerge",
  "enable_hashagg",
  "enable_hashjoin",
  "enable_incremental_sort",
  "enable_indexonlyscan",
  "enable_indexscan",
  "enable_material",
  "enable_memoize",
  "enable_mergejoin",
  "enable_nestloop",
  "enable_parallel_append",
  "enable_parallel_hash",
  "enable_partition_pruning",
  "enable_partitionwise_aggregate",
  "enable_partitionwise_join",
  "enable_seqscan",
  "enable_sort",
  "enable_tidscan",
  "geqo",
  "jit",
  "parallel_leader_participation",
] as const;

/** The numeric PostgreSQL planner settings, with PostgreSQL's defaults. */
const PLANNER_NUMBERS = [
  ["cpu_index_tuple_cost", "0.005"],
  ["cpu_operator_cost", "0.0025"],
  ["cpu_tuple_cost", "0.01"],
  ["cursor_tuple_fraction", "0.1"],
  ["default_statistics_target", "100"],
  ["effective_cache_size", "4GB"],
  ["effective_io_concurrency", "1"],
  ["from_collapse_limit", "8"],
  ["geqo_threshold", "12"],
  ["jit_above_cost", "100000"],
  ["join_collapse_limit", "8"],
  ["max_parallel_maintenance_workers", "2"],
  ["max_parallel_workers", "8"],
  ["max_parallel_workers_per_gather", "2"],
  ["min_parallel_index_scan_size", "512kB"],
  ["min_parallel_table_scan_size", "8MB"],
  ["parallel_setup_cost", "1000"],
  ["parallel_tuple_cost", "0.1"],
  ["random_page_cost", "4"],
  ["seq_page_cost", "1"],
] as const;

/** PostgreSQL's memory settings, with their defaults. */
const MEMORY_NUMBERS = [
  ["hash_mem_multiplier", "2"],
  ["maintenance_work_mem", "64MB"],
  ["max_stack_depth", "2MB"],
  ["temp_buffers", "8MB"],
  ["work_mem", "4MB"],
] as const;

const OWN_PLANS = "Has no effect: the planner chooses plans by table size";
const OWN_MEMORY =
  "Has no effect: performance.query_memory_bytes limits the memory of each statement";

/** The settings in the order in which SHOW lists them. */
const KINDS: readonly SettingKind[] = [
  STATEMENT_TIMEOUT,
  {
    name: "timezone",
    description: "The time zone of timestamps that do not name one; always UTC",
    defaultOf: () => "UTC",
    read: (text) =>
      ["utc", "etc/utc", "gmt", "+00:00"].includes(text.toLowerCase())
        ? "UTC"
        : {
            why: "the time zone of a request is always UTC",
            hint: "to compute in a different time zone, use AT TIME ZONE",
          },
  },
  anyText("application_name", "The name of the client program"),
  only("client_encoding", ["UTF8", "UTF-8", "UNICODE"], "The encoding of text; always UTF-8"),
  only(
    "standard_conforming_strings",
    ["on"],
    "Whether a backslash in a string is an ordinary character; always on",
  ),
  only("bytea_output", ["hex"], "The text format of bytes; always hexadecimal"),
  only(
    "intervalstyle",
    ["postgres"],
    "The text format of intervals; always the default format of PostgreSQL",
  ),
  {
    name: "datestyle",
    description: "The text format of dates; always ISO",
    defaultOf: () => "ISO, MDY",
    read: (text) =>
      /^iso\b/i.test(text.trim())
        ? "ISO, MDY"
        : { why: "dates are always formatted according to ISO" },
  },
  only(
    "default_tablespace",
    [""],
    "Has no effect: the table option STORAGE_ID selects the storage",
  ),
  only("default_table_access_method", ["heap"], "Has no effect: there is only one storage engine"),
  only(
    "synchronous_commit",
    ["on"],
    "Has no effect: storage.durability in the configuration determines when commits are " +
      "acknowledged",
  ),
  only(
    "session_replication_role",
    ["origin"],
    "Has no effect: triggers always fire unless ALTER TABLE … DISABLE TRIGGER disables them",
  ),
  flag("check_function_bodies", "Has no effect: function bodies are always checked", "on"),
  flag("row_security", "Has no effect: row policies always apply", "on"),
  flag(
    "escape_string_warning",
    "Has no effect: backslashes are escapes only in E'…' strings",
    "on",
  ),
  only(
    "xmloption",
    ["content"],
    "Text cast to XML may be any content; XMLPARSE (DOCUMENT …) requires a document",
  ),
  only("xmlbinary", ["base64"], "Bytes within XML are shown in base64"),
  word(
    "client_min_messages",
    [
      "notice",
      "debug",
      "debug1",
      "debug2",
      "debug3",
      "debug4",
      "debug5",
      "log",
      "warning",
      "error",
    ],
    "Has no effect: notices are part of the response",
  ),
  {
    name: "extra_float_digits",
    description: "Has no effect: floating-point numbers are always written exactly",
    defaultOf: () => "1",
    read: (text) =>
      /^(?:-(?:\d|1[0-5])|[0-3])$/.test(text)
        ? text
        : { why: "the value must be between -15 and 3" },
  },
  duration(
    "lock_timeout",
    "How long a statement may wait for an advisory lock, in milliseconds; 0 means no limit",
  ),
  duration(
    "idle_in_transaction_session_timeout",
    "Has no effect: limits.transaction_idle_secs limits how long a transaction may be idle",
  ),
  duration(
    "transaction_timeout",
    "Has no effect: limits.transaction_timeout_secs limits how long a transaction may stay open",
  ),
  duration("idle_session_timeout", "Has no effect: requests do not share a session"),
  only("role", ["none"], "To run a statement as a different user, use EXECUTE AS USER 'name' (…)"),
  only("lc_messages", ["C"], "The language of messages; always English"),
  only("lc_monetary", ["C"], "The format of MONEY values; always in dollars"),
  only("lc_numeric", ["C"], "The format of numbers; always with a decimal point"),
  only("lc_time", ["C"], "The language of day and month names; always English"),
  ...PLANNER_FLAGS.map((name) => flag(name, OWN_PLANS, name.includes("wise_") ? "off" : "on")),
  ...PLANNER_NUMBERS.map(([name, initial]) => amount(name, OWN_PLANS, initial)),
  word("plan_cache_mode", ["auto", "force_generic_plan", "force_custom_plan"], OWN_PLANS),
  word("force_parallel_mode", ["off", "on", "regress"], OWN_PLANS),
  word("constraint_exclusion", ["partition", "on", "off"], OWN_PLANS),
  ...MEMORY_NUMBERS.map(([name, initial]) => amount(name, OWN_MEMORY, initial)),
];

const BY_NAME: ReadonlyMap<string, SettingKind> = new Map(KINDS.map((kind) => [kind.name, kind]));

export const SETTING_KINDS: readonly SettingKind[] = KINDS;

export function settingKind(name: string): SettingKind | undefined {
  return BY_NAME.get(name.toLowerCase());
}

/** Matches the name of a custom setting, which contains a dot, such as app.user_id. */
const OWN_NAME = /^[a-z_][\w$]*(?:\.[a-z_][\w$]*)+$/;

/** The maximum length of a custom setting's name. */
const OWN_NAME_LENGTH_MAX = 128;

/**
 * Whether a program may define a custom setting with this name. Names in the configuration contain
 * dots as well, so their first parts are reserved.
 */
export function isOwnName(name: string, configured: readonly { readonly name: string }[]): boolean {
  if (name.length > OWN_NAME_LENGTH_MAX || !OWN_NAME.test(name)) return false;
  const section = name.slice(0, name.indexOf(".") + 1);
  return !configured.some((each) => each.name.startsWith(section));
}

/**
 * The PostgreSQL version whose SQL dialect this server supports. Programs use it to decide which
 * statements to send.
 */
const POSTGRES_VERSION = "15.0";

/** Returns the settings that programs can read with SHOW but cannot set. */
export function fixedSettings(version: string): readonly { name: string; value: string }[] {
  return [
    { name: "server_version", value: `${POSTGRES_VERSION} (Tidemark ${version})` },
    { name: "server_version_num", value: "150000" },
    { name: "server_encoding", value: "UTF8" },
    { name: "lc_collate", value: "C" },
    { name: "lc_ctype", value: "C.UTF-8" },
    { name: "integer_datetimes", value: "on" },
    { name: "max_identifier_length", value: "64" },
    { name: "transaction_isolation", value: "repeatable read" },
    { name: "default_transaction_isolation", value: "repeatable read" },
    { name: "in_hot_standby", value: "off" },
  ];
}

function anyText(name: string, description: string): SettingKind {
  return { name, description, defaultOf: () => "", read: (text) => text };
}

/**
 * Defines a setting with a single value, which may be spelt in several ways. SHOW returns the
 * first spelling.
 */
function only(name: string, spellings: readonly string[], description: string): SettingKind {
  const [shown = ""] = spellings;
  return {
    name,
    description,
    defaultOf: () => shown,
    read: (text) => {
      const lower = text.toLowerCase();
      const value = shown === "on" ? (BOOLEANS.get(lower) ?? lower) : lower;
      if (spellings.some((each) => each.toLowerCase() === value)) return shown;
      return { why: `the only allowed value is "${shown}"`, hint: description };
    },
  };
}

function flag(name: string, description: string, initial: string): SettingKind {
  return {
    name,
    description,
    defaultOf: () => initial,
    read: (text) => BOOLEANS.get(text.toLowerCase()) ?? { why: "the value must be on or off" },
  };
}

/** Defines a setting whose value is a number, possibly with a unit. */
function amount(name: string, description: string, initial: string): SettingKind {
  return {
    name,
    description,
    defaultOf: () => initial,
    read: (text) =>
      AMOUNT.test(text.trim())
        ? text.trim()
        : { why: "the value must be a number, optionally with a unit" },
  };
}

/**
 * Defines a setting whose value is one of several words.
 *
 * @param words The first word is the default.
 */
function word(name: string, words: readonly string[], description: string): SettingKind {
  const [initial = ""] = words;
  return {
    name,
    description,
    defaultOf: () => initial,
    read: (text) => {
      const lower = text.toLowerCase();
      return words.includes(lower)
        ? lower
        : { why: `the value must be one of ${words.join(", ")}` };
    },
  };
}

function duration(name: string, description: string): SettingKind {
  return {
    name,
    description,
    defaultOf: () => "0",
    read: (text) => {
      const ms = readMs(text);
      return ms === undefined ? NO_LENGTH : String(ms);
    },
  };
}

/** Reads a duration. Returns undefined if the string is not a duration. */
function readMs(text: string): number | undefined {
  const [, digits = "", unit = "ms"] =
    /^(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)?$/.exec(text.trim().toLowerCase()) ?? [];
  return digits === "" ? undefined : Math.round(Number(digits) * (UNIT_MS.get(unit) ?? 1));
}
