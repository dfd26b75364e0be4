/**
 * `GET /v1/openapi.json`: the endpoints as an OpenAPI 3.1 document, made from the routes that serve
 * them. What every endpoint of a kind may answer is added here, so that no operation repeats it.
 */
import type { ErrorShape } from "../http/http_error.ts";
import type { Access, Answer, Content, Operation } from "../http/operation.ts";
import type { Method } from "../http/route.ts";
import type { Endpoints } from "../http/router.ts";
import { reference, SCHEMAS } from "./schemas.ts";

/** Text of a JSON document. */
export function openApiText({ prefixes, routes }: Endpoints, version: string): string {
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
        "A SQL database server whose queries can be followed live. HEAD is answered wherever GET " +
        "is, OPTIONS everywhere. Readers ignore fields that they do not know.",
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      schemas: SCHEMAS,
      headers: {
        RequestId: {
          description: "The X-Request-ID of the request, or one that the server made",
          schema: { type: "string", pattern: "^[A-Za-z0-9._:-]{1,128}$" },
        },
      },
      responses: {
        Failure: failure("B", "The request failed"),
        PlainFailure: failure("A", "The request failed"),
      },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", bearerFormat: "JWT" },
        cookie: { type: "apiKey", in: "cookie", name: "tidemark_auth" },
        refreshCookie: { type: "apiKey", in: "cookie", name: "tidemark_refresh" },
      },
    },
  });
}

interface Served {
  readonly method: Method;
  readonly shape: ErrorShape;
  readonly operation: Operation;
}

const SECURITY: Readonly<Record<Access, readonly object[]>> = {
  anyone: [],
  local: [],
  bearer: [{ bearer: [] }],
  "bearer or cookie": [{ bearer: [] }, { cookie: [] }],
  "any token or none": [{}, { bearer: [] }, { cookie: [] }, { refreshCookie: [] }],
  "refresh token": [{}, { bearer: [] }, { refreshCookie: [] }],
  "bearer or address": [{ bearer: [] }, {}],
};

function pathItem(served: Served): object {
  const { access, body, description, id, parameters, summary, tag } = served.operation;
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
    },
  };
}

function responsesOf(served: Served): object {
  const { operation, shape } = served;
  const responses: Record<string, object> = {};
  for (const [status, codes] of errorsOf(served)) {
    responses[status] = failure(shape, [...codes].join(", "));
  }
  // A probe answers some failures in its own words.
  for (const [status, answer] of Object.entries(operation.answers)) {
    responses[status] = response(answer);
  }
  const component = shape === "A" ? "PlainFailure" : "Failure";
  return { ...responses, default: { $ref: `#/components/responses/${component}` } };
}

/** Codes by status: those of the operation, and those of every endpoint like it. */
function errorsOf({ method, operation, shape }: Served): ReadonlyMap<number, ReadonlySet<string>> {
  const byStatus = new Map<number, Set<string>>();
  const add = (status: number, codes: readonly string[]): void => {
    const known = byStatus.get(status) ?? new Set();
    for (const code of codes) known.add(code);
    byStatus.set(status, known);
  };
  for (const [status, codes] of Object.entries(operation.errors ?? {})) add(Number(status), codes);
  // The auth endpoints say "unauthorized" instead.
  if (operation.access.startsWith("bearer") && shape !== "A") {
    add(401, ["MISSING_AUTHORIZATION", "TOKEN_EXPIRED", "INVALID_CREDENTIALS"]);
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
  const schema = reference(shape === "A" ? "PlainError" : "SqlResponse");
  return response({ description, content: { "application/json": schema } });
}

function response({ content, description, headers = {} }: Answer): object {
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
