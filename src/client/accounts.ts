/**
 * Defines the operations that let people manage their own accounts: sign-up, guest accounts,
 * password changes, deletion, links sent by mail, logins through providers, and the export of
 * their data. The export is always available. Each of the other operations must be enabled in the
 * server's configuration.
 */
import { type Call, FILLED_TEXT, requireOptions, requireRule, TEXT } from "./checks.ts";
import { ServerError } from "./errors.ts";
import { type ProviderCalls, providerLoginsBy } from "./provider_logins.ts";
import type { Identity, Session } from "./session.ts";

export interface SignUpFields {
  /** The login name; optional if `email` is to serve as the login name. */
  readonly user?: string;
  readonly password: string;
  readonly email?: string;
  /** The invitation code that permits the sign-up. */
  readonly invitation?: string;
}

export interface AccountCalls extends ProviderCalls {
  /**
   * Creates an account, or turns the guest account of this session into one with a login name, and
   * logs in.
   *
   * @returns Undefined after a sign-up with only an address: in that case, the user has to follow
   *   the link that the server sends before logging in for the first time.
   * @throws {ServerError} `unauthorized` if the login after the sign-up fails, for example because
   *   the name is taken.
   */
  signUp(fields: SignUpFields): Promise<Identity | undefined>;
  /** Creates a guest account and starts a session for it. */
  beginAsGuest(): Promise<Identity>;
  /** Changes the password, and ends all other sessions of the user. */
  changePassword(password: string, newPassword: string): Promise<Identity>;
  /** Deletes the account and ends the session. A guest account needs no password. */
  deleteAccount(password?: string): Promise<void>;
  /**
   * Writes the user's own rows and files into an archive, and returns a URL for downloading it.
   * The download needs no Authorization header. The URL is valid for an hour at most, and only
   * while the session lasts.
   *
   * @throws {ServerError}
   */
  exportData(): Promise<string>;
  /** Sends a password reset link to the address of an account. */
  sendResetLink(user: string): Promise<void>;
  /** Sets a new password, using the token from a link. Does not log in. */
  resetPassword(token: string, password: string): Promise<void>;
  /** Sends the user another link for verifying their address. */
  sendVerifyLink(): Promise<void>;
  /**
   * Sends a link to a new address. It replaces the user's address once `verifyEmail` is called
   * with the token from the link.
   */
  changeEmail(password: string, email: string): Promise<void>;
  /** Verifies an address, using the token from a link. */
  verifyEmail(token: string): Promise<void>;
}

const SIGN_UP: Call = {
  doing: "sign up",
  example: "db.account.signUp({ user, password })",
};

const API = "/v1/api/auth";

export function accountsBy(
  session: Session,
  { exportData, serverUrl }: { serverUrl: string; exportData: AccountCalls["exportData"] },
): AccountCalls {
  return {
    ...providerLoginsBy(session, serverUrl),
    exportData,
    signUp(fields) {
      requireOptions(SIGN_UP, fields, {
        user: FILLED_TEXT,
        password: TEXT,
        email: FILLED_TEXT,
        invitation: FILLED_TEXT,
      });
      return session.exclusively(() => signUp(session, fields));
    },
    beginAsGuest: () => session.loginBy(`${API}/guest`, {}),
    changePassword(password, newPassword) {
      requireRule("the password", password, TEXT);
      requireRule("the new password", newPassword, TEXT);
      const body = { password, new_password: newPassword };
      return session.loginBy(`${API}/password`, body, { isByToken: true });
    },
    async deleteAccount(password) {
      if (password !== undefined) requireRule("the password", password, TEXT);
      await session.post(`${API}/delete`, password === undefined ? {} : { password });
      session.ended();
    },
    async sendResetLink(user) {
      requireRule("the user", user, FILLED_TEXT);
      await session.postOpenly(`${API}/reset_link`, { user });
    },
    async resetPassword(token, password) {
      requireRule("the token", token, FILLED_TEXT);
      requireRule("the password", password, TEXT);
      await session.postOpenly(`${API}/reset`, { token, password });
    },
    async sendVerifyLink() {
      await session.post(`${API}/verify_link`, {});
    },
    async changeEmail(password, email) {
      requireRule("the password", password, TEXT);
      requireRule("the address", email, FILLED_TEXT);
      await session.post(`${API}/email`, { password, email });
    },
    async verifyEmail(token) {
      requireRule("the token", token, FILLED_TEXT);
      await session.postOpenly(`${API}/verify`, { token });
    },
  };
}

/**
 * The response to a sign-up does not reveal whether the name was free. Only the subsequent login
 * shows it.
 */
async function signUp(session: Session, fields: SignUpFields): Promise<Identity | undefined> {
  // A guest sends its token with the request in order to keep its account.
  if (session.accessToken === undefined) await session.postOpenly(`${API}/signup`, fields);
  else await session.postReplacing(`${API}/signup`, fields);
  const { password, user } = fields;
  if (user === undefined) return undefined;
  try {
    return await session.loginBy(`${API}/login`, { user, password });
  } catch (error) {
    if (!(error instanceof ServerError) || error.code !== "unauthorized") throw error;
    const message =
      "Signed up, but could not log in: the name may already be taken; choose a different one";
    throw new ServerError("unauthorized", message, { status: error.status });
  }
}
