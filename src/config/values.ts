/**
 * Checks a single configuration value, from the file or from the environment: its type, and
 * whether it is within the key's range.
 */
import type { LogLevel } from "../base/log.ts";
import type { KeyRule } from "./key_rule.ts";
import { LEVELS } from "./keys.ts";

/** Either the value of a key, or a description of the fault, phrased as the end of a sentence. */
export type Checked = { readonly value: unknown } | { readonly fault: string };

/** Checks a value that a TOML parser read. */
export function checkedFromToml(rule: KeyRule, value: unknown): Checked {
  const isOfType = TYPE_TESTS[rule.type](value);
  if (!isOfType) return { fault: `is ${kindOf(value)}, but must be ${expectedOf(rule)}` };
  return inRange(rule, value);
}

/** Checks the text of an environment variable. */
export function checkedFromText(rule: KeyRule, text: string): Checked {
  const value = valueFromText(rule, text);
  if (value === undefined) {
    return { fault: `is ${shown(rule, text)}, but must be ${expectedOf(rule)}` };
  }
  return inRange(rule, value);
}

/** Returns a value in readable form, with secrets hidden. */
function shown(rule: KeyRule, value: unknown): string {
  if (rule.isSecret === true) return "a hidden secret";
  return JSON.stringify(value);
}

/** Returns a description of the allowed values to follow "must be" in messages. */
function expectedOf(rule: KeyRule): string {
  switch (rule.type) {
    case "text":
      if (rule.words !== undefined) return oneOf(rule.words);
      return rule.form?.expected ?? "a string";
    case "whole":
      return `a whole number ${rangeOf(rule)}`;
    case "number":
      return `a number ${rangeOf(rule)}`;
    case "boolean":
      return "true or false";
    case "list":
      return (
        "a list of " +
        `strings${rule.form === undefined ? "" : `, each of them ${rule.form.expected}`}`
      );
    case "levels":
      return `a table that maps components to levels, each of them ${oneOf(LEVELS)}`;
  }
}

function rangeOf({ min = 0, max = Number.MAX_SAFE_INTEGER }: KeyRule): string {
  return max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
}

const TYPE_TESTS: Readonly<Record<KeyRule["type"], (value: unknown) => boolean>> = {
  text: (value) => typeof value === "string",
  whole: (value) => typeof value === "number" && Number.isSafeInteger(value),
  number: (value) => typeof value === "number" && Number.isFinite(value),
  boolean: (value) => typeof value === "boolean",
  list: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  levels: (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((item) => LEVELS.includes(item as LogLevel)),
};

/**
 * Checks whether a value of the correct type is within the range, among the allowed words, and in
 * the required form.
 */
function inRange(rule: KeyRule, value: unknown): Checked {
  const isFitting =
    typeof value === "number"
      ? value >= (rule.min ?? 0) && value <= (rule.max ?? Number.MAX_SAFE_INTEGER)
      : texts(value).every((text) => isWordOrForm(rule, text));
  if (!isFitting) return { fault: `is ${shown(rule, value)}, but must be ${expectedOf(rule)}` };
  if (rule.isUnavailable === true && !Bun.deepEquals(value, rule.initial)) {
    return { fault: "is not available yet; remove it" };
  }
  return { value: typeof value === "object" ? Object.freeze(value) : value };
}

function isWordOrForm(rule: KeyRule, text: string): boolean {
  if (rule.words !== undefined) return rule.words.includes(text);
  if (rule.form === undefined) return true;
  const { isFitting, pattern } = rule.form;
  return pattern.test(text) && isFitting?.(text) !== false;
}

function texts(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? (value as string[]) : [];
}

function valueFromText(rule: KeyRule, text: string): unknown {
  switch (rule.type) {
    case "text":
      return text;
    case "whole":
      return /^-?\d{1,16}$/.test(text) ? Number(text) : undefined;
    case "number":
      return /^-?\d{1,16}(?:\.\d{1,16})?$/.test(text) ? Number(text) : undefined;
    case "boolean":
      if (/^(?:true|1|yes|on)$/i.test(text)) return true;
      return /^(?:false|0|no|off)$/i.test(text) ? false : undefined;
    case "list":
      return itemsOf(text);
    case "levels": {
      const levels = Object.fromEntries(
        itemsOf(text).map((item) => item.split("=").map((part) => part.trim())),
      ) as unknown;
      return TYPE_TESTS.levels(levels) ? levels : undefined;
    }
  }
}

function itemsOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function oneOf(words: readonly string[]): string {
  return words.length === 1
    ? `"${words[0]}"`
    : `one of ${words.map((word) => `"${word}"`).join(", ")}`;
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "string":
      return "a string";
    case "boolean":
      return "a boolean";
    case "number":
      return kindOfNumber(value);
    default:
      return value instanceof Date ? "a date" : "a table";
  }
}

function kindOfNumber(value: number): string {
  if (!Number.isFinite(value)) return "infinite or NaN";
  if (!Number.isInteger(value)) return "a number with a fraction";
  return Number.isSafeInteger(value) ? "a whole number" : "a whole number too large for 53 bits";
}
