/**
 * The authentication of a socket from its upgrade to its one attempt: what was asked for, and how
 * long it may wait for who it is.
 *
 *     waiting ──authenticate──► over: a principal, or the code of why not
 *        └──no token in time, close──► over
 *
 * The connection lets go of it with the attempt, so that one whose caller is known pays nothing for
 * it.
 */
import { AuthError, type Principal } from "../../auth/mod.ts";
import type { CancelTimer } from "../../base/clock.ts";
import type { AuthenticateFields } from "../frames/client_message.ts";
import type { FrameFormat } from "../frames/encode.ts";
import type { ConnectionParts, ConnectionRequest } from "./connection_options.ts";
import { formatFrom } from "./socket_authentication.ts";

export class PendingAuthentication {
  readonly #request: ConnectionRequest;
  readonly #parts: Pick<ConnectionParts, "auth" | "clock" | "config">;
  #cancelTimeout: CancelTimer | undefined;

  constructor(
    request: ConnectionRequest,
    parts: Pick<ConnectionParts, "auth" | "clock" | "config">,
  ) {
    this.#request = request;
    this.#parts = parts;
  }

  /** The Authorization header of the upgrade, if it had one. */
  get bearer(): string | undefined {
    return this.#request.bearer;
  }

  /** Begins the time in which a message has to say who it is. */
  wait(onTimeout: () => void): void {
    const { clock, config } = this.#parts;
    this.#cancelTimeout = clock.after(config.websocket.auth_timeout_secs * 1000, onTimeout);
  }

  /**
   * The format from a message on; no message turns gzip on that the upgrade or the server forbids.
   */
  formatBy(fields: AuthenticateFields, before: FrameFormat): FrameFormat {
    const mayGzip = this.#parts.config.websocket.compression && !this.#request.isGzipForbidden;
    return formatFrom(fields, { before, mayGzip });
  }

  /** @returns Who it is, or the code of why that is not known. */
  authenticate(bearer: string): Principal | string {
    this.close();
    try {
      return this.#parts.auth.authenticateHeader(bearer, this.#request.caller);
    } catch (error) {
      if (!(error instanceof AuthError)) throw error;
      return error.code;
    }
  }

  /** Waits no longer. */
  close(): void {
    this.#cancelTimeout?.();
  }
}
