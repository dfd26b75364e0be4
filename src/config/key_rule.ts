/** Defines the rule for the values of a configuration key, and the functions that create rules. */
import type { LogLevel } from "../base/log.ts";

/** The form that a string must have, with a description of it. */
export interface TextForm {
  readonly pattern: RegExp;
  /**
   * Checks requirements that the pattern cannot express. Called only for strings that match the
   * pattern.
   */
  readonly isFitting?: (text: string) => boolean;
  /** The description of the form, which follows "must be" in error messages. */
  readonly expected: string;
}

type RuleType = "text" | "whole" | "number" | "boolean" | "list" | "levels";

/** The rule for the values of a key. */
export interface KeyRule<Value = unknown> {
  readonly type: RuleType;
  readonly initial: Value;
  readonly description: string;
  /**
   * The default as a fraction of the memory left by the runtime (`memory.ts`). It applies if it is
   * less than `initial`.
   */
  readonly share?: number;
  /** The bounds of a number, both inclusive. */
  readonly min?: number;
  readonly max?: number;
  /** The allowed values of a string; any string if absent. */
  readonly words?: readonly string[];
  /** The form that a string, or each item of a list, must have. */
  readonly form?: TextForm;
  /** Whether the value is a secret, which must not appear in messages or in `system.settings`. */
  readonly isSecret?: boolean;
  /** Whether the feature does not exist yet. If so, only the default is accepted. */
  readonly isUnavailable?: boolean;
  /** The short name of the environment variable, which exists in addition to the long name. */
  readonly environment?: string;
}

/** Requires a non-empty string. */
export const FILLED: TextForm = { pattern: /\S/, expected: "a non-empty string" };

/** The optional parts of a rule. */
type Extra = Pick<KeyRule, "form" | "environment" | "isSecret" | "isUnavailable" | "share">;

export function text(initial: string, description: string, extra: Extra = {}): KeyRule<string> {
  return { type: "text", initial, description, ...extra };
}

/** Returns the rule for an optional string. */
export function maybe(description: string, extra: Extra = {}): KeyRule<string | undefined> {
  return { type: "text", initial: undefined, description, form: FILLED, ...extra };
}

export function word<Word extends string>(
  initial: Word,
  words: readonly Word[],
  description: string,
  extra: Extra = {},
): KeyRule<Word> {
  return { type: "text", initial, words, description, ...extra };
}

/**
 * Returns the rule for a whole number. Without an upper bound, any integer that can be represented
 * exactly is allowed.
 */
export function whole(
  initial: number,
  [min, max = Number.MAX_SAFE_INTEGER]: readonly [min: number, max?: number],
  description: string,
  extra: Extra = {},
): KeyRule<number> {
  return { type: "whole", initial, min, max, description, ...extra };
}

export function number(
  initial: number,
  [min, max]: readonly [min: number, max: number],
  description: string,
  extra: Extra = {},
): KeyRule<number> {
  return { type: "number", initial, min, max, description, ...extra };
}

export function flag(initial: boolean, description: string, extra: Extra = {}): KeyRule<boolean> {
  return { type: "boolean", initial, description, ...extra };
}

/** Returns the rule for a flag whose default depends on other keys. */
export function maybeFlag(description: string): KeyRule<boolean | undefined> {
  return { type: "boolean", initial: undefined, description };
}

export function list(description: string, extra: Extra = {}): KeyRule<readonly string[]> {
  return listOf([], description, extra);
}

export function listOf(
  initial: readonly string[],
  description: string,
  extra: Extra = {},
): KeyRule<readonly string[]> {
  return { type: "list", initial, description, ...extra };
}

export function levels(
  description: string,
  extra: Extra,
): KeyRule<Readonly<Record<string, LogLevel>>> {
  return { type: "levels", initial: {}, description, ...extra };
}
