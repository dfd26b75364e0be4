/**
 * Verifies the OpenAPI description of the endpoints. The tests compare it with the server's route
 * table, check its structure by the rules of OpenAPI 3.1, and validate real responses against its
 * schemas.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { endpointsServed } from "../../support/endpoint_list.ts";
import { startTestServer, type TestServer } from "../../support/http.ts";
import { type Schema, schemaFaults } from "../../support/schema_faults.ts";

interface MediaType {
  readonly schema: Schema;
}

interface Response {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, MediaType>>;
}

interface Described {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Response>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

let server: TestServer;
let document: Document;
let text: string;

beforeAll(async () => {
  server = await startTestServer({
    script: () => ({
      results: [
        {
          schema: [{ name: "id", data_type: "BigInt", index: 0, flags: ["pk", "nn", "uq"] }],
          rows: [[7]],
          rowCount: 1,
          asUser: "ada",
        },
      ],
    }),
  });
  text = await (await server.fetch("/v1/openapi.json")).text();
  document = JSON.parse(text) as Document;
});

afterAll(async () => {
  expect(server.bugs).toEqual([]);
  await server.close();
});

function operations(): readonly (readonly [path: string, method: string, Described])[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, it]) => [path, method, it] as const),
  );
}

function operation(path: string, method: string): Described {
  const found = document.paths[path]?.[method];
  if (found === undefined) throw new Error(`There is no ${method} ${path}`);
  return found;
}

test("openapi.json is public, and is valid JSON of version 3.1", async () => {
  const answer = await server.fetch("/v1/openapi.json", {
    headers: { "X-Forwarded-For": "203.0.113.7" },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(document.openapi).toBe("3.1.0");
  expect(document.info).toMatchObject({ title: "Tidemark", version: "1.2.3" });
});

test("openapi.json contains exactly the routes of the route table", () => {
  const served = endpointsServed(server);
  const described = operations().map(([path, method]) => `${method.toUpperCase()} ${path}`);
  expect(described.toSorted()).toEqual(served.toSorted());
});

test("openapi.json describes nothing that the server does not have", async () => {
  for (const [path, method] of operations()) {
    const filled = path.replaceAll(/\{\w+\}/g, "x");
    const answer = await server.fetch(filled, { method: method.toUpperCase() });
    expect([filled, answer.status]).not.toEqual([filled, 405]);
    const isUnknown = answer.status === 404 && (await answer.text()).includes("There is no /v1");
    expect([filled, isUnknown]).toEqual([filled, false]);
  }
});

test("openapi.json follows the rules of OpenAPI", () => {
  const ids = operations().map(([, , { operationId }]) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const [path, , described] of operations()) {
    const { parameters = [], responses, security, summary } = described;
    expect(summary).not.toBe("");
    const inPath = parameters.filter((parameter) => parameter.in === "path");
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
    expect(inPath.map(({ name }) => name)).toEqual(named);
    for (const parameter of inPath) expect(parameter.required).toBe(true);
    for (const scheme of security.flatMap((it) => Object.keys(it))) {
      expect(Object.keys(document.components.securitySchemes)).toContain(scheme);
    }
    for (const [status, response] of Object.entries(responses)) {
      expect(status).toMatch(/^(?:[1-5]\d\d|default)$/);
      expect(response.description ?? response.$ref).toBeString();
    }
  }
});

test("openapi.json refers only to parts that it contains", () => {
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, target = ""]) => target);
  expect(references.length).toBeGreaterThan(20);
  for (const target of references) {
    let found: unknown = document;
    for (const step of target.slice(2).split("/")) {
      found = (found as Readonly<Record<string, unknown>>)[step];
    }
    expect([target, typeof found]).toEqual([target, "object"]);
  }
  for (const name of Object.keys(document.components.schemas)) {
    expect(references).toContain(`#/components/schemas/${name}`);
  }
});

/** Checks that a response matches the description of its path and status. */
async function expectDescribed(path: string, method: string, init: RequestInit): Promise<number> {
  const answer = await server.fetch(path, { method, ...init });
  const { responses } = operation(path, method.toLowerCase());
  const given = responses[String(answer.status)] ?? responses["default"];
  const response =
    given?.$ref === undefined
      ? given
      : document.components.responses[given.$ref.slice(given.$ref.lastIndexOf("/") + 1)];
  const schema = response?.content?.["application/json"]?.schema;
  if (schema === undefined) throw new Error(`${method} ${path} ${answer.status} has no schema`);
  expect(schemaFaults(await answer.json(), schema, document.components.schemas)).toEqual([]);
  return answer.status;
}

const PASSWORD = "correct horse 9";

test("openapi.json describes the actual responses, including refusals", async () => {
  const token = await server.token();
  const post = (body: unknown, headers: Record<string, string> = {}): RequestInit => ({
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  });
  const bearer = { Authorization: `Bearer ${token}` };
  const cases: readonly [method: string, path: string, init: RequestInit, status: number][] = [
    ["GET", "/v1/api/auth/status", {}, 200],
    ["POST", "/v1/api/auth/setup", post({}), 409],
    ["POST", "/v1/api/auth/login", post({ user: "ada", password: PASSWORD }), 200],
    ["POST", "/v1/api/auth/login", post({ user: "ada", password: "wrong" }), 401],
    ["POST", "/v1/api/auth/login", post("x", { "Content-Type": "text/plain" }), 415],
    ["POST", "/v1/api/auth/refresh", post({ refresh_token: token }), 401],
    ["GET", "/v1/api/auth/me", { headers: bearer }, 200],
    ["GET", "/v1/api/auth/me", {}, 401],
    ["POST", "/v1/api/sql", post({ sql: "SELECT 1" }, bearer), 200],
    ["POST", "/v1/api/sql", post({ sql: "SELECT 1" }), 401],
    ["POST", "/v1/api/sql", post({ sql: 1 }, bearer), 400],
    ["GET", "/v1/api/live", { headers: bearer }, 400],
    ["GET", "/v1/api/healthcheck", {}, 200],
    ["GET", "/health", { headers: { "X-Real-IP": "203.0.113.7" } }, 403],
    ["GET", "/v1/api/cluster/health", {}, 200],
    ["GET", "/health/live", {}, 200],
    ["GET", "/health/ready", {}, 200],
    ["GET", "/metrics", {}, 401],
    ["GET", "/v1/ws", {}, 426],
    ["GET", "/v1/openapi.json", {}, 200],
    ["POST", "/v1/api/auth/logout", post({}, bearer), 200],
  ];
  for (const [method, path, init, status] of cases) {
    const given = await expectDescribed(path, method, init);
    expect([method, path, given]).toEqual([method, path, status]);
  }
});

test("openapi.json describes the request bodies", () => {
  const faultsOf = (value: unknown, schema: Schema): readonly string[] =>
    schemaFaults(value, schema, document.components.schemas);
  const schemaOf = (path: string): Schema =>
    operation(path, "post").requestBody?.content["application/json"]?.schema ?? {};
  const request = { sql: "SELECT $1", params: [null, true, 1, "x"], check: true, timeout_ms: 5 };
  expect(faultsOf(request, schemaOf("/v1/api/sql"))).toEqual([]);
  expect(faultsOf({ params: {} }, schemaOf("/v1/api/sql"))).toHaveLength(2);
  const setup = { user: "ada", password: PASSWORD, root_password: PASSWORD, email: null };
  expect(faultsOf(setup, schemaOf("/v1/api/auth/setup"))).toEqual([]);
  expect(faultsOf({ user: "ada" }, schemaOf("/v1/api/auth/login"))).toHaveLength(1);
  const form = operation("/v1/api/sql", "post").requestBody?.content["multipart/form-data"];
  expect(form?.schema.required).toEqual(["sql"]);
});

test("a body whose schema names all its members is refused if it has any other member", async () => {
  const refused: string[] = [];
  for (const [path, { post }] of Object.entries(document.paths)) {
    const name = post?.requestBody?.content["application/json"]?.schema.$ref?.split("/").at(-1);
    if (document.components.schemas[name ?? ""]?.additionalProperties !== false) continue;
    // A server that has been set up does not read the body of a setup request.
    if (path.endsWith("/setup")) continue;
    const headers = { "Content-Type": "application/json" };
    const answer = await server.fetch(path, { method: "POST", headers, body: '{"surplus":1}' });
    expect(await answer.json()).toMatchObject({ error: "invalid_request" });
    refused.push(path);
  }
  expect(refused.toSorted()).toEqual(
    [
      "delete",
      "email",
      "login",
      "logout",
      "oidc/link",
      "oidc/token",
      "oidc/unlink",
      "password",
      "refresh",
      "reset",
      "reset_link",
      "signup",
      "verify",
    ].map((name) => `/v1/api/auth/${name}`),
  );
});
