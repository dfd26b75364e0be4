/**
 * Sends an HTTP request and reads the response, with a deadline. A proxy may respond in place of
 * the server, with a page, an empty body or other JSON. The error then contains only the HTTP
 * status, because nothing else is known.
 */
import type { BodyData, BodyStream, HttpResponse, WholeEnvironment } from "./environment.ts";
import { ConnectionError, errorFromBody, isObject, ServerError, textOfCauses } from "./errors.ts";
import { shownUrl } from "./server_url.ts";

export interface RequestsOptions {
  /** The base URL, without a trailing slash. */
  readonly url: string;
  readonly environment: WholeEnvironment;
  /** How long a request may take, in milliseconds; undefined for no limit. */
  readonly timeoutMs: number | undefined;
}

/** A request body that is not JSON. */
export class RequestData {
  readonly data: BodyData | FormData;

  constructor(data: BodyData | FormData) {
    this.data = data;
  }

  /** Whether the body is a stream, which can be sent only once. */
  get isStream(): boolean {
    return typeof this.data === "object" && "getReader" in this.data;
  }
}

export interface CallOptions {
  /** The fields of a JSON body, or a body in some other format. */
  readonly body?: object | RequestData;
  readonly signal?: AbortSignal;
  readonly token?: string;
  /** Headers to send in addition to the standard headers of every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether the caller reads the body of a successful response itself. */
  readonly isStreamed?: boolean;
}

/** A response with a status below 400. */
export interface RequestAnswer {
  readonly status: number;
  /** The fields of the JSON object in the response. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The unread body of the response, if the caller reads the body itself. */
  readonly body?: BodyStream;
}

interface Deadline {
  readonly signal: AbortSignal;
  /** The error thrown when a request exceeds its deadline. */
  readonly failure: ConnectionError;
  cancel(): void;
}

export class Requests {
  readonly #options: RequestsOptions;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  /**
   * Sends a request, and reads its response unless the caller does so.
   * @throws {ServerError | ConnectionError}
   */
  async call(
    method: string,
    path: string,
    { body, headers: further, isStreamed = false, signal, token }: CallOptions = {},
  ): Promise<RequestAnswer> {
    const { environment, url } = this.#options;
    const headers: Record<string, string> = { ...further };
    const { type, ...sent } = sentBody(body);
    if (type !== undefined) headers["Content-Type"] = type;
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    const deadline = this.#deadline();
    const signals = [signal, deadline?.signal].filter((each) => each !== undefined);
    let response: HttpResponse;
    let answer: unknown;
    try {
      response = await environment.fetch(`${url}${path}`, {
        method,
        headers,
        ...sent,
        ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
      });
      if (isStreamed && response.ok && response.body) {
        return { status: response.status, fields: {}, body: response.body };
      }
      answer = await bodyOf(response);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      if (deadline?.signal.aborted === true) throw deadline.failure;
      throw unanswered(url, error);
    } finally {
      deadline?.cancel();
    }
    if (response.ok && isObject(answer)) return { status: response.status, fields: answer };
    const nowMs = environment.now();
    throw errorFromBody(answer, response.status, {
      message: this.#foreign(response.status, kindOfBody(response, answer)),
      retryAfterSeconds: secondsFromRetryAfter(response.headers?.get("retry-after"), nowMs),
    });
  }

  /** Returns the error for a response that was cut off. */
  broken(cause: unknown): ConnectionError {
    return unanswered(this.#options.url, cause);
  }

  /** Returns the error for a response that reports success but does not come from Tidemark. */
  foreign({ status }: RequestAnswer): ServerError {
    return new ServerError("http_error", this.#foreign(status, "other JSON"), { status });
  }

  #foreign(status: number, kind: string): string {
    const at = shownUrl(this.#options.url);
    return (
      `The server at ${at} responded with status ${status} and ${kind}, which is not a Tidemark ` +
      "response: it may come from a proxy, or the url may belong to a different program"
    );
  }

  #deadline(): Deadline | undefined {
    const { environment, timeoutMs, url } = this.#options;
    if (timeoutMs === undefined) return undefined;
    const controller = new AbortController();
    const failure = new ConnectionError(
      `The server at ${shownUrl(url)} did not respond within ${timeoutMs} ms`,
    );
    const cancel = environment.after(timeoutMs, () => controller.abort(failure));
    return { signal: controller.signal, failure, cancel };
  }
}

/** Returns the body as it is sent, and its content type. */
function sentBody(body: CallOptions["body"]): {
  readonly type?: string;
  readonly body?: string;
  readonly data?: BodyData | FormData;
} {
  if (body === undefined) return {};
  if (body instanceof RequestData) {
    const { data } = body;
    // The runtime sets the content type of a form itself, because the type must contain the
    // boundary that the runtime chooses.
    return data instanceof FormData ? { data } : { type: "application/octet-stream", data };
  }
  return { type: "application/json", body: JSON.stringify(body) };
}

/**
 * Reads the JSON body of a response.
 * @returns Undefined if the body is not JSON.
 * @throws If the body ends early.
 */
async function bodyOf(response: HttpResponse): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    // Names are compared, because an error from another realm is not an instance of this realm's
    // class.
    if (error instanceof Error && error.name === "SyntaxError") return undefined;
    throw error;
  }
}

function kindOfBody({ headers }: HttpResponse, answer: unknown): string {
  if (headers?.get("content-length") === "0") return "nothing";
  if (answer === null) return "null";
  if (answer !== undefined) return "other JSON";
  const type = headers?.get("content-type")?.split(";")[0]?.trim();
  return type === undefined || type === "" ? "no JSON" : `no JSON (${type})`;
}

/**
 * Reads how long to wait from `Retry-After`: a number of seconds, or an HTTP date in one of three
 * formats (RFC 9110, 5.6.7). The third format is in GMT, although it does not say so.
 */
export function secondsFromRetryAfter(
  header: string | null | undefined,
  nowMs: number,
): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text);
  if (!/^(?:mon|tue|wed|thu|fri|sat|sun)/i.test(text)) return undefined;
  const atMs = Date.parse(/\bGMT$/i.test(text) ? text : `${text} GMT`);
  return Number.isNaN(atMs) ? undefined : Math.max(0, (atMs - nowMs) / 1000);
}

function unanswered(url: string, cause: unknown): ConnectionError {
  const shown = shownUrl(url);
  // Some runtimes quote the requested URL in the message, so any user name and password are
  // removed from it.
  const why = textOfCauses(cause).replaceAll(url, shown);
  return new ConnectionError(
    `The server at ${shown} could not be reached, or interrupted its response: ${why}`,
    cause,
  );
}
