/** Reads the segments of a URL path that identifies a stored object, such as a file. */
import { invalidInput } from "./request_body.ts";

/**
 * Returns the decoded segments of a path.
 *
 * @param what The name of the object, for error messages.
 * @throws {DatabaseError} INVALID_INPUT if a segment could lead out of its directory.
 */
export function decodedSegments(path: string, what: string): string[] {
  return path.split("/").map((segment) => decodedSegment(segment, what));
}

function decodedSegment(segment: string, what: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(segment);
  } catch {
    // A URIError means malformed percent-encoding, which is the caller's mistake.
    throw invalidInput(`Cannot read ${what}: its path is not percent-encoded UTF-8`);
  }
  if (decoded === ".." || /[/\\\0]/.test(decoded)) {
    throw invalidInput(`Cannot read ${what}: its path contains a forbidden segment`);
  }
  return decoded;
}
