/**
 * Holds the connections of the followers: one connection with JSON and one with MessagePack for
 * each of the two users.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import type { ServerProcess } from "../../support/server_process.ts";
import { FollowerSocket, type Format } from "./socket.ts";

export interface Connection {
  readonly user: string;
  readonly format: Format;
  /** The connection's socket; undefined while the connection is closed. */
  socket: FollowerSocket | undefined;
}

/** The access token of each user. */
export type Tokens = Readonly<Record<string, string>>;

export class Connections {
  readonly #server: ServerProcess;
  readonly #tokens: Tokens;
  readonly #all: readonly Connection[];

  constructor(server: ServerProcess, tokens: Tokens) {
    this.#server = server;
    this.#tokens = tokens;
    this.#all = Object.keys(tokens).flatMap((user): Connection[] => [
      { user, format: "json", socket: undefined },
      { user, format: "msgpack", socket: undefined },
    ]);
  }

  /** Opens the connections that are closed. */
  async open(): Promise<void> {
    for (const connection of this.#all) {
      if (connection.socket?.isOpen === true) continue;
      const { format, user } = connection;
      const token = this.#tokens[user] ?? "";
      connection.socket = await FollowerSocket.connect(this.#server, { format, token });
    }
  }

  /** Returns one of the connections of a user. */
  pick(user: string, chance: Chance): Connection {
    return chance.pick(this.#all.filter((each) => each.user === user));
  }

  /** Closes each connection for which `isClosed` returns true. */
  close(isClosed: () => boolean): void {
    for (const connection of this.#all) {
      if (!isClosed()) continue;
      connection.socket?.close();
      connection.socket = undefined;
    }
  }

  /** Requests the positions of all subscriptions. */
  async ping(): Promise<void> {
    await Promise.all(this.#all.map(async ({ socket }) => await socket?.ping()));
  }
}
