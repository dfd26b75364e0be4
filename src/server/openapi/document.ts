/**
 * Builds the OpenAPI 3.1 document for `GET /v1/openapi.json` from the routes. Responses common to
 * all endpoints of a kind are added here, so that no operation has to repeat them.
 */
import type { ErrorShape } from "../http/http_error.ts";
import type {
  Content,
  Operation,
  OperationAnswer,
  RequiredCredentials,
} from "../http/operation.ts";
import type { Method } from "../http/route.ts";
import type { Endpoints } from "../http/router.ts";
import { reference, SCHEMAS } from "./schemas.ts";

/** Returns the OpenAPI document as JSON text. */
export function openApiText(
  { prefixes, routes }: Endpoints,
  { basePath, version }: { basePath: string; version: string },
): string {
  const paths: Record<string, object> = {};
  for (const { path, ...served } of routes) paths[path] = pathItem(served);
  for (const { prefix, template, ...served } of prefixes) {
    paths[prefix + template] = pathItem(served);
  }
  return JSON.stringify({
    openapi: "3.1.0",
    info: {
      title: "Tidemark",
      version,
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
      description:
        "A SQL database server with live queries: clients can subscribe to the result of a " +
        "query. Every path that serves GET also serves HEAD, and all paths serve OPTIONS. " +
        "Clients should ignore fields that they do not know.",
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    paths,
    components: {
      schemas: SCHEMAS,
      headers: {
        RequestId: {
          description:
            "The request's X-Request-ID, or one that the server generated if the request had none",
          schema: { type: "string", pattern: "^[A-Za-z0-9._:-]{1,128}$" },
        },
      },
      responses: {
        Failure: failure("B", "The request failed"),
        PlainFailure: failure("A", "The request failed"),
        TopicFailure: failure("C", "The request failed"),
      },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
        cookie: { type: "apiKey", in: "cookie", name: "tidemark_auth" },
        refreshCookie: { type: "apiKey", in: "cookie", name: "tidemark_refresh" },
      },
    },
  });
}

interface ServedOperation {
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
}

const ERROR_SCHEMAS = {
  A: "PlainError",
  B: "SqlResponse",
  C: "TopicError",
  events: "SqlResponse",
} as const;

const FAILURES: Readonly<Record<ErrorShape, string>> = {
  A: "PlainFailure",
  B: "Failure",
  C: "TopicFailure",
  events: "Failure",
};

const SECURITY: Readonly<Record<RequiredCredentials, readonly object[]>> = {
  anyone: [],
  local: [],
  bearer: [{ bearer: [] }],
  "bearer or cookie": [{ bearer: [] }, { cookie: [] }],
  "any token or none": [{}, { bearer: [] }, { cookie: [] }, { refreshCookie: [] }],
  "refresh token": [{}, { bearer: [] }, { refreshCookie: [] }],
  "bearer or address": [{ bearer: [] }, {}],
};

function pathItem(served: ServedOperation): object {
  const { access, body, description, id, messages, parameters, summary, tag } = served.operation;
  return {
    [served.method.toLowerCase()]: {
      operationId: id,
      tags: [tag],
      summary,
      ...(description === undefined ? {} : { description }),
      security: SECURITY[access],
      ...(parameters === undefined ? {} : { parameters }),
      ...(body === undefined
        ? {}
        : { requestBody: { required: body.required, content: bodyContent(body) } }),
      responses: responsesOf(served),
      // OpenAPI has no standard form for socket messages, so an extension ("x-") is used.
      ...(messages === undefined ? {} : { "x-websocket-messages": messages }),
    },
  };
}

function responsesOf(served: ServedOperation): object {
  const { operation, shape } = served;
  const responses: Record<string, object> = {};
  for (const [status, codes] of errorsOf(served)) {
    // Every endpoint reports a failed check of the bearer token in the same form.
    const form = shape === "C" && status === 401 ? "B" : shape;
    responses[status] = failure(form, [...codes].join(", "));
  }
  // The operation's own responses take precedence, because a probe reports some failures in its
  // own form.
  for (const [status, answer] of Object.entries(operation.answers)) {
    responses[status] = response(answer);
  }
  const component = FAILURES[shape];
  return { ...responses, default: { $ref: `#/components/responses/${component}` } };
}

/**
 * Returns the error codes by status: the operation's own, and those common to all endpoints of its
 * kind.
 */
function errorsOf({
  method,
  operation,
  shape,
}: ServedOperation): ReadonlyMap<number, ReadonlySet<string>> {
  const byStatus = new Map<number, Set<string>>();
  const add = (status: number, codes: readonly string[]): void => {
    const known = byStatus.get(status) ?? new Set();
    for (const code of codes) known.add(code);
    byStatus.set(status, known);
  };
  for (const [status, codes] of Object.entries(operation.errors ?? {})) add(Number(status), codes);
  // The auth endpoints, whose errors have shape A, use the code "unauthorized" instead.
  if (operation.access.startsWith("bearer") && shape !== "A") {
    add(401, ["MISSING_AUTHORIZATION", "TOKEN_EXPIRED", "INVALID_CREDENTIALS"]);
    add(503, ["AUTHENTICATION_ERROR"]);
  }
  if (operation.access === "local") add(403, ["forbidden", "host_not_allowed"]);
  if (method === "POST") {
    add(413, ["BODY_TOO_LARGE"]);
    add(415, [shape === "A" ? "unsupported_media_type" : "UNSUPPORTED_MEDIA_TYPE"]);
  }
  add(429, ["RATE_LIMIT_EXCEEDED"]);
  add(503, ["TOO_MANY_CONNECTIONS", "SHUTTING_DOWN"]);
  return byStatus;
}

function failure(shape: ErrorShape, description: string): object {
  const schema = reference(ERROR_SCHEMAS[shape]);
  return response({ description, content: { "application/json": schema } });
}

function response({ content, description, headers = {} }: OperationAnswer): object {
  const own = Object.entries(headers).map(([name, meaning]) => [
    name,
    { description: meaning, schema: { type: "string" } },
  ]);
  return {
    description,
    headers: {
      "X-Request-ID": { $ref: "#/components/headers/RequestId" },
      ...Object.fromEntries(own),
    },
    ...(content === undefined ? {} : { content: mediaTypes(content) }),
  };
}

function bodyContent({ content, example }: NonNullable<Operation["body"]>): object {
  const types = mediaTypes(content);
  if (example === undefined) return types;
  const json = "application/json";
  return { ...types, [json]: { schema: content[json], example } };
}

function mediaTypes(content: Content): object {
  return Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]));
}
