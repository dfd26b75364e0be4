/**
 * SET: what the statements of one request change for those behind them, and SHOW tells of it.
 *
 * Invariant: what SET LOCAL changed ends with its transaction, and what ROLLBACK undoes is as it
 * was at BEGIN.
 */
import { DatabaseError } from "../../base/errors.ts";
import { excerpt } from "../../types/mod.ts";
import type { SqlLimits } from "../common/environment.ts";
import type { ShownSetting } from "../common/layers_above.ts";
import type { SetStatementVariable, SetTimezone, SetValue } from "../parse/ast/ast.ts";

type SetStatement = SetStatementVariable | SetTimezone;

interface Change {
  readonly name: SettingName;
  /** Undefined for DEFAULT. */
  readonly value: string | undefined;
  readonly isLocal: boolean;
}

/** What is as it was when the request began is left out. */
type Changed = ReadonlyMap<SettingName, string>;

const NAMES = ["statement_timeout", "timezone", "application_name"] as const;

type SettingName = (typeof NAMES)[number];

const DESCRIPTIONS: Readonly<Record<SettingName, string>> = {
  statement_timeout:
    "Milliseconds that a statement may run, at most performance.request_timeout; 0 is no limit",
  timezone: "Zone of times without one; UTC is the only one",
  application_name: "What the client calls itself",
};

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["min", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

export class RequestSettings {
  readonly #limits: SqlLimits;
  #changed: Changed = new Map();
  /** At BEGIN. */
  #before: Changed | undefined;
  /** As it is after COMMIT: without what was set for the transaction only. */
  #lasting: Changed = new Map();

  constructor(limits: SqlLimits) {
    this.#limits = limits;
  }

  /** How long a statement may run by SET; undefined as long as the request's own time holds. */
  get statementTimeoutMs(): number | undefined {
    const text = this.#changed.get("statement_timeout");
    return text === undefined || text === "0" ? undefined : Number(text);
  }

  rows(): readonly ShownSetting[] {
    return NAMES.map((name) => ({
      name,
      value: this.#changed.get(name) ?? defaultOf(name, this.#limits),
      category: "request",
      description: DESCRIPTIONS[name],
    }));
  }

  /** Returns what happened. @throws {DatabaseError} INVALID_OPTION, TRANSACTION_REQUIRED */
  set(node: SetStatement): string {
    const change = readChange(node, this.#limits);
    if (change.isLocal && this.#before === undefined) {
      throw new DatabaseError("TRANSACTION_REQUIRED", "Cannot SET LOCAL: no transaction is open", {
        position: node._location.start,
        hint: "SET holds for the rest of the request",
      });
    }
    this.#changed = withChange(this.#changed, change);
    if (!change.isLocal) this.#lasting = withChange(this.#lasting, change);
    const { name } = change;
    return `Setting ${name} set to "${change.value ?? defaultOf(name, this.#limits)}"`;
  }

  begin(): void {
    this.#before = this.#changed;
  }

  commit(): void {
    this.#before = undefined;
    this.#changed = this.#lasting;
  }

  rollback(): void {
    this.#changed = this.#before ?? this.#changed;
    this.#lasting = this.#changed;
    this.#before = undefined;
  }
}

function withChange(changed: Changed, { name, value }: Change): Changed {
  const next = new Map(changed);
  if (value === undefined) next.delete(name);
  else next.set(name, value);
  return next;
}

/** Refuses what SET will refuse, before anything runs. @throws {DatabaseError} INVALID_OPTION */
export function requireSettable(node: SetStatement, limits: SqlLimits): void {
  readChange(node, limits);
}

function defaultOf(name: SettingName, { timeoutMs }: SqlLimits): string {
  switch (name) {
    case "statement_timeout":
      return String(timeoutMs);
    case "timezone":
      return "UTC";
    case "application_name":
      return "";
  }
}

function readChange(node: SetStatement, limits: SqlLimits): Change {
  if (node.type === "set timezone") {
    const { to } = node;
    const value = to.type === "value" ? readZone(to.value, node) : undefined;
    return { name: "timezone", value, isLocal: false };
  }
  const { scope, set, variable } = node;
  const name = NAMES.find((each) => each === variable.name.toLowerCase());
  if (name === undefined) {
    throw invalid(node, `Cannot set "${variable.name}": no statement can change it`, {
      hint: "a request sets statement_timeout, timezone and application_name; other settings are in the configuration",
    });
  }
  const isLocal = scope === "local";
  if (set.type === "default") return { name, value: undefined, isLocal };
  const text = textOf(set);
  if (text === undefined) {
    throw invalid(node, `Cannot set ${name}: a text or number is needed`);
  }
  switch (name) {
    case "statement_timeout":
      return { name, value: String(readTimeout(text, node, limits)), isLocal };
    case "timezone":
      return { name, value: readZone(text, node), isLocal };
    case "application_name":
      return { name, value: text, isLocal };
  }
}

function textOf(set: Exclude<SetValue, { type: "default" }>): string | undefined {
  if (set.type === "identifier") return set.name;
  switch (set.value.type) {
    case "integer":
    case "numeric":
      return set.value.text;
    case "string":
    case "boolean":
      return String(set.value.value);
    case "bytes":
    case "null":
      return undefined;
  }
}

function readTimeout(text: string, node: SetStatement, { timeoutMs }: SqlLimits): number {
  const [, digits = "", unit = "ms"] =
    /^(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)?$/.exec(text.trim().toLowerCase()) ?? [];
  if (digits === "") {
    throw invalid(
      node,
      `Cannot set statement_timeout to ${excerpt(text)}: it is no length of time`,
      {
        hint: "milliseconds, or a number with ms, s, min, h or d",
      },
    );
  }
  const ms = Math.round(Number(digits) * (UNIT_MS.get(unit) ?? 1));
  if (timeoutMs > 0 && (ms === 0 || ms > timeoutMs)) {
    throw invalid(
      node,
      `Cannot set statement_timeout to ${excerpt(text)}: performance.request_timeout is ${timeoutMs} ms`,
      { hint: "a smaller one, or DEFAULT" },
    );
  }
  return ms;
}

function readZone(text: string, node: SetStatement): string {
  if (text.toLowerCase() === "utc") return "UTC";
  throw invalid(node, `Cannot set timezone to ${excerpt(text)}: the zone of a request is UTC`, {
    hint: "AT TIME ZONE computes in other zones",
  });
}

function invalid(
  { _location }: SetStatement,
  message: string,
  details: { readonly hint?: string } = {},
): DatabaseError {
  return new DatabaseError("INVALID_OPTION", message, { position: _location.start, ...details });
}
