/**
 * Tests the number of bytes that the system reports as received on this process's connections.
 */
import { expect, test } from "bun:test";
import { connect, createServer, type Socket } from "node:net";
import { receivedBytes } from "../../src/base/received_bytes.ts";

const received = receivedBytes();

test.skipIf(received === undefined)(
  "receivedBytes finds a connection by its peer and counts the bytes that have arrived",
  async () => {
    const accepted = Promise.withResolvers<Socket>();
    const server = createServer(accepted.resolve).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const client = connect(port, "127.0.0.1");
    const socket = await accepted.promise;

    const found = new Map<number, number>();
    const find = (): void =>
      received?.findPeers(
        (descriptor) => found.has(descriptor),
        (descriptor, peer) => {
          expect(peer.address).toBe("127.0.0.1");
          found.set(descriptor, peer.port);
        },
      );
    find();
    const descriptor = [...found].find(([, peerPort]) => peerPort === socket.remotePort)?.[0] ?? -1;
    expect(received?.of(descriptor)).toBe(0);
    const arrived = new Promise((resolve) => socket.once("data", resolve));
    client.write(Buffer.alloc(1000));
    await arrived;
    expect(received?.of(descriptor)).toBe(1000);
    const count = found.size;
    find();
    expect(found.size).toBe(count);
    client.destroy();
    socket.destroy();
    server.close();
  },
);

test.skipIf(received === undefined)(
  "receivedBytes has no count for a file descriptor that is not a connection",
  () => {
    expect(received?.of(0)).toBeUndefined();
    expect(received?.of(1_000_000)).toBeUndefined();
  },
);
