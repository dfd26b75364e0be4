/**
 * Range requests (RFC 9110, 14): one range of bytes, or the whole.
 */

/** Offsets of the first and last byte, both inclusive. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

/** Blanks that belong to one part of it only: a pattern that could part them tries each way. */
const RANGE = /^bytes\s*=\s*(?:(\d+)\s*)?-\s*(?:(\d+)\s*)?$/i;

/**
 * What a Range header asks of `size` bytes. "whole" also stands for several ranges and for what is
 * no range of bytes, both of which are answered with everything.
 */
export function rangeOf(
  header: string | null,
  size: number,
): ByteRange | "whole" | "unsatisfiable" {
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

/** Whether a list of entity tags (`If-None-Match`) has this one; weak tags count. */
export function hasTag(header: string | null, tag: string): boolean {
  if (header === null) return false;
  return header.split(",").some((part) => {
    const candidate = part.trim();
    return candidate === "*" || candidate === tag || candidate === `W/${tag}`;
  });
}
