/**
 * Handles range requests (RFC 9110, section 14): the response is a single byte range or the entire
 * content.
 */

/** Offsets of the first and last byte, both inclusive. */
export interface RequestedRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Matches a range header with a single range. Each whitespace character can match only one part of
 * the pattern, so matching never backtracks.
 */
const RANGE = /^bytes\s*=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i;

/**
 * Returns the range that a Range header selects from `size` bytes. Returns "whole" for several
 * ranges or an invalid range, because both are answered with the entire content.
 */
export function rangeOf(
  header: string | null,
  size: number,
): RequestedRange | "whole" | "unsatisfiable" {
  const match = RANGE.exec(header ?? "");
  if (match === null) return "whole";
  const [, firstText = "", lastText = ""] = match;
  if (firstText === "") {
    if (lastText === "") return "whole";
    const count = Number(lastText);
    if (count === 0 || size === 0) return "unsatisfiable";
    return { first: Math.max(0, size - count), last: size - 1 };
  }
  const first = Number(firstText);
  const last = lastText === "" ? size - 1 : Number(lastText);
  if (lastText !== "" && last < first) return "whole";
  if (first >= size) return "unsatisfiable";
  return { first, last: Math.min(last, size - 1) };
}

/** Returns whether a list of entity tags (`If-None-Match`) contains a tag. Weak tags also match. */
export function hasTag(header: string | null, tag: string): boolean {
  if (header === null) return false;
  return header.split(",").some((part) => {
    const candidate = part.trim();
    return candidate === "*" || candidate === tag || candidate === `W/${tag}`;
  });
}
