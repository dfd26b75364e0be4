/** Reads the request bodies of the auth endpoints, and builds their response bodies. */
import type { Role, UserEntry } from "../catalog/mod.ts";
import type { UserBody } from "../protocol/mod.ts";
import { AuthError } from "./auth_error.ts";

/** The source of a request and its properties, as the server determined them. */
export interface Caller {
  readonly address: string;
  /**
   * Whether the caller is on this machine and not behind a proxy. The rate limit does not apply to
   * such callers.
   */
  readonly isLocal: boolean;
  /**
   * Whether the `Host` header names this server. A different host may indicate DNS rebinding.
   * Defaults to true.
   */
  readonly isHostAllowed?: boolean;
  /**
   * Whether the request URL seems to contain a token. Tokens in URLs are ignored. Defaults to
   * false.
   */
  readonly hasTokenInUrl?: boolean;
  /** The id of the request, for the log and the audit. */
  readonly requestId?: string;
}

export function answerFromUser(user: UserEntry): UserBody {
  return {
    id: user.userId,
    role: user.role,
    email: user.email ?? null,
    created_at: rfc3339(user.createdAtMs),
    updated_at: rfc3339(user.updatedAtMs),
  };
}

export function hasAdminUi(role: Role): boolean {
  return role === "dba" || role === "system";
}

/** Formats a time as RFC 3339 in UTC, truncated to whole seconds. */
export function rfc3339(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 19)}Z`;
}

/**
 * Returns the members of a request body that must be a JSON object. A body that could not be read
 * is passed as `undefined`.
 */
export function bodyFields(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return body as Record<string, unknown>;
  }
  throw new AuthError("invalid_request", "The body must be a JSON object");
}

/** Returns a required string member of a request body. @throws {AuthError} invalid_request */
export function textField(
  fields: Readonly<Record<string, unknown>>,
  names: readonly string[],
  lengthMax: number,
): string {
  const name = names.find((candidate) => fields[candidate] !== undefined);
  const value = name === undefined ? undefined : fields[name];
  if (typeof value !== "string" || value.length > lengthMax) {
    throw new AuthError(
      "invalid_request",
      `The body must contain a string "${names[0]}" of at most ${lengthMax} characters`,
    );
  }
  return value;
}

/**
 * Returns an optional string member of a request body; undefined if it is absent or null.
 * @throws {AuthError} invalid_request
 */
export function optionalTextField(
  fields: Readonly<Record<string, unknown>>,
  name: string,
  lengthMax: number,
): string | undefined {
  const value = fields[name];
  return value === undefined || value === null ? undefined : textField(fields, [name], lengthMax);
}
