/**
 * Parses CREATE, ALTER and DROP WEBHOOK.
 */
import type {
  AlterWebhookStatement,
  CreateWebhookStatement,
  DropWebhookStatement,
} from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { acceptIfExists, acceptIfNotExists } from "./ddl.ts";
import { parseNameOrString, parseOptions } from "./options.ts";

/** Parses the rest of a statement after `CREATE WEBHOOK`. */
export function parseCreateWebhook(cursor: Cursor, start: number): CreateWebhookStatement {
  const ifNotExists = acceptIfNotExists(cursor);
  const name = parseNameOrString(cursor, "a webhook");
  cursor.expectAll("from", "topic");
  const topic = cursor.qname("a topic");
  cursor.expect("url");
  const urlStart = cursor.start;
  const url = cursor.takeString();
  const secret = cursor.accept("secret") ? cursor.takeString() : undefined;
  const options = cursor.accept("with") ? parseOptions(cursor) : undefined;
  const _location = cursor.since(start);
  return {
    type: "create webhook",
    name,
    ifNotExists,
    topic,
    url,
    urlStart,
    secret,
    options,
    _location,
  };
}

/** Parses the rest of a statement after `ALTER WEBHOOK`. */
export function parseAlterWebhook(cursor: Cursor, start: number): AlterWebhookStatement {
  const name = parseNameOrString(cursor, "a webhook");
  const change = parseAlteration(cursor);
  return { type: "alter webhook", name, change, _location: cursor.since(start) };
}

function parseAlteration(cursor: Cursor): AlterWebhookStatement["change"] {
  if (cursor.expectOneOf("set", "drop") === "drop") {
    cursor.expect("secret");
    return { type: "drop secret" };
  }
  if (cursor.accept("url")) {
    const urlStart = cursor.start;
    return { type: "set url", url: cursor.takeString(), urlStart };
  }
  if (cursor.accept("secret")) return { type: "set secret", secret: cursor.takeString() };
  return { type: "set options", options: parseOptions(cursor) };
}

/** Parses the rest of a statement after `DROP WEBHOOK`. */
export function parseDropWebhook(cursor: Cursor, start: number): DropWebhookStatement {
  const ifExists = acceptIfExists(cursor);
  const name = parseNameOrString(cursor, "a webhook");
  return { type: "drop webhook", name, ifExists, _location: cursor.since(start) };
}
