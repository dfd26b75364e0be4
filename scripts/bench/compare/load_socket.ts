/**
 * Opens WebSockets that follow rows. They treat every measured system in the same way: rows that
 * arrive before the subscription is live are not counted.
 */
import { type MeasuredSystem, socketUrl } from "../systems/measured_system.ts";

const OPEN_MS_MAX = 30_000;

/**
 * The maximum number of sockets being opened at once. Any more would only wait in the kernel's
 * queue.
 */
const OPENING_MAX = 50;

export interface FollowerOptions {
  system: MeasuredSystem;
  token: string;
  /** The messages that subscribe. The server answers each of them once. */
  messages: readonly string[];
  onMessage: (text: string) => void;
}

/** Opens a socket and subscribes. Resolves once the socket is ready to receive changes. */
function openFollower(options: FollowerOptions): Promise<WebSocket> {
  const { system, messages, token, onMessage } = options;
  const opened = Promise.withResolvers<WebSocket>();
  const socket = openSocket(system, token);
  const timer = setTimeout(() => {
    opened.reject(new Error(`Cannot follow ${system.name}: no answer to the subscription`));
  }, OPEN_MS_MAX);
  let missing = messages.length;
  socket.addEventListener("open", () => {
    for (const message of messages) socket.send(message);
  });
  socket.addEventListener("close", ({ code }) => {
    opened.reject(new Error(`Cannot follow ${system.name}: closed with ${code}`));
  });
  socket.addEventListener("message", ({ data }: MessageEvent<string>) => {
    if (missing === 0) {
      onMessage(data);
    } else if (/^\{"type":"(?:subscription_ack|ready)"/.test(data)) {
      missing -= 1;
      if (missing > 0) return;
      clearTimeout(timer);
      opened.resolve(socket);
    } else if (/^\{"type":"(?:error|auth_error)"/.test(data)) {
      opened.reject(new Error(`Cannot follow ${system.name}: ${data}`));
    }
  });
  return opened.promise;
}

/**
 * Opens many followers, a few at a time.
 *
 * @param optionsOf Returns the options of the n-th follower.
 */
export async function openFollowers(
  count: number,
  optionsOf: (index: number) => FollowerOptions,
): Promise<WebSocket[]> {
  const sockets: WebSocket[] = [];
  for (let first = 0; first < count; first += OPENING_MAX) {
    const length = Math.min(OPENING_MAX, count - first);
    const some = Array.from({ length }, (_, system) => openFollower(optionsOf(first + system)));
    sockets.push(...(await Promise.all(some)));
  }
  return sockets;
}

export function openSocket(system: MeasuredSystem, token: string): WebSocket {
  return new WebSocket(socketUrl(system), { headers: { Authorization: `Bearer ${token}` } });
}
