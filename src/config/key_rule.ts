/** Defines the rule for the values of one configuration key. */

/** The form that a string must have, and a description of this form. */
export interface TextForm {
  readonly pattern: RegExp;
  /**
   * Checks requirements that the pattern cannot express. It is called only for strings that match
   * the pattern.
   */
  readonly isFitting?: (text: string) => boolean;
  /** The description of the form, which follows "must be" in error messages. */
  readonly expected: string;
}

type RuleType = "text" | "whole" | "number" | "boolean" | "list" | "levels";

/** The rule that the values of a key have to follow. */
export interface KeyRule<Value = unknown> {
  readonly type: RuleType;
  readonly initial: Value;
  readonly description: string;
  /**
   * The default as a fraction of the memory that the runtime leaves (`memory.ts`), if this is less
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
  /** True if the value is a secret, which is shown neither in messages nor in `system.settings`. */
  readonly isSecret?: boolean;
  /** Whether the feature does not exist yet, so that only the default is accepted. */
  readonly isUnavailable?: boolean;
  /** The name of the short environment variable, which exists in addition to the long name. */
  readonly environment?: string;
}
