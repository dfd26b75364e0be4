/**
 * Manages users, and the numbers that identify the owners of rows.
 *
 * Invariants:
 * - A login name belongs to at most one account that has not been dropped, and no two accounts
 *   have login names that people would confuse. Accounts created by older versions may be
 *   exceptions.
 * - An owner number belongs to one account forever. If a name is used again after DROP USER, it
 *   gets a different number, so the rows of the dropped account never appear under the new one.
 * - A name never gets the same token version twice, so a dropped account's tokens are not valid
 *   for the next account with that name.
 * - `root` always exists.
 */
import { assert, defined } from "../base/assert.ts";
import { type Clock, HOUR_MS } from "../base/clock.ts";
import { DatabaseError } from "../base/errors.ts";
import { AccountAliases } from "./account_aliases.ts";
import type { Erasure, UserEntry } from "./account_entries.ts";
import type { CatalogAccounts, NewUser, SetupUsers, UserChange } from "./catalog.ts";
import type { Counters } from "./counters.ts";
import { allSealed, putSealed, putUnnoted } from "./records.ts";
import type { SqliteFile } from "./sqlite_file.ts";

/** The user id of the local superuser. */
export const ROOT_USER_ID = "root";

/**
 * The delay between DROP USER and the erasure of the account, in milliseconds, unless immediate
 * erasure is requested.
 */
const GRACE_MS: number = 30 * 24 * HOUR_MS;

/**
 * An account in the form in which the catalog stores it. Absent fields are omitted from the JSON.
 */
interface AccountRecord extends UserEntry {
  readonly accountId: number;
  /**
   * The owner number of an account that has been dropped, but whose rows have not been erased yet.
   */
  readonly retiredOwner?: number;
  /**
   * The seq at which the account got its role; absent if the account was created with this role
   * and its name had never been used before.
   */
  readonly rightsSeq?: number;
}

interface OwnerRecord {
  readonly owner: number;
  readonly userId: string;
  /** Whether the account was dropped. Its owner number is not reused. */
  readonly isRetired: boolean;
  /** The seq of the DROP USER statement; absent if unknown. */
  readonly retiredSeq?: number;
}

/**
 * Merges an account from a later state of the catalog into a state whose rows are older. Rows
 * erased between the two states exist again in the older state, so the account has to be erased
 * again.
 *
 * @param before The account in the older state; undefined if it did not exist.
 */
export function accountOverEarlierRows(before: unknown, after: unknown): unknown {
  const { eraseAfterMs, retiredOwner } = (before ?? {}) as Partial<AccountRecord>;
  const later = after as AccountRecord;
  if (retiredOwner === undefined || later.retiredOwner !== undefined) return later;
  return { ...later, retiredOwner, eraseAfterMs };
}

/**
 * Returns an account's email address after a change, and whether it is proven that the address
 * belongs to the user.
 */
function addressAfter(
  before: AccountRecord,
  change: UserChange,
): Pick<AccountRecord, "email" | "emailVerifiedAtMs" | "isEmailUnproven"> {
  const { email = before.email, emailVerifiedAtMs: verifiedMs } = change;
  if (verifiedMs !== undefined) {
    return { email, emailVerifiedAtMs: verifiedMs, isEmailUnproven: undefined };
  }
  return {
    email,
    emailVerifiedAtMs: email === before.email ? before.emailVerifiedAtMs : undefined,
    isEmailUnproven: change.email === undefined ? before.isEmailUnproven : change.isEmailUnproven,
  };
}

type DroppedChange = {
  readonly [Key in
    | "authData"
    | "email"
    | "emailVerifiedAtMs"
    | "eraseAfterMs"
    | "loginName"
    | "metadata"
    | "retiredOwner"]?: AccountRecord[Key] | undefined;
};

export class Accounts implements CatalogAccounts {
  /**
   * The version number of the accounts. Every change to an account or an owner number increments
   * it.
   */
  version = 0;
  readonly #file: SqliteFile;
  readonly #counters: Counters;
  readonly #clock: Clock;
  readonly #all = new Map<number, AccountRecord>();
  /**
   * The dropped accounts whose rows have not been erased yet. There are only a few, and every
   * CREATE USER checks them.
   */
  readonly #unerased = new Map<number, AccountRecord>();
  readonly #active = new Map<string, AccountRecord>();
  /**
   * The active accounts, indexed by their additional names, email addresses and provider links.
   */
  readonly #aliases = new AccountAliases();
  /** The token version of the most recently dropped account with each name, keyed by name. */
  readonly #droppedVersions = new Map<string, number>();
  readonly #owners = new Map<number, OwnerRecord>();
  readonly #ownerByUser = new Map<string, number>();
  readonly #newSeq: () => number;
  readonly #storeDropped: (userId: string) => () => void;
  /** The seq at which the last owner number of each name was retired, keyed by name. */
  readonly #retiredSeqs = new Map<string, number>();
  #sorted: readonly UserEntry[] | undefined;

  /**
   * Reads the accounts from the catalog file.
   *
   * @param parts.newSeq Returns the next seq.
   * @param parts.storeDropped Called in the transaction that drops a user, to store changes to
   *   other parts of the catalog. The returned function is called once the transaction is durable.
   */
  constructor(parts: {
    file: SqliteFile;
    counters: Counters;
    clock: Clock;
    newSeq: () => number;
    storeDropped: (userId: string) => () => void;
  }) {
    const { clock, counters, file, newSeq, storeDropped } = parts;
    this.#file = file;
    this.#counters = counters;
    this.#clock = clock;
    this.#newSeq = newSeq;
    this.#storeDropped = storeDropped;
    for (const record of allSealed<AccountRecord>(file, "accounts")) this.#remember(record);
    for (const record of allSealed<OwnerRecord>(file, "owners")) this.#rememberOwner(record);
    if (!this.#active.has(ROOT_USER_ID)) {
      this.create({ userId: ROOT_USER_ID, role: "system", authType: "password" });
    }
  }

  user(userId: string): UserEntry | undefined {
    return this.#active.get(userId);
  }

  userByLogin(name: string): UserEntry | undefined {
    return this.#active.get(name) ?? this.#aliases.named(name);
  }

  userByLink(link: string): UserEntry | undefined {
    return this.#aliases.linked(link);
  }

  usersByEmail(email: string): readonly UserEntry[] {
    return this.#aliases.withEmail(email);
  }

  userLike(name: string): UserEntry | undefined {
    return this.userByLogin(name) ?? this.#aliases.like(name);
  }

  users(): readonly UserEntry[] {
    this.#sorted ??= [...this.#all.values()].toSorted((left, right) => {
      if (left.userId !== right.userId) return left.userId < right.userId ? -1 : 1;
      return left.accountId - right.accountId;
    });
    return this.#sorted;
  }

  wasDropped(userId: string): boolean {
    return this.#droppedVersions.has(userId) && !this.#active.has(userId);
  }

  droppedSeq(userId: string): number {
    return this.#retiredSeqs.get(userId) ?? 0;
  }

  rightsSeq(userId: string): number {
    const accountId = this.#active.get(userId)?.accountId;
    const account = accountId === undefined ? undefined : this.#all.get(accountId);
    return Math.max(this.droppedSeq(userId), account?.rightsSeq ?? 0);
  }

  create(user: NewUser): UserEntry {
    this.#refuseTaken(user.userId);
    const record = this.#newRecord(user, this.#counters.get("next_account_id"));
    this.#change([record]);
    return record;
  }

  change(userId: string, change: UserChange): UserEntry {
    const record = this.#changed(userId, change);
    this.#change([record]);
    return record;
  }

  noteSeen(times: ReadonlyMap<string, number>): void {
    const records = [...times].flatMap(([userId, lastSeenAtMs]): AccountRecord[] => {
      const accountId = this.#active.get(userId)?.accountId;
      const before = accountId === undefined ? undefined : this.#all.get(accountId);
      // A time before the account was created belongs to an earlier account with the same name.
      if (before === undefined || lastSeenAtMs < before.createdAtMs) return [];
      return [{ ...before, lastSeenAtMs }];
    });
    if (records.length === 0) return;
    // These times are not recorded in the journal. Otherwise, a server with many users would add
    // an entry for each active user every minute.
    this.#file.transaction(() => {
      for (const record of records) {
        putUnnoted(this.#file, "accounts", { key: record.accountId, value: record });
      }
    });
    for (const record of records) this.#remember(record);
  }

  setUp({ rootPasswordHash, dba }: SetupUsers): UserEntry {
    this.#refuseTaken(dba.userId);
    const root = this.#changed(ROOT_USER_ID, { passwordHash: rootPasswordHash });
    const record = this.#newRecord(dba, this.#counters.get("next_account_id"));
    this.#change([root, record]);
    return record;
  }

  drop(userId: string, { erasesNow = false }: { erasesNow?: boolean } = {}): void {
    const before = this.#activeOrThrow(userId, "drop");
    assert(userId !== ROOT_USER_ID, "catalog: cannot drop the root account");
    const nowMs = this.#clock.nowMs();
    const owner = this.#ownerByUser.get(userId);
    const record: AccountRecord = {
      ...before,
      passwordHash: undefined,
      tokenVersion: before.tokenVersion + 1,
      updatedAtMs: nowMs,
      deletedAtMs: nowMs,
      eraseAfterMs: erasesNow ? nowMs : nowMs + GRACE_MS,
      ...(owner === undefined ? {} : { retiredOwner: owner }),
    };
    const retiredSeq = this.#newSeq();
    const retired =
      owner === undefined ? undefined : { owner, userId, isRetired: true, retiredSeq };
    const rememberAlso = this.#file.transaction(() => {
      this.#put(record);
      if (retired !== undefined) this.#putOwner(retired);
      this.#counters.store("highest_seq", retiredSeq);
      return this.#storeDropped(userId);
    });
    this.#counters.raise("highest_seq", retiredSeq);
    this.#active.delete(userId);
    this.#aliases.remove(before);
    this.#remember(record);
    if (retired !== undefined) this.#rememberOwner(retired);
    rememberAlso();
  }

  erasures(): readonly Erasure[] {
    return [...this.#unerased.values()].flatMap((record) => {
      const { accountId, eraseAfterMs, retiredOwner: owner, userId } = record;
      if (eraseAfterMs === undefined || owner === undefined) return [];
      return [{ accountId, userId, owner, eraseAfterMs }];
    });
  }

  hastenErasure(userId: string): void {
    const nowMs = this.#clock.nowMs();
    for (const erasure of this.erasures()) {
      if (erasure.userId !== userId || erasure.eraseAfterMs <= nowMs) continue;
      this.#changeDropped(erasure.accountId, { eraseAfterMs: nowMs });
    }
  }

  noteErased(accountId: number): void {
    this.#changeDropped(accountId, {
      eraseAfterMs: undefined,
      retiredOwner: undefined,
      email: undefined,
      emailVerifiedAtMs: undefined,
      loginName: undefined,
      metadata: undefined,
      authData: undefined,
    });
  }

  ownerNumber(userId: string, { create = false }: { create?: boolean } = {}): number | undefined {
    const known = this.#ownerByUser.get(userId);
    if (known !== undefined || !create) return known;
    const record = { owner: this.#counters.get("next_owner"), userId, isRetired: false };
    this.#file.transaction(() => this.#putOwner(record));
    this.#rememberOwner(record);
    return record.owner;
  }

  /**
   * Gives every existing and future account a token version that no token issued so far contains.
   * The change is part of the current transaction.
   */
  storeTokenVersions(firstVersion: number): void {
    this.#counters.store("first_token_version", firstVersion);
    for (const record of this.#all.values()) {
      this.#put({ ...record, tokenVersion: firstVersion });
    }
  }

  ownerName(owner: number): string | undefined {
    return this.#owners.get(owner)?.userId;
  }

  /** Writes accounts. Gives an owner number to each account that has none. */
  #change(records: readonly AccountRecord[]): void {
    let nextOwner = this.#counters.get("next_owner");
    const highestSeq = Math.max(0, ...records.map(({ rightsSeq = 0 }) => rightsSeq));
    const owners: OwnerRecord[] = [];
    for (const { userId } of records) {
      if (this.#ownerByUser.has(userId)) continue;
      owners.push({ owner: nextOwner, userId, isRetired: false });
      nextOwner += 1;
    }
    this.#file.transaction(() => {
      for (const record of records) this.#put(record);
      for (const owner of owners) this.#putOwner(owner);
      this.#counters.store("highest_seq", highestSeq);
    });
    this.#counters.raise("highest_seq", highestSeq);
    for (const record of records) this.#remember(record);
    for (const owner of owners) this.#rememberOwner(owner);
  }

  #newRecord(user: NewUser, accountId: number): AccountRecord {
    const nowMs = this.#clock.nowMs();
    return {
      accountId,
      userId: user.userId,
      role: user.role,
      email: user.email,
      authType: user.authType,
      passwordHash: user.passwordHash,
      tokenVersion: Math.max(
        (this.#droppedVersions.get(user.userId) ?? 0) + 1,
        this.#counters.get("first_token_version"),
      ),
      lastLoginAtMs: undefined,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      deletedAtMs: undefined,
      // Policies owned by a dropped account with this name apply again, so the rights to rows have
      // changed.
      ...(this.wasDropped(user.userId) ? { rightsSeq: this.#newSeq() } : {}),
      ...(user.isEmailUnproven === undefined ? {} : { isEmailUnproven: true }),
      ...(user.authData === undefined ? {} : { authData: user.authData }),
      ...(user.metadata === undefined ? {} : { metadata: user.metadata }),
    };
  }

  #changed(userId: string, change: UserChange): AccountRecord {
    const before = this.#activeOrThrow(userId, "change");
    const { loginName } = change;
    if (loginName !== undefined && this.userLike(loginName)?.userId !== userId) {
      this.#refuseTaken(loginName);
    }
    const hasOtherRole = change.role !== undefined && change.role !== before.role;
    const endsTokens = change.passwordHash !== undefined || hasOtherRole;
    const isLoginOnly = Object.keys(change).every((key) => key === "lastLoginAtMs");
    return {
      ...before,
      role: change.role ?? before.role,
      ...(hasOtherRole ? { rightsSeq: this.#newSeq() } : {}),
      ...addressAfter(before, change),
      authType: change.authType ?? before.authType,
      ...(loginName === undefined ? {} : { loginName }),
      ...(change.metadata === undefined ? {} : { metadata: change.metadata }),
      ...(change.authData === undefined ? {} : { authData: change.authData ?? undefined }),
      passwordHash: change.passwordHash ?? before.passwordHash,
      tokenVersion: Math.max(change.tokenVersion ?? 0, before.tokenVersion + (endsTokens ? 1 : 0)),
      lastLoginAtMs: change.lastLoginAtMs ?? before.lastLoginAtMs,
      updatedAtMs: isLoginOnly ? before.updatedAtMs : this.#clock.nowMs(),
    };
  }

  #changeDropped(accountId: number, change: DroppedChange): void {
    const before = defined(
      this.#all.get(accountId),
      "catalog: dropped account is missing from the account list",
    );
    assert(
      before.deletedAtMs !== undefined,
      "catalog: cannot erase an account that has not been dropped",
    );
    // The cast is safe, because the record is stored as JSON, which omits undefined fields.
    const record = { ...before, ...change } as AccountRecord;
    this.#file.transaction(() => this.#put(record));
    this.#list(record);
  }

  #list(record: AccountRecord): void {
    this.version += 1;
    this.#all.set(record.accountId, record);
    this.#sorted = undefined;
    if (record.retiredOwner === undefined) this.#unerased.delete(record.accountId);
    else this.#unerased.set(record.accountId, record);
  }

  #put(record: AccountRecord): void {
    this.#counters.store("next_account_id", record.accountId + 1);
    putSealed(this.#file, "accounts", { key: record.accountId, value: record });
  }

  #putOwner(record: OwnerRecord): void {
    this.#counters.store("next_owner", record.owner + 1);
    putSealed(this.#file, "owners", { key: record.owner, value: record });
  }

  #remember(record: AccountRecord): void {
    this.#counters.raise("next_account_id", record.accountId + 1);
    this.#list(record);
    if (record.deletedAtMs === undefined) {
      const before = this.#active.get(record.userId);
      if (before !== undefined) this.#aliases.remove(before);
      this.#active.set(record.userId, record);
      this.#aliases.add(record);
    } else {
      // Accounts with the same name are read in ascending order of id, so the newest account's
      // version remains.
      this.#droppedVersions.set(record.userId, record.tokenVersion);
    }
  }

  #rememberOwner(record: OwnerRecord): void {
    this.version += 1;
    this.#counters.raise("next_owner", record.owner + 1);
    this.#owners.set(record.owner, record);
    const { owner, retiredSeq = 0, userId } = record;
    if (!record.isRetired) {
      this.#ownerByUser.set(userId, owner);
      return;
    }
    this.#retiredSeqs.set(userId, Math.max(this.droppedSeq(userId), retiredSeq));
    if (this.#ownerByUser.get(userId) === owner) this.#ownerByUser.delete(userId);
  }

  #refuseTaken(userId: string): void {
    const like = this.userLike(userId);
    if (like === undefined) return;
    const fault =
      like.userId === userId || like.loginName === userId
        ? "it already exists"
        : "it is too similar to the name of an existing user";
    throw new DatabaseError("ALREADY_EXISTS", `Cannot create user ${userId}: ${fault}`);
  }

  #activeOrThrow(userId: string, action: "change" | "drop"): AccountRecord {
    const record = this.#active.get(userId);
    if (record === undefined) {
      throw new DatabaseError(
        "USER_NOT_FOUND",
        `Cannot ${action} user ${userId}: there is no such user`,
      );
    }
    return defined(
      this.#all.get(record.accountId),
      "catalog: active account is missing from the account list",
    );
  }
}
