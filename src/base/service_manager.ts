/**
 * Reports the state of the server to a service manager such as systemd, using the `sd_notify`
 * protocol: one datagram to the socket named in `NOTIFY_SOCKET`. The runtime does not support Unix
 * datagram sockets, so the datagram is sent through the C library.
 *
 *     sockaddr_un   0  u16 family, 1   2  path; an abstract one begins with 0 instead of "@"
 */
import { ptr } from "bun:ffi";
import { loadFromLibc } from "./libc.ts";

/**
 * The maximum length of the path in a Unix socket address, in bytes. For a path in the file
 * system, this includes the terminating zero byte.
 */
const PATH_BYTES_MAX = 108;

const AF_UNIX = 1;
/** The flags SOCK_DGRAM and SOCK_CLOEXEC. */
const DATAGRAM = 2 + 0o2000000;
/** The flag MSG_NOSIGNAL. */
const NO_SIGNAL = 0x4000;

/**
 * Sends a state such as `READY=1` to the service manager.
 *
 * @returns The reason why the service manager did not receive the state; undefined if it did, or
 *   if there is no service manager.
 */
export function tellServiceManager(
  lines: readonly string[],
  socketName: string | undefined = process.env["NOTIFY_SOCKET"],
): string | undefined {
  if (socketName === undefined || socketName === "") return undefined;
  const address = addressOf(socketName);
  if (address === undefined) return `NOTIFY_SOCKET is "${socketName}", which is not a Unix socket`;
  const libc =
    process.platform === "linux"
      ? loadFromLibc({
          socket: { args: ["i32", "i32", "i32"], returns: "i32" },
          sendto: { args: ["i32", "ptr", "usize", "i32", "ptr", "u32"], returns: "i64" },
          close: { args: ["i32"], returns: "i32" },
        })
      : undefined;
  if (libc === undefined) return "this system has no Unix datagram sockets";
  const message = new TextEncoder().encode(lines.join("\n"));
  const socket = libc.socket(AF_UNIX, DATAGRAM, 0);
  if (socket < 0) return "a Unix datagram socket cannot be opened";
  const sent = Number(
    libc.sendto(socket, ptr(message), message.length, NO_SIGNAL, ptr(address), address.length),
  );
  libc.close(socket);
  return sent === message.length
    ? undefined
    : `the socket "${socketName}" did not accept the message`;
}

/** Returns the address of a Unix socket; undefined if `name` does not denote one. */
function addressOf(name: string): Uint8Array | undefined {
  const path = new TextEncoder().encode(name);
  const isAbstract = name.startsWith("@");
  if (!isAbstract && !name.startsWith("/")) return undefined;
  if (path.length >= PATH_BYTES_MAX) return undefined;
  const address = new Uint8Array(2 + path.length + (isAbstract ? 0 : 1));
  new DataView(address.buffer).setUint16(0, AF_UNIX, true);
  address.set(path, 2);
  if (isAbstract) address[2] = 0;
  return address;
}
