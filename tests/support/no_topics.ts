/** Stands in for the topics layer in tests of other parts of a server. It has no topics. */
import { DatabaseError } from "../../src/base/errors.ts";
import type { TopicConsumers, WebhookFigures } from "../../src/topics/mod.ts";

function none(): never {
  throw new DatabaseError("OBJECT_NOT_FOUND", "Cannot find the topic: this server has none");
}

export const NO_WEBHOOKS: WebhookFigures = {
  delivering: 0,
  retrying: 0,
  refused: 0,
  delivered: 0,
  failed: 0,
};

export const NO_TOPICS: TopicConsumers = {
  topicIdOf: none,
  consume: none,
  counted: async () => undefined,
  prepareAck: none,
  ack: none,
  nack: none,
  open: none,
  states: () => [],
  offsets: () => [],
  consumers: () => [],
  figures: () => ({ groups: 0, consumers: 0, claims: 0, lagMessages: 0, redeliveries: 0 }),
  kill: () => false,
  topicsChanged: () => undefined,
  holdOffsets: async () => () => undefined,
  shutDown: () => undefined,
  close: async () => undefined,
};
