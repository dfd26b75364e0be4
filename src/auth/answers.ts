/**
 * The bodies of the auth endpoints, as the wire contract defines them: builds responses and reads
 * requests.
 */
import type { Role, UserEntry } from "../catalog/mod.ts";
import type { UserBody } from "../protocol/mod.ts";
import { AuthError } from "./auth_error.ts";

/** The sender of a request, as the server determined it. */
export interface Caller {
  readonly address: string;
  /**
   * True if the caller is on this machine, without a proxy in between. The rate limit does not
   * apply to such callers.
   */
  readonly isLocal: boolean;
  /**
   * False if `Host` does not name this server, for example because of DNS rebinding. The default is
   * true.
   */
  readonly isHostAllowed?: boolean;
  /**
   * True if the URL of the request seems to contain a token. Such a token is not read. The default
   * is false.
   */
  readonly hasTokenInUrl?: boolean;
  /** The request id for the log and the audit. */
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

/** Formats a time in UTC with whole seconds. */
export function rfc3339(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 19)}Z`;
}

/** Returns the members of a JSON body. `undefined` represents a body that could not be read. */
export function bodyFields(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return body as Record<string, unknown>;
  }
  throw new AuthError("invalid_request", "The body should be a JSON object");
}

/** Returns a string member of a body. @throws {AuthError} invalid_request */
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
      `The body should have a string "${names[0]}" of at most ${lengthMax} characters`,
    );
  }
  return value;
}

/**
 * Returns a string member of a body; undefined if it is absent or null.
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
