/**
 * Provides a socket that receives messages from services, as systemd's socket does. A Python
 * program implements it.
 */
import { type Missing, programMissing } from "./requirements.ts";

export const managerMissing: Missing =
  process.platform === "linux"
    ? programMissing("python3", "python3")
    : "this system has no systemd";

export interface Manager extends AsyncDisposable {
  /** Waits for the next message from a service, and returns it. */
  next(): Promise<string>;
}

const PROGRAM = `
import socket, sys
name = sys.argv[1]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind("\\0" + name[1:] if name.startswith("@") else name)
print('"listening"', flush=True)
import json
while True:
    print(json.dumps(listener.recv(65536).decode()), flush=True)
`;

/**
 * Listens for messages as a service manager does. The socket is bound when this function returns.
 * @param name A path or, with a leading `@`, the name of an abstract socket.
 */
export async function listenAsManager(name: string): Promise<Manager> {
  const program = Bun.spawn(["python3", "-c", PROGRAM, name], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(program.stdout);
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error("The socket of the service manager was closed");
    return JSON.parse(value) as string;
  };
  await next();
  return {
    next,
    async [Symbol.asyncDispose]() {
      program.kill();
      await program.exited;
    },
  };
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const part of stream) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  return undefined;
}
