/** Implements an in-process subscriber that stores every message sent to it as text. */
import type { LiveSink, LiveSubscription } from "../../../src/live/mod.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import type { SubscriptionSpec } from "../../../src/protocol/mod.ts";
import { principalFor } from "../../support/principal_for.ts";
import type { World } from "./world.ts";

export interface Watcher {
  /** Returns the messages that have arrived since the last call. */
  taken(): string;
  close(): void;
}

/** Subscribes a caller. If the subscription is refused, the refusal counts as a message. */
export function watch(
  world: World,
  caller: string,
  spec: Pick<SubscriptionSpec, "id" | "sql" | "options">,
): Watcher {
  let texts: string[] = [];
  const sink: LiveSink = {
    connectionId: `isolation-${caller}`,
    queuedBytes: 0,
    send({ message }) {
      texts.push(JSON.stringify(message));
      return true;
    },
    end(message) {
      texts.push(JSON.stringify(message));
    },
  };
  const { catalog, live } = world.database;
  let subscription: LiveSubscription | undefined;
  try {
    subscription = live.subscribe({
      principal: principalFor({ catalog }, caller),
      spec,
      sink,
    });
    while (subscription.state === "loading") {
      const { position } = subscription;
      subscription.nextBatch();
      if (subscription.position === position) break;
    }
  } catch (error) {
    if (!(error instanceof SubscriptionError)) throw error;
    texts.push(JSON.stringify(error.response));
  }
  return {
    taken() {
      const text = texts.join("\n");
      texts = [];
      return text;
    },
    close: () => subscription?.close(),
  };
}
