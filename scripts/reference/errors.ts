/**
 * Writes `docs/reference/errors.md`: every code with its status, its reason and what to do about
 * it. Codes and statuses come from the tables of the protocol and from `/v1/openapi.json`; the
 * notes are in `error_notes.ts`.
 */
import type { ErrorCode } from "../../src/base/error_code.ts";
import {
  endsSubscription,
  type SubscriptionCode,
  type TopicCode,
  topicErrorOf,
  wireErrorOf,
} from "../../src/protocol/mod.ts";
import { startTestServer } from "../../tests/support/http.ts";
import { CONDITION_NOTES, HTTP_NOTES, SUBSCRIPTION_NOTES, TOPIC_NOTES } from "./error_notes.ts";
import { code, GENERATED, markdownTable } from "./markdown.ts";

interface Described {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<Record<string, { responses: Readonly<Record<string, { description?: string }>> }>>
    >
  >;
}

export async function errorsPage(): Promise<string> {
  const conditions = Object.entries(CONDITION_NOTES) as [ErrorCode, string][];
  const sql = conditions
    .map(([condition, note]) => {
      const { reason, status, sqlstate = "", ...wire } = wireErrorOf(condition);
      return { code: wire.code, reason, status, sqlstate, note };
    })
    .toSorted((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0));
  const topicStatus = new Map(
    conditions.map(([condition]) => {
      const { code: topicCode, status } = topicErrorOf(condition);
      return [topicCode, status] as const;
    }),
  );
  const topics = Object.entries(TOPIC_NOTES) as [TopicCode, string][];
  const subscriptions = Object.entries(SUBSCRIPTION_NOTES) as [SubscriptionCode, string][];
  return `${GENERATED}

# Errors

A program decides by \`code\` (and \`reason\`), never by \`message\`, whose wording may change.

## Statements

\`POST /v1/api/sql\` and \`/v1/files/…\` answer these as \`error.code\`. The code \`SQL_EXECUTION_ERROR\` has
a finer \`error.reason\`. If a later statement of a request fails, \`results\` list the statements that
completed, and the status is that of the error.

${markdownTable(
  ["code", "reason", "status", "SQLSTATE", "meaning"],
  sql.map((row) => [
    code(row.code),
    row.reason === undefined ? "" : code(row.reason),
    String(row.status),
    row.sqlstate,
    row.note,
  ]),
)}

## Requests

These come before a statement runs, or from endpoints without SQL. Endpoints below \`/v1/api/auth\` and
probes answer \`{"error": code, "message": …}\`, endpoints of topics \`{"error": message, "code": …}\`;
the others answer \`{"status": "error", "error": {"code": …}}\`.

${await requestTable()}

## Subscriptions

The message \`error\` on \`/v1/ws\`, and the event \`subscription_error\` on \`/v1/api/live\`, have these codes.
After a code that ends it, no subscription of that id exists.

${markdownTable(
  ["code", "ends the subscription", "meaning"],
  subscriptions.map(([name, note]) => [code(name), endsSubscription(name) ? "yes" : "no", note]),
)}

## Topics

The endpoints below \`/v1/api/topics\` answer these as \`code\`, and so does the message \`topic_error\` on
\`/v1/ws\`.

${markdownTable(
  ["code", "status", "meaning"],
  topics.map(([name, note]) => [code(name), String(topicStatus.get(name)), note]),
)}
`;
}

async function requestTable(): Promise<string> {
  const server = await startTestServer();
  const answer = await server.fetch("/v1/openapi.json");
  const { paths } = (await answer.json()) as Described;
  await server.close();
  const known: ReadonlySet<string> = new Set([
    ...Object.keys(SUBSCRIPTION_NOTES),
    ...Object.keys(TOPIC_NOTES),
    ...(Object.keys(CONDITION_NOTES) as ErrorCode[]).map((each) => wireErrorOf(each).code),
  ]);
  const statuses = new Map<string, Set<string>>();
  const responses = Object.values(paths).flatMap((item) =>
    Object.values(item).flatMap((operation) => Object.entries(operation.responses)),
  );
  for (const [status, { description = "" }] of responses) {
    if (!/^[45]\d\d$/.test(status) || !/^\w+(?:, \w+)*$/.test(description)) continue;
    for (const name of description.split(", ")) {
      if (known.has(name) && HTTP_NOTES[name] === undefined) continue;
      statuses.set(name, (statuses.get(name) ?? new Set()).add(status));
    }
  }
  const missing = [...statuses.keys()].filter((name) => HTTP_NOTES[name] === undefined);
  const surplus = Object.keys(HTTP_NOTES).filter((name) => !statuses.has(name));
  if (missing.length + surplus.length > 0) {
    throw new Error(`HTTP_NOTES lacks ${missing.join(", ")}; surplus: ${surplus.join(", ")}`);
  }
  return markdownTable(
    ["code", "status", "meaning"],
    Object.entries(HTTP_NOTES).map(([name, note]) => [
      code(name),
      [...(statuses.get(name) ?? [])].join(", "),
      note,
    ]),
  );
}
