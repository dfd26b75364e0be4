/** Parses object names in strings, such as 'app.orders_id_seq'. */
import { DatabaseError } from "../../base/errors.ts";

/** An object name parsed from a string. `namespace` is undefined if the name is unqualified. */
export interface NameInText {
  readonly namespace: string | undefined;
  readonly name: string;
}

const NAME =
  /^\s*(?:("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)\s*\.\s*)?("(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)\s*$/u;

/**
 * Parses `name` or `namespace.name` from a string. Unquoted parts are folded to lower case.
 * @throws {DatabaseError} INVALID_NAME
 */
export function nameInText(text: string): NameInText {
  const [, first, second] = NAME.exec(text) ?? [];
  if (second === undefined) {
    throw new DatabaseError(
      "INVALID_NAME",
      `Cannot read ${JSON.stringify(text.slice(0, 128))} as a name: it must be "name" or ` +
        '"namespace.name"',
    );
  }
  return { namespace: first === undefined ? undefined : folded(first), name: folded(second) };
}

function folded(part: string): string {
  return part.startsWith('"') ? part.slice(1, -1).replaceAll('""', '"') : part.toLowerCase();
}
