/**
 * Implements the small part of HTTP that the demo needs. The demo is an ordinary client of a
 * running server.
 */

export interface Answer {
  readonly rows: readonly (readonly unknown[])[];
  readonly names: readonly string[];
  readonly lastSeq: number | undefined;
  /** The duration of the request as reported by the server, in milliseconds. */
  readonly tookMs: number;
}

export class Api {
  readonly url: string;
  readonly token: string;

  constructor(url: string, token: string) {
    this.url = url;
    this.token = token;
  }

  /**
   * Runs one or more SQL statements.
   * @returns The result of the last statement.
   * @throws With the server's own message.
   */
  async sql(sql: string, params?: readonly unknown[]): Promise<Answer> {
    const answer = await fetch(`${this.url}/v1/api/sql`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.token}` },
      body: JSON.stringify(params === undefined ? { sql } : { sql, params }),
    });
    const body = (await answer.json()) as SqlBody;
    if (body.error !== undefined) {
      throw new Error(`Cannot run ${sql.slice(0, 100)}: ${body.error.code}: ${body.error.message}`);
    }
    const { rows = [], schema = [], last_seq } = body.results.at(-1) ?? {};
    return {
      rows,
      names: schema.map(({ name }) => name),
      lastSeq: last_seq ?? undefined,
      tookMs: body.took,
    };
  }
}

interface SqlBody {
  readonly results: readonly {
    readonly rows?: readonly (readonly unknown[])[];
    readonly schema?: readonly { readonly name: string }[];
    readonly last_seq?: number | null;
  }[];
  readonly took: number;
  readonly error?: { readonly code: string; readonly message: string };
}

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** Logs in. If the server has not been set up yet, sets it up with these credentials first. */
export async function connect(url: string, credentials: Credentials): Promise<Api> {
  const status = await fetch(`${url}/v1/api/auth/status`).catch(() => undefined);
  if (status === undefined) {
    throw new Error(`Cannot reach ${url}: start the server first, with npm start config.toml`);
  }
  const { needs_setup: needsSetup } = (await status.json()) as { needs_setup: boolean };
  if (needsSetup) {
    await post(`${url}/v1/api/auth/setup`, {
      ...credentials,
      root_password: credentials.password,
    });
  }
  return new Api(url, await logIn(url, credentials));
}

export async function logIn(url: string, credentials: Credentials): Promise<string> {
  const { access_token: token } = (await post(`${url}/v1/api/auth/login`, credentials)) as {
    access_token: string;
  };
  return token;
}

async function post(url: string, body: unknown): Promise<unknown> {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`Cannot post to ${url}: ${await answer.text()}`);
  return answer.json();
}
