/**
 * Keeps state in the address and in the browser's storage: the editor's text, and whether the text
 * is being followed. The address can be shared, and the history leads back through text that was
 * run. Opening an address runs nothing that could change data. Passwords in the text are left out
 * of both.
 *
 *     #/sql?q=SELECT%201      #/live?q=SELECT%20*%20FROM%20a.t      #/rights
 */
import { EXAMPLE, isExample } from "./example.ts";
import { forgetText, rememberText, storedText } from "./settings.ts";

export const PAGES = ["sql", "rights"] as const;

export type PageName = (typeof PAGES)[number];

/**
 * Returns the page that an address names. An address with text, followed or not, belongs to the
 * SQL page.
 */
export function pageFromHash(hash: string): PageName {
  return hash === "#/rights" ? "rights" : "sql";
}

export interface PageState {
  readonly isLive: boolean;
  /** The editor's text; undefined if the address contains none. */
  readonly text: string | undefined;
}

/**
 * The maximum length of text in the address. Longer text is kept in the browser's storage only.
 */
const ADDRESS_CHARACTERS_MAX = 8000;

const PASSWORD = /(\bpassword\s*)(?:'(?:[^']|'')*'?|"(?:[^"]|"")*"?)/gi;

/** Removes the passwords from SQL text. */
function withoutPasswords(text: string): string {
  return text.replaceAll(PASSWORD, "$1''");
}

function hashOf({ isLive, text }: PageState): string {
  const page = isLive ? "#/live" : "#/sql";
  if (text === undefined || isExample(text)) return page;
  const encoded = encodeURIComponent(withoutPasswords(text));
  return encoded.length > ADDRESS_CHARACTERS_MAX ? page : `${page}?q=${encoded}`;
}

export function stateFromHash(hash: string): PageState {
  const [page = "", query = ""] = hash.split(/\?(.*)/s);
  return {
    isLive: page === "#/live",
    text: new URLSearchParams(query.replaceAll("+", "%2B")).get("q") ?? undefined,
  };
}

/** Returns the initial state of the page for a user. */
export function firstState(userId: string): { readonly isLive: boolean; readonly text: string } {
  const { isLive, text } = stateFromHash(location.hash);
  return { isLive, text: text ?? storedText(userId) ?? EXAMPLE };
}

/** Saves the state. If `isStep` is set, adds it to the history as a new step. */
export function keepState(
  { isLive, text }: { readonly isLive: boolean; readonly text: string },
  { isStep, userId }: { isStep: boolean; userId: string },
): void {
  if (isExample(text)) forgetText();
  else rememberText(userId, withoutPasswords(text));
  const hash = hashOf({ isLive, text });
  if (hash === location.hash) return;
  if (isStep) history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
}

/** Discards the stored text of a user who has logged out. */
export function forgetState(): void {
  forgetText();
  history.replaceState(null, "", location.pathname);
}
