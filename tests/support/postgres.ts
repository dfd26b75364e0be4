/**
 * Runs a real PostgreSQL on a separate data directory, for measurements against it and as an
 * oracle for results. In its default configuration, PostgreSQL syncs data before acknowledging it.
 * PostgreSQL refuses to run as root, so root runs it under the account that its Debian package
 * created.
 */
import { chownSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const START_MS_MAX = 20_000;

export interface Postgres {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Returns the folder with the programs of the newest installed PostgreSQL; undefined if none is
 * installed.
 */
export function postgresPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = statSync(root, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(root);
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(root, newest, "bin");
}

/**
 * Starts a PostgreSQL server with an empty database.
 * @throws If PostgreSQL is not installed or does not start.
 */
export async function startPostgres(): Promise<Postgres> {
  const programs = postgresPrograms();
  if (programs === undefined) throw new Error("Cannot start PostgreSQL: it is not installed");
  const account = accountFor(process.getuid?.() ?? 1);
  const directory = mkdtempSync(join(tmpdir(), "tidemark-postgres-"));
  if (account !== undefined) chownSync(directory, account.uid, account.gid);
  const data = join(directory, "data");
  const initdb = [join(programs, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8"];
  const made = Bun.spawnSync([...(account?.prefix ?? []), ...initdb, "--locale=C"], {
    cwd: directory,
  });
  if (!made.success) throw new Error(`Cannot make a PostgreSQL cluster: ${made.stderr.toString()}`);
  const port = freePort();
  const settings = ["listen_addresses=127.0.0.1", `unix_socket_directories=${directory}`];
  // Avoids checkpoints during a short measurement, which would distort it.
  settings.push("max_wal_size=4GB", "shared_buffers=256MB", "log_min_messages=fatal");
  const child = Bun.spawn(
    [
      ...(account?.prefix ?? []),
      join(programs, "postgres"),
      "-D",
      data,
      "-p",
      String(port),
      ...settings.flatMap((setting) => ["-c", setting]),
    ],
    { cwd: directory, stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  );
  // SIGQUIT ends PostgreSQL and all of its children at once.
  const onExit = (): void => {
    child.kill("SIGQUIT");
    rmSync(directory, { recursive: true, force: true });
  };
  process.on("exit", onExit);
  const url = `postgres://bench@127.0.0.1:${port}/postgres`;
  await untilItAnswers(url, child);
  return {
    url,
    pid: child.pid,
    async stop() {
      process.off("exit", onExit);
      child.kill("SIGQUIT");
      await child.exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

interface Account {
  readonly uid: number;
  readonly gid: number;
  /** A command prefix that runs a command under this account without creating another process. */
  readonly prefix: readonly string[];
}

function accountFor(uid: number): Account | undefined {
  if (uid !== 0) return undefined;
  const [user = 0, group = 0] = ["-u", "-g"].map((flag) =>
    Number(Bun.spawnSync(["id", flag, "postgres"]).stdout.toString()),
  );
  const account = { uid: user, gid: group };
  const ids = [`--reuid=${user}`, `--regid=${group}`];
  // With this option, the kernel ends PostgreSQL if its parent is killed.
  return { ...account, prefix: ["setpriv", ...ids, "--clear-groups", "--pdeathsig=QUIT"] };
}

function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = server;
  server.stop(true);
  return port;
}

async function untilItAnswers(url: string, child: Bun.Subprocess): Promise<void> {
  const deadlineMs = Date.now() + START_MS_MAX;
  for (;;) {
    const sql = new Bun.SQL(url, { max: 1 });
    try {
      await sql`SELECT 1`;
      return;
    } catch (error) {
      if (child.exitCode !== null || Date.now() > deadlineMs) {
        throw new Error("Cannot start PostgreSQL", { cause: error });
      }
      await Bun.sleep(50);
    } finally {
      await sql.close();
    }
  }
}
