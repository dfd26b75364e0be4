/**
 * Checks the arguments of calls. In JavaScript, no compiler does this, so each call reports an
 * incorrect argument and shows an example of a correct one. Otherwise, a misspelt option would
 * silently have no effect.
 */

/** A requirement on a value: its description, and the check itself. */
export interface ValueRule {
  readonly should: string;
  readonly holds: (value: unknown) => boolean;
}

export type FieldRules = Readonly<Record<string, ValueRule>>;

/** Describes a client method in error messages. */
export interface Call {
  /** The verb phrase that follows "Cannot" in error messages, such as "log in". */
  readonly doing: string;
  readonly example: string;
}

export const TEXT: ValueRule = { should: "a string", holds: (value) => typeof value === "string" };

export const FILLED_TEXT: ValueRule = {
  should: "a non-empty string",
  holds: (value) => typeof value === "string" && value !== "",
};

export const FLAG: ValueRule = {
  should: "true or false",
  holds: (value) => typeof value === "boolean",
};

export const COUNT: ValueRule = {
  should: "a whole number of at least 0",
  holds: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
};

export const HANDLER: ValueRule = {
  should: "a function",
  holds: (value) => typeof value === "function",
};

export const OBJECT: ValueRule = {
  should: "an object",
  holds: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

export const SIGNAL: ValueRule = {
  should: "an AbortSignal",
  holds: (value) => typeof value === "object" && value !== null && "aborted" in value,
};

/** The rule for options that are checked elsewhere and have their own error messages. */
export const ANYTHING: ValueRule = { should: "anything", holds: () => true };

export function oneOf(...words: readonly string[]): ValueRule {
  return {
    should: words.map((word) => `"${word}"`).join(" or "),
    holds: (value) => typeof value === "string" && words.includes(value),
  };
}

/** Requires that a value satisfies a rule. @throws {TypeError} */
export function requireRule(name: string, value: unknown, { holds, should }: ValueRule): void {
  if (holds(value)) return;
  throw new TypeError(`Cannot use ${name}: it is ${kindOf(value)}, but must be ${should}`);
}

/**
 * Requires that the options are an object with known names. An undefined option counts as omitted.
 *
 * @throws {TypeError}
 */
export function requireOptions(call: Call, given: unknown, rules: FieldRules): void {
  if (!OBJECT.holds(given)) {
    throw new TypeError(
      `Cannot ${call.doing}: the options are ${kindOf(given)}, but must be an object; ` +
        `write ${call.example}`,
    );
  }
  for (const [name, value] of Object.entries(given as object)) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) throw unknownOption(call, name, Object.keys(rules));
    if (value !== undefined) requireRule(name, value, rule);
  }
}

function unknownOption({ doing, example }: Call, name: string, known: readonly string[]): Error {
  const nearest = known.reduce((best, each) =>
    distance(name, each) < distance(name, best) ? each : best,
  );
  const isNear =
    distance(name, nearest) <= Math.max(2, Math.floor(nearest.length / 3)) ||
    name.toLowerCase().startsWith(nearest.toLowerCase());
  const meant = isNear ? `; did you mean ${nearest}?` : ";";
  return new TypeError(
    `Cannot ${doing}: there is no option ${JSON.stringify(name)}${meant} The options are ${known.join(", ")}, as in ${example}`,
  );
}

/** Returns the edit distance of two names, ignoring case. */
function distance(given: string, known: string): number {
  const [left, right] = [given.toLowerCase(), known.toLowerCase()];
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}

/** Describes the type of a value for an error message. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === "number") return String(value);
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object") return `a ${typeof value}`;
  const maker: unknown = value.constructor;
  const isPlain = typeof maker !== "function" || maker.name === "Object" || maker.name === "";
  return isPlain ? "an object" : `an instance of ${maker.name}`;
}
