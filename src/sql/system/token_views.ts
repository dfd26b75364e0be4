/**
 * The rows of `system.tokens`, `system.invitations`, SHOW TOKENS and SHOW INVITATIONS. They
 * describe service tokens and invitations without their secrets.
 */
import type { ServiceTokenEntry } from "../../catalog/mod.ts";
import { DATETIME, INT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";
import { ADMIN_ONLY, type ColumnList, microsOf, view } from "./system_view.ts";

/** The parts of the database that the token views read. */
export type TokenViewDeps = Pick<SqlEnvironment, "auth" | "catalog">;

const TOKEN_COLUMNS: ColumnList = [
  ["name", TEXT],
  ["user_id", TEXT],
  ["scopes", TEXT],
  ["expires_at", DATETIME],
  ["last_used_at", DATETIME],
  ["created_by", TEXT],
  ["created_at", DATETIME],
];

const INVITATION_COLUMNS: ColumnList = [
  ["name", TEXT],
  ["uses", INT],
  ["uses_max", INT],
  ["expires_at", DATETIME],
  ["created_by", TEXT],
  ["created_at", DATETIME],
];

export const SHOW_TOKENS_COLUMNS: readonly PlainColumn[] = TOKEN_COLUMNS.map(([name, type]) => ({
  name,
  type,
}));

export const SHOW_INVITATIONS_COLUMNS: readonly PlainColumn[] = INVITATION_COLUMNS.map(
  ([name, type]) => ({ name, type }),
);

export function tokenViews(deps: TokenViewDeps): [string, SystemView][] {
  return [
    ["system.tokens", view(TOKEN_COLUMNS, () => tokenRows(deps), ADMIN_ONLY)],
    ["system.invitations", view(INVITATION_COLUMNS, () => invitationRows(deps), ADMIN_ONLY)],
  ];
}

/** Returns all service tokens, ordered by name. */
export function tokenRows({ auth, catalog }: TokenViewDeps): Row[] {
  return catalog.serviceTokens
    .all()
    .map((token) => [
      token.name,
      token.userId,
      shownScopes(token),
      microsOf(token.expiresAtMs),
      microsOf(auth.lastUseMs(token)),
      token.createdBy,
      token.createdAtMs * 1000,
    ]);
}

/** Returns all invitations, ordered by name. */
export function invitationRows({ catalog }: Pick<TokenViewDeps, "catalog">): Row[] {
  return catalog.invitations
    .all()
    .map((each) => [
      each.name,
      each.usedCount,
      each.usesMax ?? null,
      microsOf(each.expiresAtMs),
      each.createdBy,
      each.createdAtMs * 1000,
    ]);
}

/** Returns the scopes of a token in the syntax of CREATE TOKEN; null if it has none. */
export function shownScopes({
  namespaces = [],
  rights,
}: Pick<ServiceTokenEntry, "namespaces" | "rights">): string | null {
  if (rights === undefined) return null;
  const words = rights.map((right) => right.toUpperCase());
  return [...words, ...namespaces.map((name) => `NAMESPACE ${name}`)].join(", ");
}
