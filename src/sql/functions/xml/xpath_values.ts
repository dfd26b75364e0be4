/** Converts XPath values between their types: node sets, strings, numbers and booleans. */

export type XPathValue = readonly number[] | string | number | boolean;

/** Reads the string values of nodes. */
export interface NodeStrings {
  stringOf(node: number): string;
}

export function booleanOf(value: XPathValue): boolean {
  if (typeof value === "number") return value !== 0 && !Number.isNaN(value);
  if (typeof value === "boolean") return value;
  return value.length > 0;
}

export function numberOf(nodes: NodeStrings, value: XPathValue): number {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return numberOfText(textOf(nodes, value));
}

/** Reads an XPath number. Any string that is not a number becomes NaN. */
export function numberOfText(text: string): number {
  const trimmed = text.replaceAll(/^[ \t\r\n]+|[ \t\r\n]+$/g, "");
  return /^-?(?:\d+(?:\.\d*)?|\.\d+)$/.test(trimmed) ? Number(trimmed) : Number.NaN;
}

/** Converts an XPath value to a string. A node set has the string value of its first node. */
export function textOf(nodes: NodeStrings, value: XPathValue): string {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value === "number") return textOfNumber(value);
  const [first] = value;
  return first === undefined ? "" : nodes.stringOf(first);
}

/**
 * Writes a number as PostgreSQL's XPath does: with an exponent if it is very large or very small,
 * and otherwise with about 15 digits.
 */
function textOfNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 31) return String(value + 0);
  const size = Math.abs(value);
  if (size > 1e9 || size < 1e-5) {
    const [digits = "", exponent = ""] = value.toExponential(14).split("e");
    return `${withoutZeros(digits)}e${exponent.replace(/^([+-])(\d)$/, "$10$2")}`;
  }
  const places = Math.trunc(Math.log10(size));
  return withoutZeros(value.toFixed(places > 0 ? 14 - places : 15 - places));
}

function withoutZeros(digits: string): string {
  return digits.replace(/\.?0+$/, "");
}
