/** Creates callers who have not logged in, for tests in which credentials do not matter. */
import type { Principal } from "../../src/auth/mod.ts";
import type { Catalog } from "../../src/catalog/mod.ts";

/** Returns a user as {@linkcode Auth} would after a login, but without a session. */
export function principalFor(
  { catalog }: { readonly catalog: Catalog },
  userId: string,
): Principal {
  const user = catalog.accounts.user(userId);
  if (user === undefined) throw new Error(`there is no user ${userId}`);
  return {
    userId,
    role: user.role,
    owner: catalog.accounts.ownerNumber(userId),
    actorId: userId,
    actorRole: user.role,
    isImpersonated: false,
    sessionId: "",
  };
}
