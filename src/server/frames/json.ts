/**
 * Messages as JSON text.
 *
 * A whole number beyond 2^53 − 1 is a decimal string on the JSON side of the wire, and a 64-bit
 * integer on the MessagePack side; messages hold it as bigint so that each can write its own.
 */
import type { ServerMessage } from "../../protocol/mod.ts";

export function jsonFromMessage(message: ServerMessage): string {
  try {
    return JSON.stringify(message);
  } catch (error) {
    // JSON.stringify refuses bigint. Values that need it are rare, and a replacer costs every
    // other message five times its encoding.
    if (!(error instanceof TypeError)) throw error;
    return JSON.stringify(message, (_key, value: unknown) =>
      typeof value === "bigint" ? value.toString() : value,
    );
  }
}
