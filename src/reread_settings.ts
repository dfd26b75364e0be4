/**
 * Handles SIGHUP: reopens the log file under its usual name, and rereads the log level and the TLS
 * certificate. All other keys take effect only at startup. If any of them have changed, they are
 * named in the log, and the changes take effect after a restart.
 *
 * Nothing here ends the server: if a file cannot be read, the old settings remain in force.
 */
import { X509Certificate } from "node:crypto";
import { textWithHint } from "./base/command_output.ts";
import type { Disk } from "./base/disk.ts";
import type { Log, LogLevel } from "./base/log.ts";
import { type Config, changedKeys } from "./config/mod.ts";
import { tlsFailure } from "./listen_failure.ts";
import type { RunningServer, TlsTexts } from "./server/mod.ts";

/** The keys that take effect without a restart. */
export const REREAD: ReadonlySet<string> = new Set([
  "logging.level",
  "server.tls_cert",
  "server.tls_key",
]);

/** A log whose level and files can change at run time. */
export interface ChangingLog extends Log {
  level: LogLevel;
  reopen(): void;
}

export interface RereadOptions {
  readonly disk: Pick<Disk, "readFile">;
  readonly log: ChangingLog;
  readonly server: Pick<RunningServer, "replaceTls">;
  /**
   * Reads the current configuration.
   * @throws {Error} With all faults of the configuration.
   */
  readonly read: () => Config;
}

export class RereadSettings {
  readonly #options: RereadOptions;
  #config: Config;
  #tls: TlsTexts | undefined;

  /**
   * Prepares to reread the configuration while the server runs.
   * @param config The configuration that was in force at startup.
   */
  constructor(config: Config, options: RereadOptions) {
    this.#options = options;
    this.#config = config;
    const { tls_cert: cert } = config.server;
    const found = cert === undefined ? undefined : tlsTextsOf(config, options.disk);
    this.#tls = typeof found === "string" ? { cert: "", key: "" } : found;
  }

  /** Rereads the settings. Returns the configuration now in force. */
  run(): Config {
    const { log } = this.#options;
    log.reopen();
    // The outcome is logged even if the level is "error", because the operator asked for the
    // settings to be reread.
    log.level = "info";
    const config = this.#configNow();
    const { level } = config.logging;
    const certificate = this.#rereadTls(config);
    const now = withReread(this.#config, config);
    const waiting = changedKeys(now, config);
    log.info(
      "SIGHUP: reopened the log files, and reread the settings that can change at run time",
      {
        "logging.level": level,
        ...(certificate === undefined ? {} : { certificate }),
      },
    );
    if (waiting.length > 0) {
      const keys = waiting.join(", ");
      log.warn(
        "some changed settings take effect only after a restart; the old values still apply",
        { keys },
      );
    }
    log.level = level;
    this.#config = now;
    return now;
  }

  /** Returns the configuration in the file; if it is invalid, returns the old configuration. */
  #configNow(): Config {
    try {
      return this.#options.read();
    } catch (error) {
      const reason = error instanceof Error ? textWithHint(error) : String(error);
      this.#options.log.error("cannot reread the configuration; the old settings still apply", {
        reason,
      });
      return this.#config;
    }
  }

  /** Rereads the certificate and describes the outcome; returns undefined if TLS is not used. */
  #rereadTls(config: Config): string | undefined {
    if (this.#tls === undefined || config.server.tls_cert === undefined) return undefined;
    const found = tlsTextsOf(config, this.#options.disk);
    if (typeof found !== "string" && isSame(found, this.#tls)) return "unchanged";
    const failure = typeof found === "string" ? found : this.#options.server.replaceTls(found);
    if (failure !== undefined || typeof found === "string") {
      const what = "cannot use the new TLS files; the old certificate is still in use";
      this.#options.log.error(what, { reason: failure });
      return "kept";
    }
    this.#tls = found;
    return `replaced, valid until ${new X509Certificate(found.cert).validTo}`;
  }
}

/**
 * Returns the old settings, with new values for the keys that can be reread. Rereading cannot
 * enable or disable TLS.
 */
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

/** Returns the certificate and the key, or why the server cannot listen with them. */
function tlsTextsOf({ server }: Config, disk: Pick<Disk, "readFile">): TlsTexts | string {
  const texts = new Map<string, string>();
  // The files are read only once, because somebody may be replacing them at this moment.
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
