/**
 * Manages invitations: codes with which people who have no account can sign up.
 *
 * The catalog stores the hash of each code, and the number of accounts created with it. Unknown,
 * used-up and expired codes are all refused with the same error.
 */
import type { Clock } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { type Catalog, checkObjectName, type InvitationEntry } from "../catalog/mod.ts";
import { isAtLeast } from "./permissions.ts";
import type { Principal } from "./principal.ts";
import { hashOfSecret, isSecret, newSecret } from "./secret_text.ts";

export interface InvitationsOptions {
  catalog: Catalog;
  clock: Clock;
  log: Log;
  random: Random;
}

export interface CreateInvitationRequest {
  readonly name: string;
  readonly usesMax?: number;
  readonly expiresAtMs?: number;
}

/**
 * The maximum number of invitations on a server. The hashes of all invitations are kept in memory.
 */
const INVITATIONS_MAX = 10_000;

export class Invitations {
  readonly #options: InvitationsOptions;

  constructor(options: InvitationsOptions) {
    this.#options = options;
  }

  /**
   * Performs the checks of {@linkcode create} without creating an invitation.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, INVALID_NAME, ALREADY_EXISTS, INVALID_VALUE,
   *   LIMIT_EXCEEDED
   */
  checkCreate(principal: Principal, request: CreateInvitationRequest): void {
    const { catalog, clock } = this.#options;
    const { expiresAtMs, name, usesMax } = request;
    requireAdministrator(principal, `create invitation ${name}`);
    checkObjectName("invitation", name);
    if (usesMax === 0) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot create invitation ${name}: USES must be at least 1`,
      );
    }
    if (expiresAtMs !== undefined && expiresAtMs <= clock.nowMs()) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot create invitation ${name}: its expiry time is in the past`,
      );
    }
    const { invitations } = catalog;
    if (invitations.named(name) !== undefined) {
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create invitation ${name}: it already exists`,
      );
    }
    if (invitations.all().length >= INVITATIONS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot create invitation ${name}: there are already ${INVITATIONS_MAX} invitations; ` +
          "drop some of them first",
      );
    }
  }

  /**
   * Creates an invitation and returns its code. Only a hash of the code is stored.
   * @throws {DatabaseError}
   */
  create(principal: Principal, request: CreateInvitationRequest): string {
    const { catalog, clock, log, random } = this.#options;
    this.checkCreate(principal, request);
    const code = newSecret("tdi_", random);
    catalog.invitations.create({
      ...request,
      secretHash: hashOfSecret(code),
      usedCount: 0,
      createdBy: principal.userId,
      createdAtMs: clock.nowMs(),
    });
    log.info("invitation created", { invitation: request.name, by: principal.actorId });
    return code;
  }

  /**
   * Performs the checks of {@linkcode drop} without dropping the invitation.
   * @throws {DatabaseError} PERMISSION_DENIED, OBJECT_NOT_FOUND
   */
  checkDrop(principal: Principal, name: string): void {
    requireAdministrator(principal, `drop invitation ${name}`);
    if (this.#options.catalog.invitations.named(name) !== undefined) return;
    throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find invitation "${name}"`, {
      hint: "to list the invitations, run SHOW INVITATIONS",
    });
  }

  /** Drops an invitation. @throws {DatabaseError} */
  drop(principal: Principal, name: string): void {
    const { catalog, log } = this.#options;
    this.checkDrop(principal, name);
    catalog.invitations.drop(name);
    log.info("invitation dropped", { invitation: name, by: principal.actorId });
  }

  /**
   * Returns the invitation with the given code if the code can still create an account; otherwise
   * undefined.
   */
  usable(code: string): InvitationEntry | undefined {
    const { catalog, clock } = this.#options;
    if (!isSecret("tdi_", code)) return undefined;
    const found = catalog.invitations.byHash(hashOfSecret(code));
    if (found === undefined) return undefined;
    const { expiresAtMs, usedCount, usesMax } = found;
    if (usesMax !== undefined && usedCount >= usesMax) return undefined;
    return expiresAtMs !== undefined && clock.nowMs() >= expiresAtMs ? undefined : found;
  }
}

function requireAdministrator(principal: Principal, action: string): void {
  const isScoped = principal.tokenScope !== undefined;
  if (isAtLeast(principal.role, "dba") && !principal.isImpersonated && !isScoped) return;
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot ${action}: this requires the role dba, and a token without scopes`,
  );
}
