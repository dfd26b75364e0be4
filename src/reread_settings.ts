/**
 * What SIGHUP does: the log goes on in a file of its usual name, and what can be read again while
 * the server runs is read again, the level of the log and the TLS certificate. All other keys have
 * made what they are part of at the start, so those that changed are named, and wait for the next.
 *
 * Nothing here ends the server: what cannot be read leaves in place what is there.
 */
import { X509Certificate } from "node:crypto";
import { textWithHint } from "./base/command_output.ts";
import type { Disk } from "./base/disk.ts";
import type { Log, LogLevel } from "./base/log.ts";
import { type Config, changedKeys } from "./config/mod.ts";
import { tlsFailure } from "./listen_failure.ts";
import type { RunningServer, TlsTexts } from "./server/mod.ts";

/** Keys that hold from now on. */
const REREAD: ReadonlySet<string> = new Set(["logging.level", "server.tls_cert", "server.tls_key"]);

/** The log, as far as it can change while it is written. */
export interface ChangingLog extends Log {
  level: LogLevel;
  reopen(): void;
}

export interface RereadOptions {
  readonly disk: Pick<Disk, "readFile">;
  readonly log: ChangingLog;
  readonly server: Pick<RunningServer, "replaceTls">;
  /** Reads the configuration as it is now. @throws {Error} That says all that is wrong with it. */
  readonly read: () => Config;
}

export class RereadSettings {
  readonly #options: RereadOptions;
  #config: Config;
  #tls: TlsTexts | undefined;

  /** @param config What the server was started with. */
  constructor(config: Config, options: RereadOptions) {
    this.#options = options;
    this.#config = config;
    const { tls_cert: cert } = config.server;
    const found = cert === undefined ? undefined : tlsTextsOf(config, options.disk);
    this.#tls = typeof found === "string" ? { cert: "", key: "" } : found;
  }

  /** Reads again. Returns the configuration that holds now. */
  run(): Config {
    const { log } = this.#options;
    log.reopen();
    // Also for who lets the log have nothing but errors: this was asked for.
    log.level = "info";
    const config = this.#configNow();
    const { level } = config.logging;
    const certificate = this.#rereadTls(config);
    const now = withReread(this.#config, config);
    const waiting = changedKeys(now, config);
    log.info("SIGHUP: reopened the log files and read the settings again that can be", {
      "logging.level": level,
      ...(certificate === undefined ? {} : { certificate }),
    });
    if (waiting.length > 0) {
      const keys = waiting.join(", ");
      log.warn("settings have changed that need a restart: the old ones still hold", { keys });
    }
    log.level = level;
    this.#config = now;
    return now;
  }

  /** The one that holds where that of the file does not. */
  #configNow(): Config {
    try {
      return this.#options.read();
    } catch (error) {
      const reason = error instanceof Error ? textWithHint(error) : String(error);
      this.#options.log.error("cannot read the configuration again: the old settings still hold", {
        reason,
      });
      return this.#config;
    }
  }

  /** What became of the certificate; undefined without TLS. */
  #rereadTls(config: Config): string | undefined {
    if (this.#tls === undefined || config.server.tls_cert === undefined) return undefined;
    const found = tlsTextsOf(config, this.#options.disk);
    if (typeof found !== "string" && isSame(found, this.#tls)) return "unchanged";
    const failure = typeof found === "string" ? found : this.#options.server.replaceTls(found);
    if (failure !== undefined || typeof found === "string") {
      const what = "cannot use the TLS files as they are now: the old certificate still holds";
      this.#options.log.error(what, { reason: failure });
      return "kept";
    }
    this.#tls = found;
    return `replaced, valid until ${new X509Certificate(found.cert).validTo}`;
  }
}

/** The old settings, but for those that were read again. From no TLS there is no way to it. */
function withReread(before: Config, now: Config): Config {
  const hasTls = before.server.tls_cert !== undefined && now.server.tls_cert !== undefined;
  const { tls_cert, tls_key } = hasTls ? now.server : before.server;
  const sources = new Map(before.sources);
  for (const key of REREAD) {
    const source = now.sources.get(key);
    if (source === undefined) sources.delete(key);
    else sources.set(key, source);
  }
  return {
    ...before,
    sources,
    server: { ...before.server, tls_cert, tls_key },
    logging: { ...before.logging, level: now.logging.level },
  };
}

/** The files of the certificate, or why they are none to listen with. */
function tlsTextsOf({ server }: Config, disk: Pick<Disk, "readFile">): TlsTexts | string {
  const texts = new Map<string, string>();
  // Read once, as somebody may be replacing them.
  const readFile = (path: string): Uint8Array => {
    const bytes = disk.readFile(path);
    texts.set(path, new TextDecoder().decode(bytes));
    return bytes;
  };
  const failure = tlsFailure(server, { readFile });
  const textOf = (path: string | undefined): string => texts.get(path ?? "") ?? "";
  return failure ?? { cert: textOf(server.tls_cert), key: textOf(server.tls_key) };
}

function isSame(left: TlsTexts, right: TlsTexts): boolean {
  return left.cert === right.cert && left.key === right.key;
}
