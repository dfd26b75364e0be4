/** Defines the rule for the values of one configuration key. */

/** The form of a string, with the words that describe it. */
export interface TextForm {
  readonly pattern: RegExp;
  /** Checks what the pattern cannot express, for a string that matches it. */
  readonly isFitting?: (text: string) => boolean;
  /** The end of an error message, after "should be". */
  readonly expected: string;
}

type RuleType = "text" | "whole" | "number" | "boolean" | "list" | "levels";

/** The rule that the values of a key have to follow. */
export interface KeyRule<Value = unknown> {
  readonly type: RuleType;
  readonly initial: Value;
  readonly description: string;
  /**
   * The default as a fraction of the memory that the runtime leaves (`memory.ts`), if that is less
   * than `initial`.
   */
  readonly share?: number;
  /** The bounds of a number, both inclusive. */
  readonly min?: number;
  readonly max?: number;
  /** The allowed values of a string; any string if absent. */
  readonly words?: readonly string[];
  /** The form that a string, or each item of a list, must have. */
  readonly form?: TextForm;
  /** True if the value is never shown, neither in messages nor in settings. */
  readonly isSecret?: boolean;
  /** Whether the feature does not exist yet, so that only the default is accepted. */
  readonly isUnavailable?: boolean;
  /** The name of the short environment variable, which exists in addition to the long name. */
  readonly environment?: string;
}
