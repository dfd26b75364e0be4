/**
 * Faults of a server that the checker must notice: each damages one frame of one subscription on
 * its way from the socket, where a resume begins, or what the client holds.
 */
import { isOneOf } from "../support/arguments.ts";
import type { Cells, Followed } from "./queries.ts";

/** A message of the server, as JSON gives it. */
export interface WireMessage {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Those that damage a frame. */
const FRAME_PLANTS = [
  "lost",
  "doubled",
  "swapped",
  "altered",
  "boundary",
  "silent_delete",
] as const;

export type Plant = (typeof FRAME_PLANTS)[number] | "late_resume" | "view";
export const PLANTS: readonly Plant[] = [...FRAME_PLANTS, "late_resume", "view"];

/** Changes of the damaged subscription that pass before the fault. */
const SOUND_CHANGES = 50;

/** Which count must then not be 0. */
export const FOUND_AS: Readonly<Record<Plant, readonly string[]>> = {
  lost: ["missed"],
  doubled: ["doubled"],
  swapped: ["outOfOrder"],
  altered: ["wrong"],
  boundary: ["aboveBoundary", "wrong", "missed"],
  silent_delete: ["missed"],
  late_resume: ["missed"],
  view: ["unlike"],
};

/** The subscriptions that are damaged: those that follow everything. */
export function isDamaged({ table, query }: Followed): boolean {
  return table === "board" && query.sql.endsWith("live.board");
}

/** Damages one message, once. */
export class Tamperer {
  readonly #plant: Plant;
  #changeCount = 0;
  #isDone = false;
  #kept: WireMessage | undefined;

  constructor(plant: Plant) {
    this.#plant = plant;
  }

  /** What arrives instead of a message. */
  pass(message: WireMessage): readonly WireMessage[] {
    const kept = this.#kept;
    if (kept !== undefined) {
      this.#kept = undefined;
      return [message, kept];
    }
    if (this.#isDone || !isOneOf(FRAME_PLANTS, this.#plant)) return [message];
    if (this.#plant === "boundary") return [this.#lowered(message)];
    if (message.type !== "change") return [message];
    this.#changeCount += 1;
    if (this.#changeCount <= SOUND_CHANGES) return [message];
    return this.#damaged(message);
  }

  /** Where it resumes instead of where it is. */
  resumeFrom(position: number, newest: number): number {
    return this.#plant === "late_resume" ? Math.max(position, newest) : position;
  }

  #damaged(message: WireMessage): readonly WireMessage[] {
    if (this.#plant === "silent_delete" && message["change_type"] !== "delete") return [message];
    if (this.#plant === "altered" && message["change_type"] === "delete") return [message];
    this.#isDone = true;
    switch (this.#plant) {
      case "lost":
      case "silent_delete":
        return [];
      case "doubled":
        return [message, message];
      case "swapped":
        this.#kept = message;
        return [];
      case "altered": {
        const rows = structuredClone(message["rows"]) as Cells[];
        for (const row of rows) row["body"] = "other";
        return [{ ...message, rows }];
      }
      default:
        return [message];
    }
  }

  /** A snapshot that says it ends before its last row. */
  #lowered(message: WireMessage): WireMessage {
    const control = message["batch_control"] as { has_more: boolean } | undefined;
    const rows = message["rows"] as readonly Cells[] | undefined;
    if (message.type !== "initial_data_batch" || control?.has_more !== false) return message;
    const last = rows?.at(-1);
    if (last === undefined) return message;
    this.#isDone = true;
    return { ...message, batch_control: { ...control, last_seq_id: Number(last["_seq"]) - 1 } };
  }
}
