/**
 * Limits the memory for incoming WebSocket messages: per user, per address, and in total. Both
 * unfinished messages and complete messages waiting to be served are counted.
 *
 * The runtime buffers a message until it is complete, up to four times `limits.max_message_size`
 * per socket, and does not report how much it has buffered. In a test, 300 sockets that each
 * withheld the end of a 3.9 MB message took up 1.2 GB. The unfinished bytes are the difference
 * between the bytes that the system has received on a socket and the bytes of its finished
 * messages. A socket that causes a total to exceed its limit is closed.
 *
 *     opened ──soon found among the descriptors──► watched ──one in 32, ten times a second──► watched
 *                                                     │ the sample grows by much: all of them
 *                                                     └──beyond a bound──► refused ──a second──► cut
 *
 * Checking a socket takes 1.3 µs, so ten thousand quiet sockets take 0.4 % of a processor core.
 * Data that arrives within a tenth of a second may exceed a limit unnoticed.
 *
 * Frame headers, control frames and TLS make the difference slightly larger than the unfinished
 * part. An allowance per frame covers them. Each finished message reduces the difference to at
 * most the number of bytes that have arrived since the last check. The first 16 KiB on each socket
 * are attributed to its upgrade request.
 *
 * Invariant: each total is the sum of `heldBytes` over the sockets counted in it.
 */
import type { CancelTimer, Clock } from "../../base/clock.ts";
import type { Peer, ReceivedBytes } from "../../base/received_bytes.ts";
import { senderOf } from "../../base/sender.ts";

const MIB: number = 1 << 20;

export interface HeldBounds {
  readonly userBytesMax: number;
  /** The limit for an address, covering both known users and unknown callers. */
  readonly addressBytesMax: number;
  readonly strangerBytesMax: number;
  readonly bytesMax: number;
}

const LOOK_MS = 100;

/**
 * The minimum number of sockets to check at a time, and the share of all sockets to check at a
 * time.
 */
const SAMPLE_MIN = 64;
const SAMPLE_SHARE = 1 / 32;

/** The estimated growth at which all sockets are checked instead of a sample. */
const GROWTH_BYTES_MAX: number = 8 * MIB;

/** The maximum number of sockets checked per tick. */
const TURN_COUNT_MAX = 2000;

/**
 * New sockets are matched with descriptors once there are at least this many of them, or after
 * this many checks.
 */
const NEW_COUNT_MAX = 16;
const NEW_LOOKS_MAX = 10;

/**
 * The allowance per frame for the header, the mask, the payload of a control frame, and the TLS
 * overhead, in bytes.
 */
const FRAME_BYTES = 192;

/** The maximum size of an upgrade request, in bytes. The system's count includes it. */
const HEAD_BYTES: number = 16 * 1024;

/** The number of checks for which a refused socket stays open, so that it can send its error. */
const FAREWELL_LOOKS = 10;

/** The properties of a socket on which the limits depend. */
export interface WatchedSocket {
  /** The id of the user; undefined until the caller is authenticated. */
  readonly userId: string | undefined;
  readonly address: string;
  /** The total size of all messages finished on the socket so far. */
  readonly bytesIn: number;
  /** The number of finished messages and control frames so far. */
  readonly framesIn: number;
  /** The total size of the finished messages that have not been served yet. */
  readonly waitingBytes: number;
  /** Ends the socket with a message that states the reason. */
  refuse(message: string): void;
  /** Closes the socket without a message. */
  cut(): void;
}

interface Watched {
  readonly socket: WatchedSocket;
  descriptor: number | undefined;
  receivedBytes: number;
  bytesIn: number;
  framesIn: number;
  unfinishedBytes: number;
  /** The size of the socket's unfinished and waiting messages. */
  heldBytes: number;
  countedFor: string | undefined;
}

interface HeldBytesLimit {
  readonly held: Map<string, number>;
  readonly key: string;
  readonly bytesMax: number;
  readonly whose: string;
}

export interface HeldMessagesOptions {
  readonly clock: Clock;
  readonly received: ReceivedBytes;
  /** The maximum number of bytes that the runtime buffers for an unfinished message. */
  readonly messageBytesMax: number;
  readonly bounds: HeldBounds;
}

export class HeldMessages {
  readonly #options: HeldMessagesOptions;
  readonly #watched = new Map<WatchedSocket, Watched>();
  /**
   * The sockets whose descriptors are not known yet, keyed by the address and port of the peer.
   */
  readonly #new = new Map<string, Watched>();
  readonly #descriptors = new Set<number>();
  /** Refused sockets, each with the number of checks that remain until it is closed. */
  readonly #refused = new Map<WatchedSocket, number>();
  readonly #byUser = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();
  readonly #byStranger = new Map<string, number>();
  #heldBytes = 0;
  #looksSinceSearch = 0;
  #sample: Iterator<Watched> = this.#watched.values();
  #cancel: CancelTimer | undefined;

  constructor(options: HeldMessagesOptions) {
    this.#options = options;
  }

  /** The total size of all unfinished and waiting messages at the last check. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  add(socket: WatchedSocket, peer: Peer): void {
    const watched: Watched = {
      socket,
      descriptor: undefined,
      receivedBytes: HEAD_BYTES,
      bytesIn: 0,
      framesIn: 0,
      unfinishedBytes: 0,
      heldBytes: 0,
      countedFor: undefined,
    };
    this.#watched.set(socket, watched);
    this.#new.set(keyOf(peer), watched);
    this.#cancel ??= this.#lookLater();
  }

  remove(socket: WatchedSocket): void {
    const watched = this.#watched.get(socket);
    if (watched === undefined) return;
    this.#count(watched, 0);
    this.#watched.delete(socket);
    if (watched.descriptor !== undefined) this.#descriptors.delete(watched.descriptor);
  }

  stop(): void {
    this.#cancel?.();
  }

  #lookLater(): CancelTimer {
    return this.#options.clock.after(LOOK_MS, () => {
      this.#cutRefused();
      this.#searchNew();
      const size = this.#watched.size;
      const count = Math.max(SAMPLE_MIN, Math.ceil(size * SAMPLE_SHARE));
      const grownBytes = this.#lookAtSome(count) * Math.max(1, size / count);
      if (size > count && grownBytes > GROWTH_BYTES_MAX) this.#lookAtAll(this.#watched.values());
      const isIdle = this.#watched.size === 0 && this.#refused.size === 0;
      this.#cancel = isIdle ? undefined : this.#lookLater();
    });
  }

  #cutRefused(): void {
    for (const [socket, looks] of this.#refused) {
      if (looks > 0) {
        this.#refused.set(socket, looks - 1);
      } else {
        this.#refused.delete(socket);
        socket.cut();
      }
    }
  }

  /**
   * Finds the descriptors of new sockets. If a socket has no descriptor, its client has
   * disconnected, and it takes up no memory.
   */
  #searchNew(): void {
    this.#looksSinceSearch += 1;
    const count = this.#new.size;
    if (count === 0) return;
    if (count < NEW_COUNT_MAX && this.#looksSinceSearch < NEW_LOOKS_MAX) return;
    this.#looksSinceSearch = 0;
    this.#options.received.findPeers(
      (descriptor) => this.#descriptors.has(descriptor),
      (descriptor, peer) => {
        const watched = this.#new.get(keyOf(peer));
        if (watched === undefined || !this.#watched.has(watched.socket)) return;
        watched.descriptor = descriptor;
        this.#descriptors.add(descriptor);
        this.#look(watched);
      },
    );
    this.#new.clear();
  }

  /** Checks the next sockets in rotation. Returns how many bytes their messages have grown by. */
  #lookAtSome(count: number): number {
    let grownBytes = 0;
    for (let looked = 0; looked < count; looked += 1) {
      const next = this.#sample.next();
      if (next.done === true) {
        this.#sample = this.#watched.values();
        break;
      }
      grownBytes += this.#look(next.value);
    }
    return grownBytes;
  }

  #lookAtAll(left: Iterator<Watched>): void {
    for (let looked = 0; looked < TURN_COUNT_MAX; looked += 1) {
      const next = left.next();
      if (next.done === true) return;
      this.#look(next.value);
    }
    void this.#options.clock.yield().then(() => this.#lookAtAll(left));
  }

  /** Checks a socket. Returns how many bytes its messages have grown by. */
  #look(watched: Watched): number {
    const { descriptor, heldBytes, socket, unfinishedBytes } = watched;
    const receivedBytes =
      descriptor === undefined ? undefined : this.#options.received.of(descriptor);
    if (receivedBytes === undefined) return 0;
    const { bytesIn, framesIn } = socket;
    const arrived = Math.max(0, receivedBytes - watched.receivedBytes);
    const finished = bytesIn - watched.bytesIn;
    const frames = framesIn - watched.framesIn;
    watched.receivedBytes = receivedBytes;
    watched.bytesIn = bytesIn;
    watched.framesIn = framesIn;
    const left = Math.max(0, unfinishedBytes + arrived - finished - frames * FRAME_BYTES);
    const atMost = finished > 0 ? arrived : this.#options.messageBytesMax;
    watched.unfinishedBytes = Math.min(left, atMost);
    this.#count(watched, watched.unfinishedBytes + socket.waitingBytes);
    const grown = watched.heldBytes - heldBytes;
    if (grown > 0) this.#refuseBeyondBounds(watched);
    return Math.max(0, grown);
  }

  #count(watched: Watched, bytes: number): void {
    this.#add(watched, -watched.heldBytes);
    watched.heldBytes = bytes;
    // The connection may have authenticated since the last check.
    watched.countedFor = watched.socket.userId;
    this.#add(watched, bytes);
  }

  #add(watched: Watched, bytes: number): void {
    if (bytes === 0) return;
    this.#heldBytes += bytes;
    for (const { held, key } of this.#boundsOf(watched)) {
      const sum = (held.get(key) ?? 0) + bytes;
      if (sum > 0) held.set(key, sum);
      else held.delete(key);
    }
  }

  #boundsOf({ countedFor, socket }: Watched): readonly HeldBytesLimit[] {
    const { addressBytesMax, strangerBytesMax, userBytesMax } = this.#options.bounds;
    const key = senderOf(socket.address);
    const address = { key, held: this.#byAddress, bytesMax: addressBytesMax, whose: ADDRESS };
    if (countedFor === undefined) {
      return [{ ...address, held: this.#byStranger, bytesMax: strangerBytesMax }, address];
    }
    return [{ key: countedFor, held: this.#byUser, bytesMax: userBytesMax, whose: USER }, address];
  }

  #refuseBeyondBounds(watched: Watched): void {
    const { bytesMax } = this.#options.bounds;
    const bound = this.#boundsOf(watched).find(
      (one) => (one.held.get(one.key) ?? 0) > one.bytesMax,
    );
    if (bound === undefined && this.#heldBytes <= bytesMax) return;
    const { socket } = watched;
    this.#refused.set(socket, FAREWELL_LOOKS);
    this.remove(socket);
    socket.refuse(
      bound === undefined
        ? "Too many unfinished or waiting messages: the messages on all connections together " +
            `take more than ${bytesMax} bytes`
        : `Too many unfinished or waiting messages: on the connections of ${bound.whose}, they ` +
            `take more than ${bound.bytesMax} bytes; finish sending a message on one connection ` +
            "before starting the next on another, and read the responses",
    );
  }
}

const USER = "this user";
const ADDRESS = "this address";

function keyOf({ address, port }: Peer): string {
  return `${address}:${port}`;
}
