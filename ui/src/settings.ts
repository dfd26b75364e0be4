/**
 * Keeps settings in the browser between visits: the colour scheme, whether there was a session,
 * and the editor's text until its user logs out. The settings never include a token or a password.
 */

export type Theme = "system" | "light" | "dark";

const THEMES: readonly Theme[] = ["system", "light", "dark"];
const THEME_KEY = "tidemark.theme";
const TEXT_KEY = "tidemark.text";
const SESSION_KEY = "tidemark.session";

/** Returns a setting; undefined if it is not set, or if the browser forbids storage. */
function read(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // If the browser forbids storage, the page still works, but forgets its settings.
  }
}

export function storedTheme(): Theme {
  const stored = read(THEME_KEY);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  write(THEME_KEY, theme === "system" ? undefined : theme);
}

/**
 * Whether a refresh of the session is worth trying. Scripts cannot read the session cookie itself.
 */
export function hadSession(): boolean {
  return read(SESSION_KEY) !== undefined;
}

export function rememberSession(isThere: boolean): void {
  write(SESSION_KEY, isThere ? "1" : undefined);
}

/** Returns the text that a user left in the editor. No other user gets this text. */
export function storedText(userId: string): string | undefined {
  const stored = read(TEXT_KEY);
  const owner = `${JSON.stringify(userId)}:`;
  return stored?.startsWith(owner) === true ? stored.slice(owner.length) : undefined;
}

export function rememberText(userId: string, text: string): void {
  write(TEXT_KEY, `${JSON.stringify(userId)}:${text}`);
}

export function forgetText(): void {
  write(TEXT_KEY, undefined);
}
