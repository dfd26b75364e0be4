/** Runs DROP TOPIC, CLEAR TOPIC, CONSUME and ACK. */
import { type Principal, requireMessages, requireTopic } from "../../auth/mod.ts";
import { asOneChange } from "../../base/bugs.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import { type Job, runJob } from "../../storage/mod.ts";
import { BIGINT, INT, JSON_TEXT, type Row, TEXT, type Value } from "../../types/mod.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { withinRequest } from "../execute/context/request_wait.ts";
import {
  findTopic,
  refuseDeadLetterTopics,
  refuseWebhooksOf,
  topicNameOf,
} from "../names/topics.ts";
import type {
  AckStatement,
  ClearTopicStatement,
  ConsumeStatement,
  DropTopicStatement,
} from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type {
  TopicAckRequest,
  TopicConsumeRequest,
  TopicMessage,
  TopicStart,
} from "../ports/ports.ts";
import { type PlainColumn, rowsResult } from "../result/result.ts";
import { groupFrom, numberFrom } from "./topic_arguments.ts";

/** The parts of the database that CONSUME and ACK use. */
export type TopicStatementDeps = Pick<
  SqlEnvironment,
  "catalog" | "clock" | "jobs" | "limits" | "store" | "topics"
>;

export interface TopicStatementCall {
  readonly principal: Principal;
  /** The namespace in which unqualified names are resolved. */
  readonly namespace: string;
  /** The parameter values of the request. */
  readonly parameters: readonly Value[];
}

interface TimedCall extends TopicStatementCall {
  /** Limits how long counting changes may take. */
  readonly ledger: RequestLedger;
}

const MESSAGE_COLUMNS: readonly PlainColumn[] = [
  { name: "topic_id", type: TEXT },
  { name: "partition_id", type: INT },
  { name: "offset", type: BIGINT },
  { name: "key", type: TEXT },
  { name: "payload", type: JSON_TEXT },
  { name: "timestamp_ms", type: BIGINT },
  { name: "user_id", type: TEXT },
  { name: "op", type: TEXT },
  { name: "deliveries", type: INT },
];

const ACK_COLUMNS: readonly PlainColumn[] = [
  { name: "topic", type: TEXT },
  { name: "group_id", type: TEXT },
  { name: "partition", type: INT },
  { name: "committed_offset", type: BIGINT },
];

const MESSAGES_DEFAULT = 100;
const MESSAGES_MAX = 10_000;

/**
 * Drops a topic, or clears its messages, as a job that ends immediately.
 *
 * @returns Its job row.
 * @throws {DatabaseError} OBJECT_NOT_FOUND, DEPENDENT_OBJECTS
 */
export async function removeMessages(
  deps: TopicStatementDeps,
  node: ClearTopicStatement | DropTopicStatement,
  { namespace, principal }: Pick<TopicStatementCall, "namespace" | "principal">,
): Promise<Row[]> {
  const { catalog, jobs } = deps;
  const { name, schema = namespace } = node.name;
  const isMissing = catalog.topic(schema, name) === undefined;
  if (isMissing && node.type === "drop topic" && node.ifExists === true) {
    return [[null, "clear", "skipped", schema, name, `topic ${schema}.${name} does not exist`]];
  }
  checkRemoval(deps, node, namespace);
  const job = jobs.begin({
    kind: "clear",
    parameters: { topic: `${schema}.${name}` },
    createdBy: principal.userId,
  });
  await runJob(job, async () => {
    job.start();
    return { status: "completed", message: removedNow(deps, node, namespace) };
  });
  if (job.error !== undefined) throw job.error;
  return [jobRow(job, schema, name)];
}

function jobRow({ jobId, kind, message, status }: Job, namespace: string, name: string): Row {
  return [jobId, kind, status, namespace, name, message ?? null];
}

/**
 * Checks whether a topic may be dropped or cleared.
 * @throws {DatabaseError} OBJECT_NOT_FOUND, DEPENDENT_OBJECTS
 */
export function checkRemoval(
  { catalog }: Pick<TopicStatementDeps, "catalog">,
  node: ClearTopicStatement | DropTopicStatement,
  namespace: string,
): void {
  const { name, schema = namespace } = node.name;
  const isDrop = node.type === "drop topic";
  if (isDrop && node.ifExists === true && catalog.topic(schema, name) === undefined) return;
  const topic = findTopic(catalog, node.name, namespace);
  if (!isDrop) return;
  const { start: position } = node.name._location;
  refuseDeadLetterTopics(catalog, [topic], position);
  refuseWebhooksOf(topic, position);
}

/** Drops or clears a topic in this tick. Returns a message that describes the effect. */
function removedNow(
  { catalog, clock, store, topics }: TopicStatementDeps,
  node: ClearTopicStatement | DropTopicStatement,
  namespace: string,
): string {
  checkRemoval({ catalog }, node, namespace);
  const topic = findTopic(catalog, node.name, namespace);
  const seq = store.issueSeq();
  asOneChange(() => {
    if (node.type === "drop topic") catalog.dropTopics([topic], seq);
    else catalog.changeTopic({ ...topic, clearedSeq: seq, updatedAtMs: clock.nowMs() }, seq);
    topics().topicsChanged();
  });
  return `topic ${topicNameOf(topic)} ${node.type === "drop topic" ? "dropped" : "cleared"}`;
}

/**
 * Reads messages of a topic. If they are read for a group, also acknowledges them. @throws
 * {DatabaseError}
 */
export async function consume(
  deps: TopicStatementDeps,
  node: ConsumeStatement,
  call: TimedCall,
): Promise<StatementResult> {
  const request = consumeRequest(deps, node, call);
  const { group, partition, topicId } = request;
  const { messages } = await withinRequest(
    (signal) => deps.topics().consume({ ...request, signal }),
    { clock: deps.clock, ledger: call.ledger },
  );
  if (group !== undefined && node.noAck !== true && messages.length > 0) {
    const offsets = messages.map(({ offset }) => offset);
    await acknowledge(deps, { topicId, partition, group, offsets }, call.ledger);
  }
  const topic = findTopic(deps.catalog, node.topic, call.namespace);
  const rows = messages.map((message) => messageRow(topicNameOf(topic), message));
  return rowsResult(MESSAGE_COLUMNS, rows, call.principal.userId);
}

/** Binds a CONSUME statement. @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE, … */
export function consumeRequest(
  { catalog, limits }: Pick<TopicStatementDeps, "catalog" | "limits">,
  node: ConsumeStatement,
  { namespace, parameters, principal }: TopicStatementCall,
): TopicConsumeRequest {
  const topic = findTopic(catalog, node.topic, namespace);
  requireMessages(principal, topic, catalog);
  const { topicId } = topic;
  requireTopic(principal, topicNameOf(topic), { position: node.topic._location.start });
  const { group, limit } = node;
  const max = Math.min(limits.resultRowsMax || MESSAGES_MAX, MESSAGES_MAX);
  return {
    topicId,
    partition: partitionFrom(node, parameters),
    group: group === undefined ? undefined : groupFrom(group, parameters),
    start: startFrom(node, parameters),
    limit:
      limit === undefined
        ? Math.min(MESSAGES_DEFAULT, max)
        : numberFrom(limit, parameters, { what: "a number of messages", min: 1, max }),
    userId: principal.userId,
  };
}

function startFrom({ from }: ConsumeStatement, parameters: readonly Value[]): TopicStart {
  if (from === undefined || from === "latest") return { kind: "latest" };
  if (from === "earliest") return { kind: "earliest" };
  return { kind: "offset", offset: numberFrom(from, parameters, { what: "an offset" }) };
}

function partitionFrom(
  { partition }: AckStatement | ConsumeStatement,
  parameters: readonly Value[],
): number {
  return partition === undefined ? 0 : numberFrom(partition, parameters, { what: "a partition" });
}

function messageRow(topicId: string, message: TopicMessage): Row {
  return [
    topicId,
    message.partition,
    message.offset,
    message.key,
    message.payload,
    message.timestampMs,
    message.user ?? null,
    message.op,
    message.deliveries,
  ];
}

/** Binds an ACK statement. @throws {DatabaseError} OBJECT_NOT_FOUND, VALUE_OUT_OF_RANGE, … */
export function ackRequest(
  { catalog }: Pick<TopicStatementDeps, "catalog">,
  node: AckStatement,
  { namespace, parameters, principal }: TopicStatementCall,
): TopicAckRequest {
  const topic = findTopic(catalog, node.topic, namespace);
  const { partitions, topicId } = topic;
  requireTopic(principal, topicNameOf(topic), { position: node.topic._location.start });
  const { group, offsets, upTo } = node;
  const offsetFrom = (each: NonNullable<typeof upTo>): number =>
    numberFrom(each, parameters, { what: "an offset" });
  const partition = partitionFrom(node, parameters);
  if (partition >= partitions) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot acknowledge messages in partition ${partition}: the partitions of the topic are ` +
        `0 to ${partitions - 1}`,
      { position: node._location.start },
    );
  }
  return {
    topicId,
    partition,
    group: groupFrom(group, parameters),
    ...(upTo === undefined ? {} : { upTo: offsetFrom(upTo) }),
    ...(offsets === undefined ? {} : { offsets: ascending(offsets.map(offsetFrom)) }),
  };
}

function ascending(offsets: readonly number[]): number[] {
  return [...new Set(offsets)].toSorted((left, right) => left - right);
}

/** Runs an ACK statement in a commit of its own. @throws {DatabaseError} */
export async function ack(
  deps: TopicStatementDeps,
  node: AckStatement,
  call: TimedCall,
): Promise<StatementResult> {
  const request = ackRequest(deps, node, call);
  const committedOffset = await acknowledge(deps, request, call.ledger);
  return ackResult(node, { request, committedOffset, call });
}

/** Builds the result of ACK. @param ended.committedOffset The committed offset (exclusive). */
export function ackResult(
  { topic: { name, schema } }: AckStatement,
  {
    call: { namespace, principal },
    committedOffset,
    request: { group, partition },
  }: { request: TopicAckRequest; committedOffset: number; call: TopicStatementCall },
): StatementResult {
  const last = committedOffset === 0 ? null : committedOffset - 1;
  const row: Row = [`${schema ?? namespace}.${name}`, group, partition, last];
  return rowsResult(ACK_COLUMNS, [row], principal.userId);
}

/** Acknowledges messages. Returns the group's committed offset (exclusive) once it is durable. */
async function acknowledge(
  { clock, store, topics }: Pick<TopicStatementDeps, "clock" | "store" | "topics">,
  request: TopicAckRequest,
  ledger: RequestLedger,
): Promise<number> {
  await withinRequest(() => topics().counted(request.topicId), { clock, ledger });
  const prepared = topics().prepareAck(request);
  const { committedOffset, writes } = prepared;
  let lastSeq: Seq | undefined;
  try {
    if (writes.length > 0) lastSeq = store.apply({ writes, usesReserve: true }).lastSeq;
  } catch (error) {
    prepared.abandoned();
    throw error;
  }
  prepared.done();
  if (lastSeq !== undefined) await store.durable(lastSeq);
  return committedOffset;
}
