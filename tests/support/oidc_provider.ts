/**
 * OpenID Connect providers for tests, and a browser that uses them.
 *
 * - `RealProvider` is `oidc-provider`, a certified implementation, in a separate process.
 * - `SigningIssuer` serves a discovery document and keys, and signs anything that a test requests,
 *   including tokens and key sets that no honest provider would create.
 */
import { join } from "node:path";
import { CompactSign, exportJWK, generateKeyPair, type JWK } from "jose";
import type { Certificate } from "./certificates.ts";

const PROGRAM = join(import.meta.dir, "oidc_provider.mjs");

const ISSUED_SECONDS = 600;

/** Allows a test to sign a header that marks an unknown extension as critical. */
const UNKNOWN = { crit: { exp2: true } };

/** Returns a port that is free now, for a server whose address must be known before it starts. */
export function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port = 0 } = server;
  void server.stop(true);
  return port;
}

/** Creates a private key as a JWK with an id. */
export async function signingKey(kid: string, alg = "RS256"): Promise<JWK> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  return { ...(await exportJWK(privateKey)), kid, alg, use: "sig" };
}

/** Returns the public part of a key. */
export function publicPart({ alg, crv, e, kid, kty, n, use, x, y }: JWK): JWK {
  const all = { alg, crv, e, kid, kty, n, use, x, y };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as JWK;
}

export interface RealProviderOptions {
  readonly clients: readonly object[];
  readonly keys: readonly JWK[];
  /** The claims of each account, by account name. */
  readonly accounts: Readonly<Record<string, object>>;
  readonly tls?: Certificate;
  readonly port?: number;
  /**
   * Whether the claims of scopes are available only from the userinfo endpoint, and not in ID
   * tokens.
   */
  readonly conformIdTokenClaims?: boolean;
}

export class RealProvider implements AsyncDisposable {
  /** The scheme, host and port of the provider, which together are also its issuer identifier. */
  readonly url: string;
  readonly #child: Bun.Subprocess<"ignore", "pipe", "ignore">;

  private constructor(url: string, child: Bun.Subprocess<"ignore", "pipe", "ignore">) {
    this.url = url;
    this.#child = child;
  }

  static async start(options: RealProviderOptions): Promise<RealProvider> {
    const child = Bun.spawn([process.execPath, PROGRAM], {
      env: { PATH: process.env["PATH"] ?? "", PROVIDER: JSON.stringify(options) },
      stdin: "ignore",
      stdout: "pipe",
      // The error output is ignored, because the package warns about its in-memory store and about
      // the runtime.
      stderr: "ignore",
    });
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const url = /https?:\/\/\S+/.exec(text)?.[0];
      if (url !== undefined) return new RealProvider(url, child);
    }
    throw new Error("Cannot start the provider: it ended before it listened");
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** Sets the account that the next logins choose, or makes the provider deny them. */
  async next(choice: { account: string } | { deny: true }, cert?: string): Promise<void> {
    const tls = cert === undefined ? {} : { tls: { ca: cert } };
    await fetch(`${this.url}/control`, { method: "PUT", body: JSON.stringify(choice), ...tls });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }
}

/** An issuer that signs any token that a test requests. */
export class SigningIssuer implements Disposable {
  /** The published key set, or any other body that the key set endpoint returns. */
  keySet: unknown;
  /**
   * Called before the usual endpoints. If it returns a response, that response is sent instead of
   * the usual one.
   */
  answer: ((path: string) => Response | Promise<Response> | undefined) | undefined;
  /** Additional members of the discovery document. */
  discovery: Readonly<Record<string, unknown>> = {};
  /** The paths requested so far. */
  readonly requested: string[] = [];
  readonly key: JWK;
  readonly #server: Bun.Server<undefined>;

  private constructor(key: JWK) {
    this.key = key;
    this.keySet = { keys: [publicPart(key)] };
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      fetch: async (request) => {
        const { pathname } = new URL(request.url);
        this.requested.push(pathname);
        const answer = await this.answer?.(pathname);
        if (answer !== undefined) return answer;
        if (pathname === "/jwks") return Response.json(this.keySet);
        return Response.json({ issuer: this.url, jwks_uri: `${this.url}/jwks`, ...this.discovery });
      },
    });
  }

  static async start(key?: JWK): Promise<SigningIssuer> {
    return new SigningIssuer(key ?? (await signingKey("first", "ES256")));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  /** Returns the claims of a typical token, with the given changes. */
  claims(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000);
    const usual = { iss: this.url, sub: "1", aud: "db", iat: now, exp: now + ISSUED_SECONDS };
    return { ...usual, ...change };
  }

  /** Signs a token with the usual claims and the given changes. */
  async token(
    change: Readonly<Record<string, unknown>> = {},
    { header = {}, key = this.key }: { header?: object; key?: JWK } = {},
  ): Promise<string> {
    return await this.signed(JSON.stringify(this.claims(change)), header, key);
  }

  /** Signs any text as the payload of a token. */
  async signed(text: string, header: object = {}, key: JWK = this.key): Promise<string> {
    const { alg = "RS256", kid } = key;
    const payload = new TextEncoder().encode(text);
    const protectedHeader = { alg, typ: "JWT", ...(kid === undefined ? {} : { kid }), ...header };
    return await new CompactSign(payload).setProtectedHeader(protectedHeader).sign(key, UNKNOWN);
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

/** The last page that a browser reached, and the addresses that it visited on the way. */
export interface Visit {
  readonly url: URL;
  readonly response: Response;
  readonly steps: readonly string[];
}

const STEPS_MAX = 20;

/** Follows redirects and keeps cookies, like a browser tab. */
export class Browser {
  /** The cookies by host, then by name. All ports of a host share them. */
  readonly #jar = new Map<string, Map<string, { value: string; path: string }>>();
  readonly #ca: string | undefined;

  constructor({ ca }: { ca?: string } = {}) {
    this.#ca = ca;
  }

  cookie(host: string, name: string): string | undefined {
    return this.#jar.get(host)?.get(name)?.value;
  }

  /** Returns the Cookie header for an address. */
  cookiesFor(url: URL): string {
    const cookies = [...(this.#jar.get(url.hostname) ?? [])];
    return cookies
      .filter(([, { path }]) => url.pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`)
      .join("; ");
  }

  /**
   * Navigates to an address, and follows redirects.
   *
   * @param until Stops before an address that matches is requested.
   */
  async go(address: string, until?: RegExp): Promise<Visit> {
    const steps: string[] = [];
    let url = new URL(address);
    let response = new Response();
    while (steps.length < STEPS_MAX) {
      steps.push(url.href);
      response = await this.#request(url);
      const next = response.headers.get("location");
      if (next === null) return { url, response, steps };
      url = new URL(next, url);
      if (until?.test(url.href) === true) return { url, response, steps };
    }
    throw new Error(`Too many redirects: ${steps.join(" ")}`);
  }

  /** Submits a form on a page, as the form's button would. */
  async send(address: string, form: Readonly<Record<string, string>>): Promise<Response> {
    const body = new URLSearchParams(form);
    return await this.#request(new URL(address), { method: "POST", body });
  }

  async #request(url: URL, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(url, {
      redirect: "manual",
      headers: { Cookie: this.cookiesFor(url), Accept: "text/html" },
      ...init,
      ...(this.#ca === undefined ? {} : { tls: { ca: this.#ca } }),
    });
    const cookies = this.#jar.get(url.hostname) ?? new Map<string, never>();
    this.#jar.set(url.hostname, cookies);
    for (const line of response.headers.getSetCookie()) {
      const { expires, maxAge, name, path, value } = Bun.Cookie.parse(line);
      const isOver = maxAge === 0 || (expires !== undefined && expires.getTime() < Date.now());
      if (isOver) cookies.delete(name);
      else cookies.set(name, { value, path: path ?? "/" });
    }
    return response;
  }
}
