/** Creates an Auth with a real catalog and a clock that tests advance. */
import {
  type AuditEvent,
  Auth,
  AuthError,
  type AuthSettings,
  type Caller,
} from "../../src/auth/mod.ts";
import type { DatabaseError } from "../../src/base/errors.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import type { CatalogDatabase, Role } from "../../src/catalog/mod.ts";
import { freshPath, openCatalog } from "../catalog/catalog_fixture.ts";
import { NO_ACCOUNTS, NO_PROVIDERS } from "../support/http.ts";
import { ManualClock } from "../support/manual_clock.ts";

/** The events reported by Auth in all tests of a file. */
export const audited: AuditEvent[] = [];

export const SECRET: Uint8Array = new TextEncoder().encode("k7Qm2vX9pL4sW8zR1tY6uB3nC5dF0gHj");
export const LOCAL: Caller = { address: "127.0.0.1", isLocal: true };
export const REMOTE: Caller = { address: "203.0.113.7", isLocal: false };
export const PASSWORD = "correct horse 9";

/**
 * The argon2id hash of PASSWORD, with low cost parameters so that tests do not have to wait long
 * for it.
 */
export const PASSWORD_HASH: string = await Bun.password.hash(PASSWORD, {
  algorithm: "argon2id",
  memoryCost: 8,
  timeCost: 1,
});

export interface AuthFixture {
  readonly auth: Auth;
  readonly catalog: CatalogDatabase;
  readonly clock: ManualClock;
  readonly path: string;
  readonly log: RecentLog;
}

function settingsOf(change: Partial<AuthSettings> = {}): AuthSettings {
  return {
    jwtSecret: SECRET,
    accessLifetimeSeconds: 3600,
    refreshLifetimeSeconds: 7 * 24 * 3600,
    allowRemoteSetup: false,
    rootPassword: undefined,
    passwordPolicy: { lengthMin: 8, lengthMax: 256, isComplex: false },
    attemptsPerSecond: 20,
    loginFailuresMax: 5,
    lockoutSeconds: 900,
    hasSetupCode: false,
    accounts: NO_ACCOUNTS,
    oidc: NO_PROVIDERS,
    ...change,
  };
}

/** Returns a server on which no setup has been performed. */
export function newServer(change: Partial<AuthSettings> = {}): AuthFixture {
  const clock = new ManualClock();
  const path = freshPath();
  const catalog = openCatalog(path, clock);
  const log = new RecentLog(silentLog, clock);
  const auth = authOver({ catalog, clock, log }, change);
  return { auth, catalog, clock, path, log };
}

export function authOver(
  { catalog, clock, log = silentLog }: Pick<AuthFixture, "catalog" | "clock"> & { log?: Log },
  change: Partial<AuthSettings> = {},
): Auth {
  return new Auth({
    catalog,
    clock,
    random: systemRandom,
    log,
    settings: settingsOf(change),
    onAudit: (event) => audited.push(event),
    onNotice: () => undefined,
  });
}

/** Returns a server with an unknown root password, on which the given users have PASSWORD. */
export function configuredServer(
  users: Readonly<Record<string, Role>> = { ada: "dba" },
  change: Partial<AuthSettings> = {},
): AuthFixture {
  const server = newServer(change);
  server.catalog.accounts.change("root", { passwordHash: PASSWORD_HASH });
  for (const [userId, role] of Object.entries(users)) addUser(server, userId, role);
  return server;
}

export function addUser(
  { catalog }: Pick<AuthFixture, "catalog">,
  userId: string,
  role: Role,
): void {
  catalog.accounts.create({ userId, role, authType: "password", passwordHash: PASSWORD_HASH });
}

/** Returns the error code of an action that fails; undefined if it succeeds. */
export async function failureOf(action: () => unknown): Promise<string | undefined> {
  try {
    await action();
  } catch (error) {
    if (error instanceof AuthError) return error.code;
    const { code } = error as Partial<DatabaseError>;
    if (code !== undefined) return code;
    throw error;
  }
  return undefined;
}
