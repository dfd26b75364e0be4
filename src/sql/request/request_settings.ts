/**
 * SET, RESET and SHOW: settings that one request changes for its later statements.
 *
 * Invariant: the effect of SET LOCAL ends with its transaction, and ROLLBACK restores the settings
 * at BEGIN.
 */
import { DatabaseError } from "../../base/errors.ts";
import { excerpt } from "../../types/mod.ts";
import type {
  SetConfigStatement,
  SetStatementVariable,
  SetTimezone,
  SetValue,
} from "../parse/ast/ast.ts";
import type { SqlLimits } from "../ports/environment.ts";
import type { ShownSetting } from "../ports/ports.ts";
import { fixedSettings, SETTING_KINDS, settingKind } from "./setting_kinds.ts";

type SettingStatement = SetStatementVariable | SetTimezone | SetConfigStatement;

interface SettingChange {
  readonly name: string;
  /** The new value; undefined for DEFAULT. */
  readonly value: string | undefined;
  readonly isLocal: boolean;
}

/** The settings that differ from those at the beginning of the request. */
type Changed = ReadonlyMap<string, string>;

/** A state of the settings within a transaction. */
export interface SettingsMark {
  readonly changed: Changed;
  readonly lasting: Changed;
}

export class RequestSettings {
  readonly #limits: SqlLimits;
  #changed: Changed = new Map();
  /** The settings at BEGIN. */
  #before: Changed | undefined;
  /** The settings after COMMIT, without those set for the transaction only. */
  #lasting: Changed = new Map();

  constructor(limits: SqlLimits) {
    this.#limits = limits;
  }

  /** The statement timeout set by SET; undefined if the request's own time applies. */
  get statementTimeoutMs(): number | undefined {
    const text = this.#changed.get("statement_timeout");
    return text === undefined || text === "0" ? undefined : Number(text);
  }

  /** @param version The version of the server. */
  rows(version: string): readonly ShownSetting[] {
    const rows = SETTING_KINDS.map(({ description, name }): ShownSetting => {
      return { name, value: this.#valueOf(name), category: "request", description };
    });
    const description = "For programs that ask; nobody can set it";
    for (const { name, value } of fixedSettings(version)) {
      rows.push({ name, value, category: "fixed", description });
    }
    return rows;
  }

  /**
   * Applies SET, and returns the value that is set. @throws {DatabaseError} INVALID_OPTION,
   * TRANSACTION_REQUIRED
   */
  set(node: SettingStatement): { readonly name: string; readonly value: string } {
    const change = readChange(node, this.#limits);
    if (change.isLocal && this.#before === undefined) {
      throw new DatabaseError("TRANSACTION_REQUIRED", "Cannot SET LOCAL: no transaction is open", {
        position: node._location.start,
        hint: "SET applies to the rest of the request",
      });
    }
    this.#changed = withChange(this.#changed, change);
    if (!change.isLocal) this.#lasting = withChange(this.#lasting, change);
    const { name } = change;
    return { name, value: this.#valueOf(name) };
  }

  /** Sets every setting to its default. */
  resetAll(): void {
    this.#changed = new Map();
    this.#lasting = new Map();
  }

  #valueOf(name: string): string {
    return this.#changed.get(name) ?? settingKind(name)?.defaultOf(this.#limits) ?? "";
  }

  mark(): SettingsMark {
    return { changed: this.#changed, lasting: this.#lasting };
  }

  /** Undoes each SET since a mark of the open transaction. */
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

/** Refuses a SET that would fail, before anything runs. @throws {DatabaseError} INVALID_OPTION */
export function requireSettable(node: SettingStatement, limits: SqlLimits): void {
  // The parser leaves only an empty one.
  if (node.type === "set config" && node.name.toLowerCase() === "search_path") return;
  readChange(node, limits);
}

function readChange(node: SettingStatement, limits: SqlLimits): SettingChange {
  switch (node.type) {
    case "set timezone": {
      const { to } = node;
      const value = to.type === "value" ? valueOf(node, limits, ["timezone", to.value]) : undefined;
      return { name: "timezone", value, isLocal: false };
    }
    case "set config": {
      const name = nameOf(node, node.name);
      return { name, value: valueOf(node, limits, [name, node.value]), isLocal: node.isLocal };
    }
    case "set":
      break;
  }
  const { scope, set, variable } = node;
  const name = nameOf(node, variable.name);
  const isLocal = scope === "local";
  if (set.type === "default") return { name, value: undefined, isLocal };
  const text = textOf(set);
  if (text === undefined) {
    throw invalid(node, `Cannot set ${name}: a text or a number is needed`);
  }
  return { name, value: valueOf(node, limits, [name, text]), isLocal };
}

/** @throws {DatabaseError} INVALID_OPTION */
function nameOf(node: SettingStatement, given: string): string {
  const kind = settingKind(given);
  if (kind !== undefined) return kind.name;
  throw invalid(node, `Cannot set "${excerpt(given)}": no statement can change it`, {
    hint: "SHOW ALL lists the settings; those of category request can be set",
  });
}

/** @throws {DatabaseError} INVALID_OPTION */
function valueOf(
  node: SettingStatement,
  limits: SqlLimits,
  [name, text]: readonly [name: string, text: string],
): string {
  const read = settingKind(name)?.read(text, limits) ?? "";
  if (typeof read === "string") return read;
  const { hint, why } = read;
  throw invalid(
    node,
    `Cannot set ${name} to ${excerpt(text)}: ${why}`,
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
  { _location }: SettingStatement,
  message: string,
  details: { readonly hint?: string } = {},
): DatabaseError {
  return new DatabaseError("INVALID_OPTION", message, { position: _location.start, ...details });
}
