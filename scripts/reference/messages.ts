/**
 * Writes `docs/reference/websocket-messages.md`: every message on `/v1/ws`, field by field, from
 * the schemas in `/v1/openapi.json`. These schemas are tied to the types in
 * `src/protocol/messages.ts`.
 */
import type { Schema } from "../../src/server/http/operation.ts";
import {
  CLIENT_MESSAGES,
  MESSAGE_SCHEMAS,
  SERVER_MESSAGES,
} from "../../src/server/openapi/message_schemas.ts";
import { SCHEMAS } from "../../src/server/openapi/schemas.ts";
import { code, GENERATED, markdownTable } from "./markdown.ts";

/**
 * The schemas of parts that several messages share, in the order in which the page describes them.
 */
const PARTS: readonly (keyof typeof SCHEMAS)[] = [
  "Subscription",
  "SubscribeOptions",
  "BatchControl",
  "SchemaField",
  "TopicMessage",
  "TopicStart",
];

export function messagesPage(): string {
  const described: ReadonlySet<string> = new Set([
    "ClientMessage",
    "ServerMessage",
    ...CLIENT_MESSAGES,
    ...SERVER_MESSAGES,
    ...PARTS,
  ]);
  const missing = Object.keys(MESSAGE_SCHEMAS).filter((name) => !described.has(name));
  if (missing.length > 0) throw new Error(`Cannot describe messages: ${missing.join(", ")} lack`);
  const ofClient = CLIENT_MESSAGES.map((name) => section(typeOf(name), SCHEMAS[name]));
  const ofServer = SERVER_MESSAGES.map((name) => section(typeOf(name), SCHEMAS[name]));
  const parts = PARTS.map((name) => section(name, SCHEMAS[name]));
  return `${GENERATED}

# WebSocket messages

The fields of every message on \`/v1/ws\`. [websocket.md](../websocket.md)
describes their order. A client ignores fields and message types that it does not know.

## From the client

${ofClient.join("\n\n")}

## From the server

${ofServer.join("\n\n")}

## Parts of messages

${parts.join("\n\n")}
`;
}

function typeOf(name: keyof typeof MESSAGE_SCHEMAS): string {
  const type = SCHEMAS[name].properties?.["type"]?.const;
  if (type === undefined) throw new Error(`Cannot describe ${name}: it has no type`);
  return type;
}

function section(title: string, { properties = {}, required = [] }: Schema): string {
  const rows = Object.entries(properties).map(([name, schema]) => [
    code(name),
    required.includes(name) ? "always" : "optional",
    kindOf(schema),
    schema.description ?? "",
  ]);
  return `### ${title}\n\n${markdownTable(["field", "presence", "value", "meaning"], rows)}`;
}

function kindOf(schema: Schema): string {
  const { anyOf, items, properties, type } = schema;
  if (schema.$ref !== undefined) return linkTo(schema.$ref);
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) {
    const isNullable = Array.isArray(type) && type.includes("null");
    const words = schema.enum.map((word) => code(JSON.stringify(word)));
    return [...words, ...(isNullable ? ["null"] : [])].join(", ");
  }
  if (anyOf !== undefined) return anyOf.map(kindOf).join(" or ");
  if (type === "array")
    return `list of ${items?.$ref === undefined ? "values" : linkTo(items.$ref)}`;
  if (properties !== undefined) {
    const fields = Object.entries(properties).map(
      ([name, each]) => `${code(name)}: ${kindOf(each)}`,
    );
    return `object with ${fields.join("; ")}`;
  }
  return [type ?? "any"].flat().join(", ").replaceAll("string", "text");
}

function linkTo(reference: string): string {
  const name = reference.slice(reference.lastIndexOf("/") + 1);
  return `[${name}](#${name.toLowerCase()})`;
}
