/**
 * Indexes the active accounts by their aliases: additional login names, the folded forms of names,
 * email addresses, and provider links. To update an account, a caller removes it and adds it
 * again.
 */
import type { UserEntry } from "./account_entries.ts";
import { foldedUserName } from "./name_folding.ts";

/** Returns the provider links of an account, each as the JSON text of one object. */
export function linksIn(authData: string | undefined): readonly string[] {
  if (authData === undefined) return [];
  if (!authData.startsWith("[")) return [authData];
  return (JSON.parse(authData) as readonly unknown[]).map((link) => JSON.stringify(link));
}

/**
 * Returns the form in which the catalog stores an account's provider links; null if there are
 * none.
 */
export function authDataOf(links: readonly string[]): string | null {
  if (links.length <= 1) return links[0] ?? null;
  return `[${links.join(",")}]`;
}

export class AccountAliases {
  readonly #byLoginName = new Map<string, UserEntry>();
  /**
   * The accounts, keyed by folded name. If accounts created by older versions share a folded name,
   * only one of them is listed.
   */
  readonly #byFolded = new Map<string, UserEntry>();
  /** The accounts, keyed by email address in lower case. */
  readonly #byEmail = new Map<string, UserEntry[]>();

  /** The accounts, keyed by the text of each of their provider links. */
  readonly #byLink = new Map<string, UserEntry>();

  linked(link: string): UserEntry | undefined {
    return this.#byLink.get(link);
  }

  named(loginName: string): UserEntry | undefined {
    return this.#byLoginName.get(loginName);
  }

  like(name: string): UserEntry | undefined {
    return this.#byFolded.get(foldedUserName(name));
  }

  withEmail(email: string): readonly UserEntry[] {
    return this.#byEmail.get(email.toLowerCase()) ?? [];
  }

  add(user: UserEntry): void {
    for (const link of linksIn(user.authData)) this.#byLink.set(link, user);
    if (user.loginName !== undefined) this.#byLoginName.set(user.loginName, user);
    for (const name of namesOf(user)) this.#byFolded.set(foldedUserName(name), user);
    if (user.email === undefined) return;
    const address = user.email.toLowerCase();
    this.#byEmail.set(address, [...(this.#byEmail.get(address) ?? []), user]);
  }

  remove(user: UserEntry): void {
    for (const link of linksIn(user.authData)) this.#byLink.delete(link);
    if (user.loginName !== undefined) this.#byLoginName.delete(user.loginName);
    for (const name of namesOf(user)) {
      const folded = foldedUserName(name);
      if (this.#byFolded.get(folded)?.userId === user.userId) this.#byFolded.delete(folded);
    }
    if (user.email === undefined) return;
    const address = user.email.toLowerCase();
    const left = this.withEmail(address).filter(({ userId }) => userId !== user.userId);
    if (left.length === 0) this.#byEmail.delete(address);
    else this.#byEmail.set(address, [...left]);
  }
}

function namesOf({ loginName, userId }: UserEntry): readonly string[] {
  return loginName === undefined ? [userId] : [userId, loginName];
}
