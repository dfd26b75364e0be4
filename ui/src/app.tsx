/**
 * Chooses the screen: setup while the server has no administrator, then login, then the workbench.
 */
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { type Identity, ServerError } from "../../src/client/mod.ts";
import { LoginForm, type Providers, SetupForm } from "./auth_forms.tsx";
import { Broken } from "./broken.tsx";
import { db, whenSignedOut } from "./database.ts";
import { Header } from "./header.tsx";
import { forgetState, type PageName, pageFromHash } from "./page_state.ts";
import { hadSession, rememberSession } from "./settings.ts";
import { strings } from "./strings.ts";

const Rights = lazy(async () => ({ default: (await import("./rights.tsx")).Rights }));
const Workbench = lazy(async () => ({ default: (await import("./workbench.tsx")).Workbench }));

interface LoginScreen {
  readonly kind: "login";
  readonly notice?: string;
}

type Screen =
  | { readonly kind: "loading" | "unreachable" }
  | { readonly kind: "setup"; readonly asksForCode: boolean }
  | LoginScreen
  | { readonly kind: "work"; readonly identity: Identity };

/**
 * The login screen with the failure of a provider login that led to this page; undefined if there
 * was no failure.
 */
const failedLogin = providerFailure();

/** Determines the first screen, and the providers for login. @throws {ConnectionError} */
async function firstScreen(): Promise<[Screen, Providers]> {
  const status = await db.session.status();
  const { oidc_providers: providers } = status;
  if (status.needs_setup) {
    return [{ kind: "setup", asksForCode: status.setup_code_required }, providers];
  }
  if (!hadSession()) return [failedLogin ?? { kind: "login" }, providers];
  try {
    return [screenOf(await db.session.refresh()), providers];
  } catch (error) {
    if (!(error instanceof ServerError)) throw error;
    rememberSession(false);
    return [{ kind: "login" }, providers];
  }
}

/** Returns the login screen if a login through a provider has just failed; otherwise undefined. */
function providerFailure(): LoginScreen | undefined {
  const failure = new URLSearchParams(location.search).get("error");
  if (failure === null) return undefined;
  rememberSession(false);
  // The failure must not reappear when the page is reloaded.
  history.replaceState(history.state, "", location.pathname.replace(/\/login$/, ""));
  const { failed, failures } = strings.login;
  return { kind: "login", notice: failures.get(failure) ?? failed };
}

/** Leaves the page for a provider, which sends the browser back with a session or a failure. */
function goToProvider(url: string): void {
  rememberSession(true);
  location.assign(url);
}

function screenOf(identity: Identity): Screen {
  if (identity.mayAdminister) return { kind: "work", identity };
  logOutAtServer();
  rememberSession(false);
  return { kind: "login", notice: strings.login.notAdmin };
}

/**
 * Logs out at the server. The page is logged out in any case: if the request does not arrive, the
 * session expires by itself.
 */
function logOutAtServer(): void {
  db.session.logout().catch(() => undefined);
}

interface StartedScreen {
  readonly screen: Screen;
  readonly setScreen: (screen: Screen) => void;
  /** The providers through which people can log in. */
  readonly providers: Providers;
  /** Determines the first screen again. */
  readonly begin: () => void;
}

/** Shows the first screen. When the session ends, shows the login screen. */
function useScreen(): StartedScreen {
  const [screen, setScreen] = useState<Screen>({ kind: "loading" });
  const [providers, setProviders] = useState<Providers>([]);

  const begin = useCallback(() => {
    setScreen({ kind: "loading" });
    const show = ([first, offered]: Awaited<ReturnType<typeof firstScreen>>): void => {
      setProviders(offered);
      setScreen(first);
    };
    firstScreen().then(show, () => setScreen({ kind: "unreachable" }));
  }, []);

  useEffect(() => {
    whenSignedOut(() => {
      rememberSession(false);
      setScreen({ kind: "login", notice: strings.login.ended });
    });
    begin();
  }, [begin]);

  return { screen, setScreen, providers, begin };
}

export function App(): ReactNode {
  const { begin, providers, screen, setScreen } = useScreen();
  const { page, setPage, turnTo } = usePage();
  /** The previous user of this page. That user's text may still be in the address. */
  const lastUser = useRef<string>(undefined);

  const logIn = async (user: string, password: string): Promise<void> => {
    const identity = await db.session.login(user, password);
    rememberSession(true);
    const { id } = identity.user;
    if (lastUser.current !== undefined && lastUser.current !== id) {
      forgetState();
      setPage("sql");
    }
    setScreen(screenOf(identity));
  };

  const logOut = (): void => {
    db.close();
    rememberSession(false);
    // Unmounting makes the editor save its text, so the saved text must be discarded afterwards.
    flushSync(() => setScreen({ kind: "login" }));
    forgetState();
    setPage("sql");
    logOutAtServer();
  };

  const identity = screen.kind === "work" ? screen.identity : undefined;
  if (identity !== undefined) lastUser.current = identity.user.id;
  return (
    <>
      <Header identity={identity} page={page} onPage={turnTo} onLogout={logOut} />
      <main className={identity === undefined ? "gate" : page === "sql" ? "work" : "rights-page"}>
        {screen.kind === "loading" && <p role="status">{strings.loading}</p>}
        {screen.kind === "unreachable" && <Unreachable onRetry={begin} />}
        {screen.kind === "setup" && (
          <SetupForm
            asksForCode={screen.asksForCode}
            onDone={logIn}
            onTaken={() => setScreen({ kind: "login", notice: strings.setup.taken })}
          />
        )}
        {screen.kind === "login" && (
          <LoginForm
            notice={screen.notice}
            providers={providers}
            onLogin={logIn}
            onProvider={goToProvider}
          />
        )}
        {identity !== undefined && (
          <Broken>
            <Suspense fallback={<p role="status">{strings.loading}</p>}>
              {page === "sql" ? (
                <Workbench userId={identity.user.id} />
              ) : (
                <Rights userId={identity.user.id} />
              )}
            </Suspense>
          </Broken>
        )}
      </main>
    </>
  );
}

interface PageChoice {
  readonly page: PageName;
  readonly setPage: (page: PageName) => void;
  /** Shows a page, and adds it to the history as a new step. */
  readonly turnTo: (page: PageName) => void;
}

/** The page to show after login, as given by the address. */
function usePage(): PageChoice {
  const [page, setPage] = useState(() => pageFromHash(location.hash));
  useEffect(() => {
    const onPopState = (): void => setPage(pageFromHash(location.hash));
    addEventListener("popstate", onPopState);
    return () => removeEventListener("popstate", onPopState);
  }, []);
  const turnTo = (next: PageName): void => {
    // Unmounting makes the editor save its text, which must go into the address of the editor's
    // own page.
    flushSync(() => setPage(next));
    history.pushState(null, "", `#/${next}`);
  };
  return { page, setPage, turnTo };
}

function Unreachable({ onRetry }: { readonly onRetry: () => void }): ReactNode {
  return (
    <section className="card">
      <h2>{strings.unreachable.title}</h2>
      <p>{strings.unreachable.help}</p>
      <button type="button" className="primary" onClick={onRetry}>
        {strings.unreachable.again}
      </button>
    </section>
  );
}
