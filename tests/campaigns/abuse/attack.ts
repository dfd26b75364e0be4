/**
 * Defines the inputs that all attacks share: the server, the tokens of its users, and the amount
 * to send.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import type { ServerProcess } from "../../support/server_process.ts";

export interface Attack {
  readonly server: ServerProcess;
  /** The tokens of several users, excluding the user whose requests are measured. */
  readonly tokens: readonly string[];
  readonly seconds: number;
  readonly socketCount: number;
  readonly messageCount: number;
  readonly chance: Chance;
}
