/**
 * Injects server faults that the checker must notice. Each fault damages a frame of one
 * subscription on its way from the socket, the position of a resume, or the rows that the client
 * holds.
 */
import { isOneOf } from "../../../scripts/support/arguments.ts";
import type { Faults } from "./judge.ts";
import type { Cells, Followed } from "./queries.ts";

/** A server message, parsed from JSON. */
export interface WireMessage {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The injected faults that damage a frame. */
const FRAME_FAULTS = [
  "lost",
  "doubled",
  "swapped",
  "altered",
  "boundary",
  "silent_delete",
] as const;

export type InjectedFault = (typeof FRAME_FAULTS)[number] | "late_resume" | "view";
export const INJECTED_FAULTS: readonly InjectedFault[] = [...FRAME_FAULTS, "late_resume", "view"];

/** How many changes a subscription receives undamaged before its fault is injected. */
const SOUND_CHANGES = 50;

/**
 * For each injected fault, the fault counts that it may raise. An injected fault counts as found
 * if at least one of its counts is not 0.
 */
export const FOUND_AS: Readonly<Record<InjectedFault, readonly (keyof Faults)[]>> = {
  lost: ["missed"],
  doubled: ["doubled"],
  // If the connection breaks between the swapped messages, the later message is lost.
  swapped: ["outOfOrder", "missed"],
  altered: ["wrong"],
  boundary: ["aboveBoundary", "wrong", "missed"],
  silent_delete: ["missed"],
  late_resume: ["missed"],
  view: ["unlike"],
};

/** Returns whether a fault can damage a subscription, which must not have a filter. */
export function canBeDamaged({ table, query }: Followed): boolean {
  return table === "board" && query.sql.endsWith("live.board");
}

/** Damages a single message of a subscription. */
export class Tamperer {
  readonly #injected: InjectedFault;
  #changeCount = 0;
  #isDone = false;
  #kept: WireMessage | undefined;

  constructor(injected: InjectedFault) {
    this.#injected = injected;
  }

  /** Returns the messages that the subscriber receives instead of `message`. */
  pass(message: WireMessage): readonly WireMessage[] {
    const kept = this.#kept;
    if (kept !== undefined) {
      this.#kept = undefined;
      return [message, kept];
    }
    if (this.#isDone || !isOneOf(FRAME_FAULTS, this.#injected)) return [message];
    if (this.#injected === "boundary") return [this.#lowered(message)];
    if (message.type !== "change") return [message];
    this.#changeCount += 1;
    if (this.#changeCount <= SOUND_CHANGES) return [message];
    return this.#damaged(message);
  }

  /** Returns the position from which the client resumes instead of `position`. */
  resumeFrom(position: number, newest: number): number {
    return this.#injected === "late_resume" ? Math.max(position, newest) : position;
  }

  #damaged(message: WireMessage): readonly WireMessage[] {
    if (this.#injected === "silent_delete" && message["change_type"] !== "delete") return [message];
    if (this.#injected === "altered" && message["change_type"] === "delete") return [message];
    this.#isDone = true;
    switch (this.#injected) {
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

  /** Returns a snapshot message with a boundary lower than the seq of its last row. */
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
