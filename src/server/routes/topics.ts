/**
 * Serves `POST /v1/api/topics/consume`, `/ack` and `/nack`: topic messages over plain HTTP.
 *
 * A request for messages stays open until a message arrives, its timeout has passed, the client
 * disconnects, or the server stops. If the client disconnects or its session ends in the meantime,
 * messages already claimed for it immediately become available to other consumers.
 */
import { type Auth, type Principal, requireRun, requireTopic } from "../../auth/mod.ts";
import type { TopicAckBody, TopicConsumeBody, TopicNackBody } from "../../protocol/mod.ts";
import type { TopicMessages } from "../../sql/mod.ts";
import type { TopicConsumers } from "../../topics/mod.ts";
import type { ServerConfig } from "../contract/options.ts";
import {
  type ConsumeFields,
  groupFrom,
  readAck,
  readConsume,
  readNack,
  type TopicFields,
  topicNameFrom,
} from "../frames/topic_fields.ts";
import type { BodyLedger } from "../http/body_ledger.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FieldNames } from "../http/field_names.ts";
import { readJsonCall } from "../http/json_call.ts";
import { apiHeaders, json, textResponse } from "../http/responses.ts";
import type { Route } from "../http/route.ts";
import { TOPIC_OPERATIONS } from "../openapi/topic_operations.ts";

export interface TopicRouteOptions {
  readonly auth: Auth;
  readonly bodies: BodyLedger;
  readonly config: ServerConfig;
  readonly topics: TopicConsumers;
}

/**
 * The members that all bodies have in common, each with the names that other servers use for it.
 */
const SHARED_FIELDS: FieldNames = {
  topic_id: ["topic", "topic_name", "stream", "queue"],
  group_id: ["group", "consumer_group", "group_name"],
  partition_id: ["partition"],
};

const CONSUME_FIELDS: FieldNames = {
  ...SHARED_FIELDS,
  start: ["from", "position", "offset"],
  limit: ["count", "max", "max_messages", "batch_size"],
  timeout_seconds: ["timeout", "wait", "wait_seconds", "timeout_ms"],
  ordered: ["in_order"],
};

const ACK_FIELDS: FieldNames = {
  ...SHARED_FIELDS,
  upto_offset: ["offset", "up_to_offset", "upto", "up_to"],
  offsets: [],
};

const NACK_FIELDS: FieldNames = {
  ...SHARED_FIELDS,
  offsets: ["offset"],
  delay_ms: ["delay", "delay_seconds"],
};

const HEADERS = apiHeaders("application/json; charset=utf-8");

export function topicRoutes(options: TopicRouteOptions): readonly Route[] {
  return [
    {
      path: "/v1/api/topics/consume",
      method: "POST",
      shape: "C",
      operation: TOPIC_OPERATIONS.consume,
      handle: (exchange) => consume(exchange, options),
    },
    {
      path: "/v1/api/topics/ack",
      method: "POST",
      shape: "C",
      operation: TOPIC_OPERATIONS.ack,
      handle: (exchange) => acknowledge(exchange, options),
    },
    {
      path: "/v1/api/topics/nack",
      method: "POST",
      shape: "C",
      operation: TOPIC_OPERATIONS.nack,
      handle: (exchange) => giveBack(exchange, options),
    },
  ];
}

async function consume(exchange: Exchange, options: TopicRouteOptions): Promise<Response> {
  const { auth, config, topics } = options;
  const { body, principal } = await callOf(exchange, options, CONSUME_FIELDS);
  const { timeoutMs, topicName, ...request } = readConsume(body);
  requireTopic(principal, topicName);
  const topicId = topics.topicIdOf(topicName);
  auth.requireMessages(principal, topicId);
  const waitMs = Math.min(timeoutMs, config.limits.max_poll_secs * 1000);
  if (waitMs > 0) exchange.liftIdleTimeout();
  const { signal } = exchange.request;
  const { userId } = principal;
  const { group, partition } = request;
  const poll = { exchange, group, partition, principal, topicId, topicName, waitMs };
  // The promise is returned rather than awaited, because an async function would stay in memory
  // while the request waits.
  return topics
    .consume({ ...request, topicId, waitMs, signal, userId })
    .then((found) => answerTo(poll, found, options));
}

/** A request for messages with all fields checked. */
interface Poll extends Pick<ConsumeFields, "group" | "partition" | "topicName"> {
  readonly exchange: Exchange;
  readonly principal: Principal;
  readonly topicId: number;
  readonly waitMs: number;
}

/** Responds with messages, unless the caller's session has ended in the meantime. */
async function answerTo(
  { exchange, group, partition, principal, topicId, topicName, waitMs }: Poll,
  found: TopicMessages,
  { auth, config, topics }: TopicRouteOptions,
): Promise<Response> {
  if (waitMs > 0) exchange.resetIdleTimeout();
  try {
    auth.requireStanding(principal, exchange);
  } catch (error) {
    const offsets = found.messages.map(({ offset }) => offset);
    if (offsets.length > 0) await topics.nack({ topicId, partition, group, offsets, delayMs: 0 });
    throw error;
  }
  const mayCompress = config.performance.http_compression;
  const text = JSON.stringify(consumeBody(topicName, found));
  return textResponse(exchange, text, { status: 200, headers: HEADERS, mayCompress });
}

function consumeBody(topicName: string, found: TopicMessages): TopicConsumeBody {
  return {
    messages: found.messages.map((message) => ({
      topic_id: topicName,
      partition_id: message.partition,
      offset: message.offset,
      payload: Buffer.from(message.payload).toString("base64"),
      key: message.key,
      timestamp_ms: message.timestampMs,
      ...(message.user === undefined ? {} : { user: message.user }),
      op: message.op,
      deliveries: message.deliveries,
    })),
    next_offset: found.nextOffset,
    has_more: found.hasMore,
  };
}

async function acknowledge(exchange: Exchange, options: TopicRouteOptions): Promise<Response> {
  const { body, principal } = await callOf(exchange, options, ACK_FIELDS);
  const { group, offsets, partition, topicName, upTo } = readAck(body);
  requireTopic(principal, topicName);
  const topicId = options.topics.topicIdOf(topicName);
  const { committedOffset } = await options.topics.ack({
    topicId,
    partition,
    group,
    offsets,
    upTo,
  });
  const answer: TopicAckBody = { success: true, acknowledged_offset: committedOffset - 1 };
  return json(exchange, 200, answer);
}

async function giveBack(exchange: Exchange, options: TopicRouteOptions): Promise<Response> {
  const { body, principal } = await callOf(exchange, options, NACK_FIELDS);
  const topicName = topicNameFrom(body);
  requireTopic(principal, topicName);
  const request = { group: groupFrom(body), ...readNack(body) };
  const { topics } = options;
  await topics.nack({ topicId: topics.topicIdOf(topicName), ...request });
  const answer: TopicNackBody = { success: true };
  return json(exchange, 200, answer);
}

/**
 * Reads a request and requires that its caller may read topics.
 *
 * @throws The refusal of the request.
 */
function callOf(
  exchange: Exchange,
  options: TopicRouteOptions,
  names: FieldNames,
): Promise<{ body: TopicFields; principal: Principal }> {
  return readJsonCall(exchange, options, {
    names,
    authorize: (principal) => requireRun(principal, "maintain", { action: "read topics" }),
  });
}
