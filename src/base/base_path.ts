/**
 * Validates base paths. A base path is the path below which a proxy offers the server, such as
 * `/db`.
 */

/** The first segments of the server's own paths, with which no base path may begin. */
const OWN_SEGMENTS = "api|health|metrics|ui|v1";

/**
 * Matches a path segment that is neither "." nor ".." and contains no character that would have to
 * be escaped in a header or a document.
 */
const SEGMENT = String.raw`\/(?!\.{1,2}(?:\/|$))[\w.~-]+`;

const BASE_PATH = new RegExp(`^(?!\\/(?:${OWN_SEGMENTS})(?:\\/|$))(?:${SEGMENT})+$`);

const LENGTH_MAX = 256;

export function isBasePath(text: string): boolean {
  return text.length <= LENGTH_MAX && BASE_PATH.test(text);
}
