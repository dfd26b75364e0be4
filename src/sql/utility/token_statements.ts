/**
 * Executes CREATE and DROP of service tokens and invitations through `auth`. The secret of a new
 * token or invitation appears only in the result.
 */
import type { CreateInvitationRequest, CreateTokenRequest, Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { TokenRight } from "../../catalog/mod.ts";
import { DATETIME, datetimeFromText, INT, intervalFromText, TEXT } from "../../types/mod.ts";
import { addToTimestamp } from "../functions/time/time_math.ts";
import { atName, findNamespace } from "../names/table_names.ts";
import type {
  CreateInvitationStatement,
  CreateTokenStatement,
  Expiry,
  SecretDefinition,
  TokenScopeNode,
} from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { messageResult, type PlainColumn, rowsResult } from "../result/result.ts";
import { shownScopes } from "../system/token_views.ts";

/** The parts of the database that token statements use. */
export type TokenDeps = Pick<SqlEnvironment, "auth" | "catalog" | "clock">;

interface TokenCall {
  readonly deps: TokenDeps;
  readonly principal: Principal;
}

const TOKEN_COLUMNS: readonly PlainColumn[] = [
  { name: "name", type: TEXT },
  { name: "token", type: TEXT },
  { name: "user_id", type: TEXT },
  { name: "scopes", type: TEXT },
  { name: "expires_at", type: DATETIME },
];

const INVITATION_COLUMNS: readonly PlainColumn[] = [
  { name: "name", type: TEXT },
  { name: "code", type: TEXT },
  { name: "uses_max", type: INT },
  { name: "expires_at", type: DATETIME },
];

const RIGHTS: readonly TokenRight[] = ["read", "write", "define", "act"];

/**
 * Checks a statement about a token or an invitation, without changing anything. @throws
 * {DatabaseError}
 */
export function checkTokenStatement(node: SecretDefinition, call: TokenCall): void {
  const { auth } = call.deps;
  const { principal } = call;
  switch (node.type) {
    case "create token": {
      const request = tokenRequest(node, call);
      return atName(node.name, () => auth.checkCreateToken(principal, request));
    }
    case "create invitation": {
      const request = invitationRequest(node, call);
      return atName(node.name, () => auth.checkCreateInvitation(principal, request));
    }
    case "drop token":
    case "drop invitation":
      if (isGone(node, call.deps)) return;
      return atName(node.name, () =>
        node.type === "drop token"
          ? auth.checkDropToken(principal, node.name.name)
          : auth.checkDropInvitation(principal, node.name.name),
      );
  }
}

/** Runs a statement that creates or drops a token or an invitation. @throws {DatabaseError} */
export function runTokenStatement(node: SecretDefinition, call: TokenCall): StatementResult {
  checkTokenStatement(node, call);
  const { deps, principal } = call;
  const asUser = principal.userId;
  const { name } = node.name;
  switch (node.type) {
    case "create token": {
      const request = tokenRequest(node, call);
      const secret = deps.auth.createToken(principal, request);
      const { expiresAtMs, userId } = request;
      const row = [name, secret, userId, shownScopes(request), microsOrNull(expiresAtMs)];
      return rowsResult(TOKEN_COLUMNS, [row], asUser);
    }
    case "create invitation": {
      const request = invitationRequest(node, call);
      const code = deps.auth.createInvitation(principal, request);
      const row = [name, code, request.usesMax ?? null, microsOrNull(request.expiresAtMs)];
      return rowsResult(INVITATION_COLUMNS, [row], asUser);
    }
    case "drop token":
      if (isGone(node, deps)) return messageResult(`Token ${name} does not exist`, asUser);
      deps.auth.dropToken(principal, name);
      return messageResult(`Token ${name} dropped`, asUser);
    case "drop invitation":
      if (isGone(node, deps)) return messageResult(`Invitation ${name} does not exist`, asUser);
      deps.auth.dropInvitation(principal, name);
      return messageResult(`Invitation ${name} dropped`, asUser);
  }
}

/** Whether a statement with IF EXISTS has no effect because its object does not exist. */
function isGone(
  node: Extract<SecretDefinition, { ifExists?: true | undefined }>,
  { catalog }: TokenDeps,
): boolean {
  const entries = node.type === "drop token" ? catalog.serviceTokens : catalog.invitations;
  return node.ifExists === true && entries.named(node.name.name) === undefined;
}

function tokenRequest(
  node: CreateTokenStatement,
  { deps, principal }: TokenCall,
): CreateTokenRequest {
  return {
    name: node.name.name,
    userId: node.user.currentUser === true ? principal.userId : node.user.name,
    ...expiryOf(node.expires, deps),
    ...(node.scopes === undefined ? {} : scopesOf(node.scopes, deps)),
  };
}

function invitationRequest(
  { expires, name, uses }: CreateInvitationStatement,
  { deps }: TokenCall,
): CreateInvitationRequest {
  return {
    name: name.name,
    ...(uses === undefined ? {} : { usesMax: uses }),
    ...expiryOf(expires, deps),
  };
}

/**
 * Returns the time at which a token expires.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
function expiryOf(
  expires: Expiry | undefined,
  { clock }: Pick<TokenDeps, "clock">,
): { readonly expiresAtMs?: number } {
  if (expires === undefined) return {};
  const nowMicros = clock.nowMs() * 1000;
  const micros = atName(expires, () =>
    expires.kind === "in"
      ? addToTimestamp(nowMicros, intervalFromText(expires.text))
      : datetimeFromText(expires.text, { nowMicros }),
  );
  return { expiresAtMs: Math.floor(Number(micros) / 1000) };
}

/** Returns the scopes of a token. @throws {DatabaseError} INVALID_OPTION, NAMESPACE_NOT_FOUND */
function scopesOf(
  scopes: readonly TokenScopeNode[],
  { catalog }: Pick<TokenDeps, "catalog">,
): Pick<CreateTokenRequest, "namespaces" | "rights"> {
  const rights = new Set<TokenRight>();
  const namespaces = new Set<string>();
  for (const scope of scopes) {
    if (scope.namespace !== undefined) {
      findNamespace(catalog, scope.namespace.name, scope.namespace);
      namespaces.add(scope.namespace.name);
      continue;
    }
    const right = RIGHTS.find((each) => each === scope.word);
    if (right === undefined) {
      throw new DatabaseError(
        "INVALID_OPTION",
        `Cannot use the scope "${scope.word}": a scope is READ, WRITE, DEFINE, ACT or ` +
          "NAMESPACE name",
        { position: scope._location.start },
      );
    }
    rights.add(right);
  }
  const [first] = scopes;
  if (!rights.has("read") && !rights.has("write")) {
    throw new DatabaseError(
      "INVALID_OPTION",
      "Cannot create a token without the right to read: SCOPES must contain READ, or WRITE, " +
        "which includes it",
      { position: first?._location.start },
    );
  }
  return {
    rights: RIGHTS.filter((each) => rights.has(each)),
    ...(namespaces.size === 0 ? {} : { namespaces: [...namespaces] }),
  };
}

function microsOrNull(unixMs: number | undefined): number | null {
  return unixMs === undefined ? null : unixMs * 1000;
}
