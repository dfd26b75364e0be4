/**
 * How many bytes this process has received on each of its TCP connections, as Linux counts them.
 * The runtime keeps the pieces of an unfinished WebSocket message to itself; the system's count is
 * the only way to learn of them.
 *
 *     struct sockaddr_in    family u16 = 2,  port u16 (network order), address 4 bytes
 *     struct sockaddr_in6   family u16 = 10, port u16 (network order), flow u32, address 16 bytes
 *     struct tcp_info       … at 128: bytes_received u64 (Linux 4.1 and later)
 */
import { readFileSync } from "node:fs";
import { hasNoDescriptor } from "./errors.ts";
import { loadFromLibc } from "./libc.ts";

export interface ReceivedBytes {
  /** Calls `visit` for each TCP connection of the process, except for known descriptors. */
  findPeers(
    isKnown: (descriptor: number) => boolean,
    visit: (descriptor: number, peer: Peer) => void,
  ): void;
  /** Bytes received on a connection; undefined if the descriptor is none. */
  of(descriptor: number): number | undefined;
}

/** The other end of a connection. */
export interface Peer {
  /** 4 bytes, or 16 if it is no IPv4 address. */
  readonly address: readonly number[];
  readonly port: number;
}

const STATUS = "/proc/self/status";

const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Counted in numbers of 32 bits. */
const BYTES_RECEIVED_AT = 32;

/** An IPv4 address as IPv6 has these bytes before it. */
const MAPPED = "0,0,0,0,0,0,0,0,0,0,255,255";

/** Undefined if the system does not count, or does not tell. */
export function receivedBytes(): ReceivedBytes | undefined {
  const libc =
    process.platform === "linux"
      ? loadFromLibc({
          getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
          getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
        })
      : undefined;
  if (libc === undefined) return undefined;
  const name = new Uint8Array(28);
  const info = new Uint32Array(64);
  const length = new Uint32Array(1);
  return {
    findPeers: (isKnown, visit) => {
      const end = descriptorsEnd();
      for (let descriptor = 0; descriptor < end; descriptor += 1) {
        if (isKnown(descriptor)) continue;
        length[0] = name.length;
        if (libc.getpeername(descriptor, name, length) !== 0) continue;
        const peer = peerFrom(name);
        if (peer !== undefined) visit(descriptor, peer);
      }
    },
    of: (descriptor) => {
      length[0] = info.byteLength;
      const failed = libc.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, info, length) !== 0;
      const [low, high] = info.subarray(BYTES_RECEIVED_AT, (length[0] ?? 0) / 4);
      return failed || low === undefined || high === undefined ? undefined : high * 2 ** 32 + low;
    },
  };
}

/** Above all descriptors of the process; a list of them would be garbage ten times a second. */
function descriptorsEnd(): number {
  try {
    return Number(/^FDSize:\s+(\d+)/m.exec(readFileSync(STATUS, "latin1"))?.[1] ?? 0);
  } catch (error) {
    // Safe: to read takes a descriptor itself; when there are some again, the next call finds more.
    if (hasNoDescriptor((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}

function peerFrom(name: Uint8Array): Peer | undefined {
  const view = new DataView(name.buffer);
  const family = view.getUint16(0, true);
  const port = view.getUint16(2);
  if (family === AF_INET) return { address: [...name.subarray(4, 8)], port };
  if (family !== AF_INET6) return undefined;
  const address = [...name.subarray(8, 24)];
  const isMapped = address.slice(0, 12).join() === MAPPED;
  return { address: isMapped ? address.slice(12) : address, port };
}
