/**
 * What the auth endpoints answer, in the words of the wire contract, and how their bodies are read.
 */
import type { Role, UserEntry } from "../catalog/mod.ts";
import type { UserBody } from "../protocol/mod.ts";
import { AuthError } from "./auth_error.ts";

/** Who sends a request, as the server found out. */
export interface Caller {
  readonly address: string;
  /** On this machine, without a proxy in between. Such callers have no bucket. */
  readonly isLocal: boolean;
  /** Whether `Host` names this server; false for a rebound name. Default true. */
  readonly isHostAllowed?: boolean;
  /** Whether the URL of the request seems to have a token, which is not read. Default false. */
  readonly hasTokenInUrl?: boolean;
  /** Of the request, for the log and the audit. */
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

/** A time in UTC with whole seconds. */
export function rfc3339(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 19)}Z`;
}

/** The members of a JSON body; undefined stands for one that could not be read. */
export function bodyFields(body: unknown): Readonly<Record<string, unknown>> {
  if (typeof body === "object" && body !== null && !Array.isArray(body)) {
    return body as Record<string, unknown>;
  }
  throw new AuthError("invalid_request", "The body should be a JSON object");
}

/** A string member of a body. @throws {AuthError} invalid_request */
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
