/**
 * The ordinary client alongside the abuse, in its own process. A hundred times a second, the
 * victim inserts a row or reads one by key, and it follows its own rows. It prints "ready" once it
 * is working. When told to on its standard input, it prints its report as JSON.
 *
 *     bun tests/campaigns/abuse/victim.ts '{"url":"http://127.0.0.1:2900","token":"…"}'
 */
import { percentile } from "../../../scripts/support/statistics.ts";

const PERIOD_MS = 10;

/** The time after which a response counts as missing, in milliseconds. */
const ANSWER_MS_MAX = 10_000;

export interface VictimJob {
  readonly url: string;
  readonly token: string;
}

export interface VictimReport {
  readonly answers: number;
  readonly errors: readonly string[];
  /** The number of changes that were acknowledged but never delivered. */
  readonly missed: number;
  /** The 99th percentile of the response time, in milliseconds, for each kind of work. */
  readonly p99Ms: Readonly<Record<string, number>>;
}

if (import.meta.main) await work(JSON.parse(process.argv[2] ?? "") as VictimJob);

async function work({ url, token }: VictimJob): Promise<void> {
  const took: Record<string, number[]> = { insert: [], read: [], change: [] };
  const errors: string[] = [];
  const sentAt = new Map<number, number>();
  const socket = await follow(url, token, (id) => {
    const start = sentAt.get(id);
    if (start === undefined) return;
    took["change"]?.push(performance.now() - start);
    sentAt.delete(id);
  });
  socket.addEventListener("close", ({ code }) => errors.push(`its socket closed with ${code}`));
  process.stdout.write("ready\n");

  const running = new Set<Promise<void>>();
  let id = 0;
  const timer = setInterval(() => {
    id += 1;
    const one = id % 2 === 0 ? read(id) : insert(id);
    running.add(one);
    void one.finally(() => running.delete(one));
  }, PERIOD_MS);
  for await (const chunk of Bun.stdin.stream()) if (chunk.length > 0) break;
  clearInterval(timer);
  await Promise.all(running);
  const deadline = performance.now() + ANSWER_MS_MAX;
  while (sentAt.size > 0 && performance.now() < deadline) await Bun.sleep(PERIOD_MS);

  const p99Ms = Object.fromEntries(
    Object.entries(took).map(([kind, all]) => [
      kind,
      percentile(
        all.toSorted((a, b) => a - b),
        0.99,
      ),
    ]),
  );
  const answers = (took["insert"]?.length ?? 0) + (took["read"]?.length ?? 0);
  const report: VictimReport = { answers, errors, missed: sentAt.size, p99Ms };
  process.stdout.write(JSON.stringify(report));
  process.exit(0);

  async function insert(key: number): Promise<void> {
    sentAt.set(key, performance.now());
    const isDone = await ask("insert", `INSERT INTO app.notes VALUES (${key}, 'a note')`);
    if (!isDone) sentAt.delete(key);
  }

  async function read(key: number): Promise<void> {
    await ask("read", `SELECT body FROM app.wall WHERE id = ${key}`);
  }

  async function ask(kind: string, sql: string): Promise<boolean> {
    const start = performance.now();
    try {
      const answer = await fetch(`${url}/v1/api/sql`, {
        method: "POST",
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
        },
        body: JSON.stringify({ sql }),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${answer.status} ${text.slice(0, 200)}`);
      took[kind]?.push(performance.now() - start);
      return true;
    } catch (error) {
      errors.push(`${kind}: ${String(error)}`);
      return false;
    }
  }
}

function follow(url: string, token: string, onKey: (id: number) => void): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/ws`, {
    headers: { Authorization: `Bearer ${token}` },
  });
  const subscription = { id: "notes", sql: "SELECT id FROM app.notes" };
  const ready = Promise.withResolvers<WebSocket>();
  socket.addEventListener("open", () =>
    socket.send(JSON.stringify({ type: "subscribe", subscription })),
  );
  socket.addEventListener("close", ({ code }) => {
    ready.reject(new Error(`Cannot follow: closed with ${code}`));
  });
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    const message = JSON.parse(data) as {
      readonly type: string;
      readonly rows?: readonly { readonly id: number }[];
    };
    if (message.type === "subscription_ack") ready.resolve(socket);
    if (message.type === "change") for (const row of message.rows ?? []) onKey(row.id);
  });
  return ready.promise;
}
