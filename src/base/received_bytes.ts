/**
 * Determines how many bytes this process has received on each of its TCP connections, as counted
 * by Linux. The runtime does not report the fragments of an unfinished WebSocket message. Only the
 * count of the system shows that they are arriving.
 *
 *     struct sockaddr_in    family u16 = 2,  port u16 (network order), address 4 bytes
 *     struct sockaddr_in6   family u16 = 10, port u16 (network order), flow u32, address 16 bytes
 *     struct tcp_info       … at 128: bytes_received u64 (Linux 4.1 and later)
 */
import { readFileSync } from "node:fs";
import { hasNoDescriptor } from "./errors.ts";
import { ipFromText } from "./ip_address.ts";
import { loadFromLibc } from "./libc.ts";

export interface ReceivedBytes {
  /**
   * Calls `visit` for each TCP connection of the process, skipping the descriptors for which
   * `isKnown` returns true.
   */
  findPeers(
    isKnown: (descriptor: number) => boolean,
    visit: (descriptor: number, peer: Peer) => void,
  ): void;
  /**
   * Returns the number of bytes received on a connection; undefined if the descriptor does not
   * belong to a TCP connection.
   */
  of(descriptor: number): number | undefined;
}

/** The remote end of a TCP connection. */
export interface Peer {
  /** The remote IP address, in the canonical form defined in `ip_address.ts`. */
  readonly address: string;
  readonly port: number;
}

const STATUS = "/proc/self/status";

const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/**
 * The index of the number of received bytes when `tcp_info` is read as an array of 32-bit numbers.
 */
const BYTES_RECEIVED_AT = 32;

/**
 * Returns a reader of the numbers of received bytes; undefined if the system does not report them.
 */
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

/**
 * Returns an exclusive upper bound on the numbers of the process's descriptors. Listing the
 * descriptors instead would create garbage ten times a second.
 */
function descriptorsEnd(): number {
  try {
    return Number(/^FDSize:\s+(\d+)/m.exec(readFileSync(STATUS, "latin1"))?.[1] ?? 0);
  } catch (error) {
    // Reading the limit requires a descriptor. Once one is free again, the next call finds the
    // connections.
    if (hasNoDescriptor((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}

function peerFrom(name: Uint8Array): Peer | undefined {
  const view = new DataView(name.buffer);
  const family = view.getUint16(0, true);
  const port = view.getUint16(2);
  if (family === AF_INET) return { address: name.subarray(4, 8).join("."), port };
  if (family !== AF_INET6) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) => view.getUint16(8 + 2 * index));
  const address = ipFromText(groups.map((group) => group.toString(16)).join(":"));
  return address === undefined ? undefined : { address, port };
}
