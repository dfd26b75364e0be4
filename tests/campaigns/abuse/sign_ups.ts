/**
 * A flood of everything that a stranger may do to accounts: sign-ups with free and with taken
 * names, with valid and with invalid invitations, guests, links for known and for unknown users,
 * and logins. It sends ten thousand attempts a second from many connections, or as many as the
 * server answers.
 *
 * An attempt may be accepted, refused or asked to wait, and nothing else. Attempts with known and
 * with unknown names must get the same responses, even while the server is overloaded.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { PASSWORD } from "../../support/server_process.ts";
import type { Attack } from "./attack.ts";
import { type HttpAnswer, HttpConnection } from "./http_connection.ts";

const ATTEMPTS_PER_SECOND = 10_000;

/** The user of the attack who has logged in before, and whose name is therefore taken. */
const KNOWN = "mallory_0";

const STATUSES: ReadonlySet<number> = new Set([200, 202, 401, 403, 429]);

/** Pairs of attempts to which the responses must look the same to a stranger. */
const ALIKE: readonly (readonly [string, string])[] = [
  ["free name", "taken name"],
  ["link for nobody", "link for a user"],
];

interface Attempt {
  readonly kind: string;
  readonly path: string;
  readonly body: object;
}

export async function signUp({ chance, seconds, server, socketCount }: Attack): Promise<string> {
  const [row] = await server.rows("CREATE INVITATION flood USES 1000000");
  const code = String(row?.[1]);
  const connections = await openAll(server.url, socketCount);
  const seen = new Map<string, Map<string, number>>();
  const pending = new Set<Promise<void>>();
  const idle = [...connections];
  const offer = async (
    connection: (typeof connections)[number],
    attempt: Attempt,
  ): Promise<void> => {
    const answer = await connection.post(`/v1/api/auth/${attempt.path}`, attempt.body);
    count(seen, attempt, answer);
    idle.push(connection);
  };
  const start = performance.now();
  let sent = 0;
  for (let now = start; now < start + seconds * 1000; now = performance.now()) {
    const due = Math.floor(((now - start) / 1000) * ATTEMPTS_PER_SECOND);
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.isClosed) continue;
      const attempt = attemptOf(sent, { chance, code });
      const one = offer(connection, attempt).finally(() => pending.delete(one));
      pending.add(one);
      sent += 1;
      if (sent >= due) break;
    }
    await Bun.sleep(1);
  }
  await Promise.all(pending);
  for (const connection of connections) connection.close();
  requireAlike(seen);
  const kinds = [...seen].map(([kind, answers]) => `${kind} ${summaryOf(answers)}`);
  return `${sent} attempts in ${seconds} s from ${socketCount} connections: ${kinds.join("; ")}`;
}

async function openAll(url: string, socketCount: number): Promise<HttpConnection[]> {
  const connections: HttpConnection[] = [];
  while (connections.length < socketCount) connections.push(await HttpConnection.open(url));
  return connections;
}

function attemptOf(index: number, { chance, code }: { chance: Chance; code: string }): Attempt {
  const free = { user: `new_${index}`, password: PASSWORD };
  const taken = { user: KNOWN, password: PASSWORD };
  return chance.pick<Attempt>([
    { kind: "free name", path: "signup", body: free },
    { kind: "taken name", path: "signup", body: taken },
    { kind: "right invitation", path: "signup", body: { ...free, invitation: code } },
    { kind: "wrong invitation", path: "signup", body: { ...free, invitation: `tdi_${index}` } },
    { kind: "guest", path: "guest", body: {} },
    { kind: "link for nobody", path: "reset_link", body: { user: `nobody_${index}` } },
    { kind: "link for a user", path: "reset_link", body: { user: KNOWN } },
    { kind: "login", path: "login", body: { user: `nobody_${index}`, password: PASSWORD } },
  ]);
}

/**
 * Counts a response by its status and its text. Numbers are removed from the text, because they
 * state how long to wait.
 */
function count(
  seen: Map<string, Map<string, number>>,
  { kind }: Attempt,
  { status, text }: HttpAnswer,
): void {
  if (!STATUSES.has(status)) throw new Error(`${kind} was answered with ${status} ${text}`);
  const answers = seen.get(kind) ?? new Map<string, number>();
  seen.set(kind, answers);
  const { error, message } = JSON.parse(text) as { error?: string; message?: string };
  const answer = `${status} ${error ?? ""} ${kind === "guest" ? "" : (message ?? "")}`;
  answers.set(answer, (answers.get(answer) ?? 0) + 1);
}

function requireAlike(seen: ReadonlyMap<string, ReadonlyMap<string, number>>): void {
  for (const pair of ALIKE) {
    const [left = "", right = ""] = pair.map((kind) =>
      [...(seen.get(kind)?.keys() ?? [])].toSorted().join("\n"),
    );
    if (left !== right) throw new Error(`${pair.join(" and ")} differ:\n${left}\n\n${right}`);
  }
}

function summaryOf(answers: ReadonlyMap<string, number>): string {
  const byStatus = new Map<string, number>();
  for (const [answer, times] of answers) {
    const status = answer.slice(0, 3);
    byStatus.set(status, (byStatus.get(status) ?? 0) + times);
  }
  return [...byStatus].map(([status, times]) => `${times} × ${status}`).join(", ");
}
