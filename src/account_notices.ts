/**
 * Passes messages to users, such as password reset links, to a program, run by the operator, that
 * sends them. Each message is a single request, signed like a topic's webhook requests. In
 * development, where there is no such program, the messages are written to the log.
 *
 * No request waits for a delivery, because the response time would reveal whether an account
 * exists. A message that still cannot be delivered after several attempts is discarded, and so are
 * messages beyond a limit: a person who is waiting can request another one.
 */
import type { AccountNotice } from "./auth/mod.ts";
import type { OnBug } from "./base/bugs.ts";
import type { Clock } from "./base/clock.ts";
import type { Log } from "./base/log.ts";
import { hostOf, OutboundHosts } from "./base/outbound_hosts.ts";
import type { Random } from "./base/random.ts";
import type { Config } from "./config/mod.ts";
import { type Post, posting, signatureHeader } from "./topics/mod.ts";

export interface AccountNoticesOptions {
  readonly config: Pick<Config, "auth" | "security">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onBug: OnBug;
}

/**
 * The delays before each retry, in order. If the attempt after the last delay fails, the message
 * is discarded.
 */
const RETRY_MS = [1000, 5000, 30_000] as const;

const TIMEOUT_MS = 10_000;

/**
 * The maximum number of messages waiting for delivery. This many messages take up a few hundred
 * kilobytes.
 */
const WAITING_MAX = 1000;

/** The maximum number of messages being delivered at the same time. */
const RUNNING_MAX = 4;

export class AccountNotices {
  readonly #options: AccountNoticesOptions;
  readonly #url: URL | undefined;
  readonly #post: Post | undefined;
  readonly #waiting: AccountNotice[] = [];
  readonly #ended = new AbortController();
  #running = 0;

  constructor(options: AccountNoticesOptions) {
    this.#options = options;
    const { clock, config } = options;
    const { notice_url: url } = config.auth;
    if (url === undefined) return;
    this.#url = new URL(url);
    // The operator named this host in the configuration, so it need not also be listed in
    // `webhook_hosts`.
    const hosts = new OutboundHosts([...config.security.webhook_hosts, hostOf(this.#url)]);
    this.#post = posting({ clock, hosts });
  }

  /** Queues a message for delivery. */
  add(notice: AccountNotice): void {
    const { config, log } = this.#options;
    const { type, userId: user } = notice;
    if (config.auth.notices_in_log) {
      const { email, token } = notice;
      log.warn("notice for a user; notices are logged only on development servers", {
        type,
        user,
        email,
        token,
        link: this.#linkOf(notice),
      });
    }
    if (this.#post === undefined || this.#ended.signal.aborted) return;
    if (this.#waiting.length >= WAITING_MAX) {
      log.warn(
        `discarded a notice for a user: ${WAITING_MAX} notices are already waiting for delivery`,
        {
          type,
          user,
        },
      );
      return;
    }
    this.#waiting.push(notice);
    this.#startNext();
  }

  /** Discards the messages that have not been delivered yet. */
  close(): void {
    this.#ended.abort();
    this.#waiting.length = 0;
  }

  #startNext(): void {
    if (this.#running >= RUNNING_MAX) return;
    const notice = this.#waiting.shift();
    if (notice === undefined) return;
    this.#running += 1;
    this.#deliver(notice)
      .catch((error: unknown) => this.#options.onBug(error, "the delivery of a message to a user"))
      .finally(() => {
        this.#running -= 1;
        this.#startNext();
      });
  }

  async #deliver(notice: AccountNotice): Promise<void> {
    const { clock, config, log, random } = this.#options;
    const [url, post] = [this.#url, this.#post];
    if (url === undefined || post === undefined) return;
    const id = random.bytes(16).toBase64({ alphabet: "base64url", omitPadding: true });
    const body = JSON.stringify(this.#bodyOf(notice));
    const { signal } = this.#ended;
    for (const retryMs of [...RETRY_MS, undefined]) {
      const headers = {
        "Content-Type": "application/json",
        "User-Agent": "Tidemark",
        "Tidemark-Delivery": id,
        ...signatureHeader(body, { secret: config.auth.notice_secret, nowMs: clock.nowMs() }),
      };
      const answer = await post({ url, body, headers, timeoutMs: TIMEOUT_MS, signal });
      if (answer.isDelivered || signal.aborted) return;
      const { type, userId: user } = notice;
      const { reason } = answer;
      if (retryMs === undefined) {
        log.warn("discarded a notice for a user: it could not be delivered", {
          type,
          user,
          reason,
        });
        return;
      }
      await new Promise<void>((resolve) => void clock.after(retryMs, resolve));
    }
  }

  #bodyOf(notice: AccountNotice): object {
    const { email, expiresAtMs, token, type, userId } = notice;
    const link = this.#linkOf(notice);
    return {
      type,
      user_id: userId,
      email,
      ...(token === undefined ? {} : { token }),
      ...(link === undefined ? {} : { link }),
      ...(expiresAtMs === undefined ? {} : { expires_at: new Date(expiresAtMs).toISOString() }),
    };
  }

  /**
   * The token is in the URL fragment, which browsers never send to a server or reveal to another
   * site.
   */
  #linkOf({ token, type }: AccountNotice): string | undefined {
    const { notice_page: page } = this.#options.config.auth;
    return page === undefined || token === undefined ? undefined : `${page}#${type}=${token}`;
  }
}
