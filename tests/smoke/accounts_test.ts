/**
 * Tests accounts on the real process: sign-up, invitations, guests, password changes and account
 * changes by users, and links that a signed webhook sends. Each feature is off until it is
 * configured, responses do not reveal which accounts exist, and a guest who signs up keeps their
 * rows.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { SocketClient } from "../support/client.ts";
import { testThoroughly } from "../support/requirements.ts";
import {
  type ConfigValue,
  type Login,
  PASSWORD,
  type ServerProcess,
  startReadyServer,
} from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

const SECRET = "a secret of the receiver";

const OTHER = "violet river 3";

interface Notice {
  readonly type: string;
  readonly user_id: string;
  readonly email: string;
  readonly token?: string;
  readonly link?: string;
}

/** The messages received by the operator's webhook, which sends emails. */
const notices: Notice[] = [];
const signatures: boolean[] = [];
const mailer = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const text = await request.text();
    const [, seconds = "", , given = ""] =
      request.headers.get("tidemark-signature")?.split(/[=,]/) ?? [];
    const expected = createHmac("sha256", SECRET).update(`${seconds}.${text}`).digest("hex");
    signatures.push(given === expected);
    notices.push(JSON.parse(text) as Notice);
    return new Response();
  },
});

const ALL: Readonly<Record<string, ConfigValue>> = {
  signup: "open",
  guests: true,
  own_password: true,
  own_deletion: true,
  password_reset: true,
  email_login: true,
  notice_url: `http://127.0.0.1:${mailer.port}/mail`,
  notice_secret: SECRET,
  notice_page: "https://app.example.com/account",
};

let server: ServerProcess;

beforeAll(async () => {
  server = await startReadyServer({ config: { auth: ALL } });
  await server.rows(
    "CREATE NAMESPACE app; CREATE USER TABLE app.notes (id INT PRIMARY KEY, by TEXT DEFAULT CURRENT_USER())",
  );
});

afterAll(async () => {
  await server.stop();
  await mailer.stop(true);
});

let count = 0;

/** Returns a name that no other test uses. */
function newName(prefix = "p"): string {
  count += 1;
  return `${prefix}erson${count}x`;
}

type Answer = readonly [status: number, body: Record<string, unknown>];

async function post(path: string, body: object, token?: string): Promise<Answer> {
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const answer = await server.post(`/v1/api/auth/${path}`, body, headers);
  return [answer.status, (await answer.json()) as Record<string, unknown>];
}

async function logIn(user: string, password = PASSWORD): Promise<Answer> {
  return await post("login", { user, password });
}

/** Waits for a message to an email address, and returns the most recent one. */
async function noticeTo(email: string, type: string): Promise<Notice> {
  const found = (): Notice | undefined =>
    notices.findLast((each) => each.email === email && each.type === type);
  await until(() => found() !== undefined);
  const notice = found();
  if (notice === undefined) throw new Error(`No message to ${email}`);
  return notice;
}

describe("a server without configured sign-ups refuses them", () => {
  let plain: ServerProcess;
  beforeAll(async () => {
    plain = await startReadyServer();
  });
  afterAll(async () => {
    await plain.stop();
  });

  test.each([
    ["signup", { user: "ann", password: PASSWORD }, 'auth.signup = "open"'],
    ["guest", {}, "auth.guests = true"],
    ["password", { password: PASSWORD, new_password: OTHER }, "auth.own_password = true"],
    ["delete", { password: PASSWORD }, "auth.own_deletion = true"],
    ["reset_link", { user: "ann" }, "auth.password_reset = true"],
    ["reset", { token: "x", password: OTHER }, "auth.password_reset = true"],
    ["verify_link", {}, "auth.email_login = true"],
    ["email", { password: PASSWORD, email: "a@b.example" }, "auth.email_login = true"],
    ["verify", { token: "x" }, "auth.email_login = true"],
  ])("%s is off, and the refusal names the configuration key", async (path, body, key) => {
    const headers = { Authorization: `Bearer ${plain.token}` };
    const sent = path === "signup" || path === "guest" ? {} : headers;
    const answer = await plain.post(`/v1/api/auth/${path}`, body, sent);
    const { error, message } = (await answer.json()) as { error: string; message: string };
    expect([answer.status, error]).toEqual([403, "forbidden"]);
    expect(message).toContain(key);
  });
});

describe("creating an account by sign-up", () => {
  test("sign-up creates an account of role user that can log in", async () => {
    const user = newName();
    const [status] = await post("signup", { user, password: PASSWORD });
    expect(status).toBe(202);
    const [, login] = await logIn(user);
    expect(login["user"]).toMatchObject({ id: user, role: "user", email: null });
    expect(login["admin_ui_access"]).toBe(false);
  });

  test("sign-up gives the same response for a taken name, a similar name and a dropped one, and changes nothing", async () => {
    const user = newName("a");
    await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}'`);
    await server.rows(`CREATE USER ${user}old INTERNAL; DROP USER ${user}old`);
    const free = await post("signup", { user: newName(), password: OTHER });
    const names = [user, user.toUpperCase(), user.replace("e", "е"), `${user}old`, "ada"];
    for (const name of shareOf(names, { oneOf: 2 })) {
      expect(await post("signup", { user: name, password: OTHER }), name).toEqual(free);
      const [status, body] = await logIn(name, OTHER);
      expect([name, status, body["error"]]).toEqual([name, 401, "unauthorized"]);
    }
    expect((await logIn(user))[0]).toBe(200);
  });

  test.each([
    [{ password: PASSWORD }, 400, "invalid_request"],
    [{ user: "x", password: 5 }, 400, "invalid_request"],
    [{ user: "x", password: PASSWORD, role: "dba" }, 400, "invalid_request"],
    [{ user: "x", password: PASSWORD, email: "no address" }, 400, "invalid_request"],
    [{ user: "root", password: PASSWORD }, 400, "invalid_user"],
    [{ user: "a/b", password: PASSWORD }, 400, "invalid_user"],
    [{ user: "a@b.example", password: PASSWORD }, 400, "invalid_user"],
    [{ user: "guest-1", password: PASSWORD }, 400, "invalid_user"],
    [{ user: "x", password: "short" }, 400, "weak_password"],
    [{ user: "x", password: PASSWORD, invitation: "tdi_x" }, 403, "invalid_invitation"],
  ])("sign-up refuses %j", async (body, status, error) => {
    const [found, answer] = await post("signup", body);
    expect([found, answer["error"]]).toEqual([status, error]);
  });

  testThoroughly(
    "sign-up is limited to a number of accounts in an hour, whether or not the names are free",
    async () => {
      await using few = await startReadyServer({
        config: { auth: { signup: "open", guests: true }, limits: { signups_per_hour: 2 } },
      });
      const signUp = (user: string): Promise<Response> =>
        few.post("/v1/api/auth/signup", { user, password: PASSWORD });
      expect((await signUp("ada")).status).toBe(202);
      expect((await few.post("/v1/api/auth/guest", {})).status).toBe(200);
      const refused = await signUp("bob");
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(0);
    },
  );

  test("sign-up by invitation requires a code, which works a limited number of times until it expires", async () => {
    await using invited = await startReadyServer({ config: { auth: { signup: "invitation" } } });
    const [row = []] = await invited.rows("CREATE INVITATION spring USES 2 EXPIRES IN '1 day'");
    const [gone = []] = await invited.rows("CREATE INVITATION gone");
    await invited.rows("DROP INVITATION gone");
    const code = String(row[1]);
    expect(code).toMatch(/^tdi_[0-9A-Za-z]{38}$/);
    const signUp = async (user: string, invitation?: unknown): Promise<unknown[]> => {
      const body = { user, password: PASSWORD, invitation };
      const answer = await invited.post("/v1/api/auth/signup", body);
      const { error } = (await answer.json()) as { error?: string };
      return [answer.status, error];
    };
    const refusal = [403, "invalid_invitation"];
    expect(await signUp("ann")).toEqual(refusal);
    expect(await signUp("ann", gone[1])).toEqual(refusal);
    expect(await signUp("ann", code.slice(0, -1))).toEqual(refusal);
    // A sign-up that fails because the name is taken does not use up the invitation code.
    for (const user of ["ada", "ann", "ben"])
      expect(await signUp(user, code)).toEqual([202, undefined]);
    expect(await signUp("cat", code)).toEqual(refusal);
    await invited.login("ann");
    await invited.login("ben");
    expect(
      (await invited.post("/v1/api/auth/login", { user: "cat", password: PASSWORD })).status,
    ).toBe(401);
    expect(await invited.rows("SELECT name, uses, uses_max FROM system.invitations")).toEqual([
      ["spring", 2, 2],
    ]);
    expect(JSON.stringify((await invited.sql("SHOW INVITATIONS")).body)).not.toContain(code);
    await invited.restart();
    expect(await signUp("cat", code)).toEqual(refusal);
  });
});

describe("using the server as a guest", () => {
  async function newGuest(): Promise<Login> {
    const [status, body] = await post("guest", {});
    expect(status).toBe(200);
    return body as unknown as Login;
  }

  test("a guest writes rows, and keeps them and its id when it becomes a user with a name", async () => {
    const guest = await newGuest();
    const { id } = guest.user;
    expect(id).toMatch(/^guest-[0-9a-f]{20}$/);
    await server.rows("INSERT INTO app.notes (id) VALUES (1)", { token: guest.access_token });
    const user = newName();
    expect((await post("signup", { user, password: PASSWORD }, guest.access_token))[0]).toBe(202);
    // The sessions that the user had as a guest have ended.
    expect((await server.sql("SELECT 1", { token: guest.access_token })).status).toBe(401);
    const [, login] = await logIn(user);
    expect(login["user"]).toMatchObject({ id, role: "user" });
    const token = String(login["access_token"]);
    expect(await server.rows("SELECT id, by FROM app.notes", { token })).toEqual([[1, id]]);
    expect(
      await server.rows("SELECT login_name, auth_type FROM system.my_account", { token }),
    ).toEqual([[user, "password"]]);
    await server.restart();
    expect((await logIn(user))[0]).toBe(200);
    expect((await logIn(id))[0]).toBe(200);
  });

  testThoroughly("a guest stays a guest if the name is taken, with the same response", async () => {
    const guest = await newGuest();
    const free = await post("signup", { user: newName(), password: PASSWORD });
    expect(await post("signup", { user: "ada", password: OTHER }, guest.access_token)).toEqual(
      free,
    );
    expect(await server.rows("SELECT 1", { token: guest.access_token })).toEqual([[1]]);
    expect((await logIn("ada", OTHER))[0]).toBe(401);
  });

  test("a guest cannot log in by its id, has no password to change, and can delete its account without one", async () => {
    const guest = await newGuest();
    expect((await logIn(guest.user.id))[0]).toBe(401);
    const change = { password: "", new_password: OTHER };
    expect((await post("password", change, guest.access_token))[0]).toBe(401);
    expect((await post("delete", {}, guest.access_token))[0]).toBe(200);
    expect((await server.sql("SELECT 1", { token: guest.access_token })).status).toBe(401);
  });
});

describe("users change their own passwords", () => {
  test("a user changes the password with the old one, which ends other sessions and begins a new one", async () => {
    const user = newName();
    const token = await server.createUser(user);
    const other = await SocketClient.connect(server.url, {
      token: (await server.login(user)).access_token,
    });
    await other.expect("auth_success");
    const [status, body] = await post(
      "password",
      { password: PASSWORD, new_password: OTHER },
      token,
    );
    expect(status).toBe(200);
    expect(await other.expect("error")).toMatchObject({ code: "TOKEN_REVOKED" });
    expect((await server.sql("SELECT 1", { token })).status).toBe(401);
    expect(await server.rows("SELECT 1", { token: String(body["access_token"]) })).toEqual([[1]]);
    expect((await logIn(user))[0]).toBe(401);
    expect((await logIn(user, OTHER))[0]).toBe(200);
  });

  testThoroughly(
    "a password change refuses a wrong password and a weak new one, and failed attempts lock the name",
    async () => {
      const user = newName();
      const token = await server.createUser(user);
      const change = async (password: string, newPassword: string): Promise<unknown[]> => {
        const [status, { error }] = await post(
          "password",
          { password, new_password: newPassword },
          token,
        );
        return [status, error];
      };
      expect(await change(PASSWORD, "short")).toEqual([400, "weak_password"]);
      for (let guess = 0; guess < 5; guess += 1) {
        expect(await change("wrong", OTHER)).toEqual([401, "unauthorized"]);
      }
      expect(await change(PASSWORD, OTHER)).toEqual([401, "account_locked"]);
      const [, { error }] = await logIn(user);
      expect(error).toBe("account_locked");
    },
  );

  testThoroughly("a service token cannot change the password", async () => {
    const user = newName();
    await server.createUser(user);
    const [row = []] = await server.rows(`CREATE TOKEN ${user} FOR USER ${user}`);
    const [status, body] = await post(
      "password",
      { password: PASSWORD, new_password: OTHER },
      String(row[1]),
    );
    expect([status, body["error"]]).toEqual([403, "forbidden"]);
    expect((await logIn(user))[0]).toBe(200);
  });
});

describe("users delete their own accounts", () => {
  test("a user deletes the account with the password, together with its sessions and rows", async () => {
    const user = newName();
    const token = await server.createUser(user);
    await server.rows("INSERT INTO app.notes (id) VALUES (1)", { token });
    const socket = await SocketClient.connect(server.url, { token });
    await socket.expect("auth_success");
    const [wrong, { error }] = await post("delete", { password: "wrong" }, token);
    expect([wrong, error]).toEqual([401, "unauthorized"]);
    expect((await post("delete", { password: PASSWORD }, token))[0]).toBe(200);
    expect(await socket.expect("error")).toMatchObject({ code: "TOKEN_REVOKED" });
    expect((await logIn(user))[0]).toBe(401);
    // An administrator may reuse the name of a deleted account. The new account is empty.
    const again = await server.createUser(user);
    expect(await server.rows("SELECT * FROM app.notes", { token: again })).toEqual([]);
  });

  test.each([
    ["a policy", "n.rows", ["SCHEMA_CHANGED", "NOT_FOUND"]],
    ["a view", "n.shown", ["UNAUTHORIZED"]],
  ])(
    "the end of an account ends the live queries that %s of it permitted, without a commit",
    async (_, name, codes) => {
      const owner = newName();
      const token = await server.createUser(owner);
      const reader = await server.createUser(newName());
      await server.rows(`CREATE NAMESPACE n AUTHORIZATION ${owner}`);
      await server.rows(
        `CREATE TABLE n.rows (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED');
       CREATE POLICY p ON n.rows FOR SELECT USING (id > 0);
       CREATE VIEW n.shown WITH (security_invoker = false, access_level = 'PUBLIC') AS
         SELECT id FROM n.rows`,
        { token },
      );
      const socket = await SocketClient.connect(server.url, { token: reader });
      await socket.expect("auth_success");
      socket.send({ type: "subscribe", subscription: { id: "s", sql: `SELECT id FROM ${name}` } });
      await socket.expect("subscription_ack");
      await socket.expect("initial_data_batch");
      expect((await post("delete", { password: PASSWORD }, token))[0]).toBe(200);
      expect(codes).toContain((await socket.expect("error")).code);
      socket.close();
      await server.rows("DROP NAMESPACE n CASCADE");
    },
  );

  testThoroughly("an administrator's account cannot be deleted in this way", async () => {
    const { access_token: token } = await server.login("ada");
    const [status, body] = await post("delete", { password: PASSWORD }, token);
    expect([status, body["error"]]).toEqual([403, "forbidden"]);
    expect(body["message"]).toContain("DROP USER");
  });
});

describe("a server sends links by email", () => {
  test("a link sets a new password once, ends all sessions and lifts a lock", async () => {
    const user = newName();
    const email = `${user}@example.com`;
    await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}' EMAIL '${email}'`);
    const { access_token: token } = await server.login(user);
    for (let guess = 0; guess < 5; guess += 1) await logIn(user, "wrong");
    expect((await post("reset_link", { user }))[0]).toBe(202);
    const notice = await noticeTo(email, "reset_password");
    expect(notice).toMatchObject({
      user_id: user,
      link: `https://app.example.com/account#reset_password=${notice.token}`,
    });
    const weak = await post("reset", { token: notice.token, password: "short" });
    expect([weak[0], weak[1]["error"]]).toEqual([400, "weak_password"]);
    expect((await post("reset", { token: notice.token, password: OTHER }))[0]).toBe(200);
    expect((await server.sql("SELECT 1", { token })).status).toBe(401);
    expect((await logIn(user, OTHER))[0]).toBe(200);
    const again = await post("reset", { token: notice.token, password: PASSWORD });
    expect([again[0], again[1]["error"]]).toEqual([403, "invalid_link"]);
    expect((await logIn(user, OTHER))[0]).toBe(200);
    expect(signatures).not.toContain(false);
  });

  test("a link request gets the same response for an unknown name, one without an address and a known one", async () => {
    const user = newName();
    const email = `${user}@example.com`;
    await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}' EMAIL '${email}'`);
    const known = await post("reset_link", { user });
    expect(await post("reset_link", { user: "nobody at all" })).toEqual(known);
    expect(await post("reset_link", { user: "root" })).toEqual(known);
    expect(await post("reset_link", { user: email.toUpperCase() })).toEqual(known);
    // The server sends at most three messages per hour to an account.
    for (let each = 0; each < 5; each += 1)
      expect(await post("reset_link", { user })).toEqual(known);
    await noticeTo(email, "reset_password");
    const other = newName();
    await server.rows(
      `CREATE USER ${other} WITH PASSWORD '${PASSWORD}' EMAIL '${other}@example.com'`,
    );
    await post("reset_link", { user: other });
    await noticeTo(`${other}@example.com`, "reset_password");
    expect(notices.filter((each) => each.email === email)).toHaveLength(3);
  });

  testThoroughly("a link cannot be used as a token, nor a token as a link", async () => {
    const user = newName();
    await server.rows(
      `CREATE USER ${user} WITH PASSWORD '${PASSWORD}' EMAIL '${user}@example.com'`,
    );
    await post("reset_link", { user });
    const { token = "" } = await noticeTo(`${user}@example.com`, "reset_password");
    expect((await server.sql("SELECT 1", { token })).status).toBe(401);
    expect((await post("refresh", { refresh_token: token }))[0]).toBe(401);
    expect((await post("verify", { token }))[0]).toBe(403);
    const login = await server.login(user);
    for (const wrong of [login.access_token, login.refresh_token, "x", `${token}x`]) {
      const [status, { error }] = await post("reset", { token: wrong, password: OTHER });
      expect([status, error]).toEqual([403, "invalid_link"]);
    }
  });
});

describe("users change their email addresses", () => {
  test("an address is a login name once it is verified, for one account only", async () => {
    const email = `${newName()}@example.com`;
    const first = await post("signup", { email, password: PASSWORD });
    expect(first[0]).toBe(202);
    expect((await logIn(email))[0]).toBe(401);
    const { token, user_id: id } = await noticeTo(email, "verify_email");
    expect((await post("verify", { token }))[0]).toBe(200);
    const [, login] = await logIn(email.toUpperCase());
    expect(login["user"]).toMatchObject({ id, email });
    // Another sign-up with the address gets the same response, but the owner of the address gets a
    // message.
    expect(await post("signup", { email, password: OTHER })).toEqual(first);
    expect(await noticeTo(email, "email_taken")).toEqual({
      type: "email_taken",
      user_id: id,
      email,
    });
    expect((await logIn(email, OTHER))[0]).toBe(401);
    expect((await logIn(email))[0]).toBe(200);
  });

  testThoroughly(
    "an address that no longer belongs to an account cannot set a password through its link",
    async () => {
      const [user, email] = [newName(), `${newName()}@example.com`];
      await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}' EMAIL '${email}'`);
      await post("reset_link", { user });
      const { token } = await noticeTo(email, "reset_password");
      await server.rows(`ALTER USER ${user} SET EMAIL 'new.${email}'`);
      const [status, { error }] = await post("reset", { token, password: OTHER });
      expect([status, error]).toEqual([403, "invalid_link"]);
      expect((await logIn(user))[0]).toBe(200);
    },
  );

  testThoroughly(
    "an address that several accounts claim belongs to the first one that verifies it",
    async () => {
      const email = `${newName()}@example.com`;
      const [one, two] = [newName(), newName()];
      const tokens: (string | undefined)[] = [];
      for (const user of [one, two]) {
        await post("signup", { user, email, password: PASSWORD });
        await until(() => notices.some((each) => each.user_id === user));
        tokens.push(notices.find((each) => each.user_id === user)?.token);
      }
      expect((await post("verify", { token: tokens[1] }))[0]).toBe(200);
      const [status, { error }] = await post("verify", { token: tokens[0] });
      expect([status, error]).toEqual([403, "invalid_link"]);
      expect((await logIn(email))[1]["user"]).toMatchObject({ id: two });
      // The new email address is unverified, so it cannot be used to log in.
      await server.rows(`ALTER USER ${two} SET EMAIL 'other@example.com'`);
      expect((await logIn(email))[0]).toBe(401);
      expect((await logIn("other@example.com"))[0]).toBe(401);
    },
  );

  test.each(shareOf(["somebody", "a guest"], { oneOf: 2 }))(
    "an address that %s gives at sign-up opens no row before it is verified",
    async (sender) => {
      const [user, email, table] = [newName(), `${newName()}@example.com`, `app.for_${newName()}`];
      await server.rows(
        `CREATE TABLE ${table} (email TEXT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED'); ` +
          `CREATE POLICY invited ON ${table} FOR SELECT USING (email = CLAIM('email')); ` +
          `INSERT INTO ${table} VALUES ('${email}')`,
      );
      const [, guest] = sender === "a guest" ? await post("guest", {}) : [200, {}];
      const guestToken = guest["access_token"] as string | undefined;
      await post("signup", { user, email, password: PASSWORD }, guestToken);
      const seen = async (): Promise<unknown> => {
        const { access_token: token } = await server.login(user);
        return await server.rows(`SELECT CLAIM('email'), (SELECT count(*) FROM ${table})`, {
          token,
        });
      };
      expect(await seen()).toEqual([[null, 0]]);
      const { token, user_id: id } = await noticeTo(email, "verify_email");
      await server.rows(`ALTER USER "${id}" SET METADATA '{}'`);
      expect(await seen()).toEqual([[null, 0]]);
      await post("verify", { token });
      expect(await seen()).toEqual([[email, 1]]);
      await server.rows(`ALTER USER "${id}" SET EMAIL 'set.by@example.com'`);
      expect(await seen()).toEqual([["set.by@example.com", 0]]);
    },
  );

  test("a user changes the address by following a link to the new one", async () => {
    const [user, email] = [newName(), `${newName()}@example.com`];
    await post("signup", { user, email, password: PASSWORD });
    await post("verify", { token: (await noticeTo(email, "verify_email")).token });
    const { access_token: token } = await server.login(user);
    const [next, other] = [`next.${email}`, `other.${email}`];
    const asked = await post("email", { password: PASSWORD, email: next }, token);
    expect(asked[0]).toBe(202);
    await post("email", { password: PASSWORD, email: other }, token);
    const links = [await noticeTo(next, "verify_email"), await noticeTo(other, "verify_email")];
    // The old address remains valid until the new one is confirmed, and the link works only for
    // this purpose.
    expect((await logIn(email))[0]).toBe(200);
    expect((await logIn(next))[0]).toBe(401);
    expect((await server.sql("SELECT 1", { token: links[0]?.token ?? "" })).status).toBe(401);

    expect((await post("verify", { token: links[0]?.token }))[0]).toBe(200);
    expect((await logIn(next))[1]["user"]).toMatchObject({ email: next });
    expect((await logIn(email))[0]).toBe(401);
    // A link changes only the address for which it was requested, and works only once.
    for (const link of links) {
      const [status, { error }] = await post("verify", { token: link.token });
      expect([status, error]).toEqual([403, "invalid_link"]);
    }
    expect((await logIn(next))[0]).toBe(200);
  });

  testThoroughly(
    "a change to the address of another account has the same response, and the owner of that account is notified",
    async () => {
      const [user, owner] = [newName(), newName()];
      const taken = `${newName()}@example.com`;
      await post("signup", { user: owner, email: taken, password: PASSWORD });
      await post("verify", { token: (await noticeTo(taken, "verify_email")).token });
      await post("signup", { user, password: PASSWORD });
      const { access_token: token } = await server.login(user);
      const free = `${newName()}@example.com`;
      const body = { password: PASSWORD, email: free };
      const answer = await post("email", body, token);
      expect(await post("email", { ...body, email: taken }, token)).toEqual(answer);
      expect(await noticeTo(taken, "email_taken")).toMatchObject({ email: taken });
      expect(
        notices.filter((each) => each.email === taken && each.type === "verify_email"),
      ).toHaveLength(1);
      // An account without an address gets its first one through a link.
      await post("verify", { token: (await noticeTo(free, "verify_email")).token });
      expect((await logIn(free))[1]["user"]).toMatchObject({ id: user, email: free });
    },
  );

  test.each([
    [{ password: "wrong horse 9", email: "a@b.example" }, 401, "unauthorized"],
    [{ password: PASSWORD, email: "no address" }, 400, "invalid_request"],
    [{ password: PASSWORD }, 400, "invalid_request"],
    [{ email: "a@b.example" }, 400, "invalid_request"],
  ])("%p cannot change the address", async (body, status, code) => {
    const user = newName();
    await post("signup", { user, password: PASSWORD });
    const { access_token: token } = await server.login(user);
    const [given, { error }] = await post("email", body, token);
    expect([given, error]).toEqual([status, code]);
    expect((await post("email", body))[0]).toBe(401);
  });

  testThoroughly("a guest or a service token cannot change the address", async () => {
    const [, guest] = await post("guest", {});
    const body = { password: PASSWORD, email: "a@b.example" };
    expect((await post("email", body, String(guest["access_token"])))[0]).toBe(401);
    const user = newName();
    await post("signup", { user, password: PASSWORD });
    const rows = await server.rows(`CREATE TOKEN of_${user} FOR USER ${user}`);
    const secret = rows.flat().find((cell) => String(cell).startsWith("tdm_"));
    expect((await post("email", body, String(secret)))[0]).toBe(403);
  });

  testThoroughly(
    "a newly verified address renews an open connection, whose queries restart",
    async () => {
      const [user, email, table] = [newName(), `${newName()}@example.com`, `app.for_${newName()}`];
      await server.rows(
        `CREATE TABLE ${table} (email TEXT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED'); ` +
          `CREATE POLICY invited ON ${table} FOR SELECT USING (email = CLAIM('email')); ` +
          `INSERT INTO ${table} VALUES ('${email}')`,
      );
      await post("signup", { user, email, password: PASSWORD });
      const { token: link } = await noticeTo(email, "verify_email");
      const { access_token: before } = await server.login(user);
      const socket = await SocketClient.connect(server.url, { token: before });
      await socket.expect("auth_success");
      const subscription = { id: "s", sql: `SELECT email FROM ${table}` };
      socket.send({ type: "subscribe", subscription });
      await socket.expect("subscription_ack");
      expect(await socket.expect("initial_data_batch")).toMatchObject({ rows: [] });

      const { access_token: same } = await server.login(user);
      socket.send({ type: "authenticate", method: "jwt", token: same });
      await socket.expect("auth_success");
      await post("verify", { token: link });
      const { access_token: token } = await server.login(user);
      socket.send({ type: "authenticate", method: "jwt", token });
      await socket.expect("auth_success");
      // The earlier token renewal had the same claims, so the query continued. This renewal ends
      // it.
      expect(await socket.expect("error")).toMatchObject({
        subscription_id: "s",
        code: "SCHEMA_CHANGED",
        ended: true,
      });
      socket.send({ type: "subscribe", subscription });
      await socket.expect("subscription_ack");
      expect(await socket.expect("initial_data_batch")).toMatchObject({ rows: [{ email }] });
      socket.close();
    },
  );

  testThoroughly(
    "an address that an administrator sets over an unverified one becomes a claim",
    async () => {
      const [user, email] = [newName(), `${newName()}@example.com`];
      await post("signup", { user, email, password: PASSWORD });
      await server.rows(`ALTER USER ${user} SET EMAIL '${email}'`);
      const { access_token: token } = await server.login(user);
      expect(await server.rows("SELECT CLAIM('email')", { token })).toEqual([[email]]);
    },
  );
});

test("metadata of users is set by administrators and read by the user", async () => {
  const user = newName();
  await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}' METADATA '{"plan": "free"}'`);
  const { access_token: token } = await server.login(user);
  const own = "SELECT metadata ->> 'plan' FROM system.my_account";
  expect(await server.rows(own, { token })).toEqual([["free"]]);
  await server.rows(`ALTER USER ${user} SET METADATA '{"plan": "pro"}'`);
  expect(await server.rows(own, { token })).toEqual([["pro"]]);
  const refused = await server.sql(`ALTER USER ${user} SET METADATA '{}'`, { token });
  expect(refused.body.error?.code).toBe("PERMISSION_DENIED");
  for (const text of ["[]", "1", "not json", `{"a": "${"x".repeat(17_000)}"}`]) {
    const { body } = await server.sql(`ALTER USER ${user} SET METADATA '${text}'`);
    expect(body.error?.message).toContain("a JSON object of at most");
  }
  expect(
    await server.rows(`SELECT metadata ->> 'plan' FROM system.users WHERE user_id = '${user}'`),
  ).toEqual([["pro"]]);
});

test("role service may create users of role user, but no others, and may change none", async () => {
  const token = await server.createUser(newName(), "service");
  const user = newName();
  await server.rows(`CREATE USER ${user} WITH PASSWORD '${PASSWORD}'`, { token });
  expect((await logIn(user))[1]["user"]).toMatchObject({ role: "user" });
  for (const sql of [
    `CREATE USER x1 INTERNAL ROLE service`,
    `CREATE USER x1 INTERNAL ROLE dba`,
    `ALTER USER ${user} SET ROLE service`,
    `ALTER USER ${user} SET PASSWORD '${OTHER}'`,
    `DROP USER ${user}`,
  ]) {
    const { body } = await server.sql(sql, { token });
    expect([sql, body.error?.code]).toEqual([sql, "PERMISSION_DENIED"]);
  }
});
