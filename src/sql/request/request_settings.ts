/**
 * Implements SET, RESET, SHOW, set_config and current_setting, which change and read settings for
 * the later statements of the same request.
 *
 * Invariant: the effect of SET LOCAL ends with its transaction, and ROLLBACK restores the settings
 * to their values at BEGIN.
 */
import { DatabaseError } from "../../base/errors.ts";
import { excerpt } from "../../types/mod.ts";
import type { SetStatementVariable, SetTimezone, SetValue } from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { ShownSetting } from "../ports/ports.ts";
import { fixedSettings, isOwnName, SETTING_KINDS, settingKind } from "./setting_kinds.ts";

type SettingStatement = SetStatementVariable | SetTimezone;

/**
 * The dependencies of settings: the limits, and the configuration, whose names a request must not
 * use for its own settings.
 */
export type SettingDeps = Pick<SqlEnvironment, "limits" | "settings">;

/** The maximum number of settings that a request may define under its own names. */
const OWN_SETTINGS_MAX = 100;

/** A change to a setting, requested by a statement or a function call. */
interface AskedChange {
  readonly name: string;
  /** The new value of the setting; undefined for DEFAULT. */
  readonly value: string | undefined;
  readonly isLocal: boolean;
  /** The position of the setting in the SQL; undefined for a function call. */
  readonly position?: number;
}

interface SettingChange {
  readonly name: string;
  /** The new value of the setting; undefined for DEFAULT. */
  readonly value: string | undefined;
  readonly isLocal: boolean;
}

/** The values of the settings that have changed since the beginning of the request. */
type Changed = ReadonlyMap<string, string>;

/** A snapshot of the settings within a transaction. */
export interface SettingsMark {
  readonly changed: Changed;
  readonly lasting: Changed;
}

export class RequestSettings {
  readonly #deps: SettingDeps;
  #changed: Changed = new Map();
  /** The values of the settings at BEGIN. */
  #before: Changed | undefined;
  /** The settings that will remain changed after COMMIT. They exclude the effects of SET LOCAL. */
  #lasting: Changed = new Map();

  constructor(deps: SettingDeps) {
    this.#deps = deps;
  }

  /** The statement timeout set by SET; undefined if the time limit of the request applies. */
  get statementTimeoutMs(): number | undefined {
    const text = this.#changed.get("statement_timeout");
    return text === undefined || text === "0" ? undefined : Number(text);
  }

  /**
   * The longest wait for an advisory lock that SET has permitted; undefined if there is no limit.
   */
  get lockTimeoutMs(): number | undefined {
    const text = this.#changed.get("lock_timeout");
    return text === undefined || text === "0" ? undefined : Number(text);
  }

  /**
   * Returns all settings.
   *
   * @param namespace The namespace in which unqualified names are looked up.
   */
  rows({
    namespace,
    version,
  }: {
    readonly namespace: string;
    readonly version: string;
  }): readonly ShownSetting[] {
    const rows = SETTING_KINDS.map(({ description, name }): ShownSetting => {
      return { name, value: this.#valueOf(name), category: "request", description };
    });
    const description = "Exists only for programs that read it; cannot be changed";
    for (const { name, value } of fixedSettings(version)) {
      rows.push({ name, value, category: "fixed", description });
    }
    rows.push({
      name: "search_path",
      value: namespace,
      category: "request",
      description: "The namespace of unqualified names; changed with SET or USE NAMESPACE",
    });
    return rows;
  }

  /** Applies SET, and returns the new value. @throws {DatabaseError} */
  set(node: SettingStatement): { readonly name: string; readonly value: string } {
    return this.change(askedBy(node));
  }

  /**
   * Applies a change to a setting, and returns the new value.
   *
   * @throws {DatabaseError} INVALID_OPTION, TRANSACTION_REQUIRED
   */
  change(asked: AskedChange): { readonly name: string; readonly value: string } {
    const change = readChange(asked, this.#deps);
    const { name } = change;
    if (change.isLocal && this.#before === undefined) {
      throw new DatabaseError(
        "TRANSACTION_REQUIRED",
        "Cannot use SET LOCAL: no transaction is open",
        {
          ...placeOf(asked),
          hint: "use SET, which applies to the rest of the request",
        },
      );
    }
    if (!this.#changed.has(name) && this.#changed.size >= OWN_SETTINGS_MAX + SETTING_KINDS.length) {
      throw invalid(
        asked,
        `Cannot set ${name}: a request can define at most ${OWN_SETTINGS_MAX} settings of its own`,
      );
    }
    this.#changed = withChange(this.#changed, change);
    if (!change.isLocal) this.#lasting = withChange(this.#lasting, change);
    return { name, value: this.#valueOf(name) };
  }

  /** Returns the value of a setting; undefined if the request has no setting by this name. */
  current(name: string): string | undefined {
    const kind = settingKind(name);
    return kind === undefined ? this.#changed.get(name.toLowerCase()) : this.#valueOf(kind.name);
  }

  /** Sets every setting to its default. */
  resetAll(): void {
    this.#changed = new Map();
    this.#lasting = new Map();
  }

  #valueOf(name: string): string {
    return this.#changed.get(name) ?? settingKind(name)?.defaultOf(this.#deps.limits) ?? "";
  }

  mark(): SettingsMark {
    return { changed: this.#changed, lasting: this.#lasting };
  }

  /** Undoes every SET since a snapshot of the settings in the open transaction. */
  returnTo({ changed, lasting }: SettingsMark): void {
    this.#changed = changed;
    this.#lasting = lasting;
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

function withChange(changed: Changed, { name, value }: SettingChange): Changed {
  const next = new Map(changed);
  if (value === undefined) next.delete(name);
  else next.set(name, value);
  return next;
}

/**
 * Refuses a SET that would fail, before any statement runs. @throws {DatabaseError} INVALID_OPTION
 */
export function requireSettable(node: SettingStatement, deps: SettingDeps): void {
  readChange(askedBy(node), deps);
}

function askedBy(node: SettingStatement): AskedChange {
  const position = node._location.start;
  if (node.type === "set timezone") {
    const value = node.to.type === "value" ? node.to.value : undefined;
    return { name: "timezone", value, isLocal: false, position };
  }
  const { scope, set, variable } = node;
  const asked = { name: variable.name, isLocal: scope === "local", position };
  if (set.type === "default") return { ...asked, value: undefined };
  const value = textOf(set);
  if (value === undefined) {
    throw invalid(
      asked,
      `Cannot set ${excerpt(asked.name)}: the value must be a string or a number`,
    );
  }
  return { ...asked, value };
}

function readChange(asked: AskedChange, { limits, settings }: SettingDeps): SettingChange {
  const { isLocal, value } = asked;
  const kind = settingKind(asked.name);
  const name = kind?.name ?? asked.name.toLowerCase();
  if (kind === undefined && !isOwnName(name, settings())) {
    throw invalid(
      asked,
      `Cannot set "${excerpt(asked.name)}": statements cannot change this setting`,
      {
        hint:
          "statements can change the settings that SHOW ALL lists in the category request, and " +
          "settings whose name contains a dot",
      },
    );
  }
  if (kind === undefined || value === undefined) return { name, value, isLocal };
  const read = kind.read(value, limits);
  if (typeof read === "string") return { name, value: read, isLocal };
  const { hint, why } = read;
  throw invalid(
    asked,
    `Cannot set ${name} to ${excerpt(value)}: ${why}`,
    hint === undefined ? {} : { hint },
  );
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

function invalid(
  asked: Pick<AskedChange, "position">,
  message: string,
  details: { readonly hint?: string } = {},
): DatabaseError {
  return new DatabaseError("INVALID_OPTION", message, { ...placeOf(asked), ...details });
}

function placeOf({ position }: Pick<AskedChange, "position">): { readonly position?: number } {
  return position === undefined ? {} : { position };
}
