/**
 * Exports the TypeScript client, which logs in, runs queries, and follows live queries, resuming
 * them after interruptions. It has no dependencies, and runs in browsers and in every runtime with
 * fetch and WebSocket.
 */
export type { DataTypeWord, SchemaField, StatementEntry } from "../protocol/mod.ts";
export type { AccountCalls, SignUpFields } from "./accounts.ts";
export type { ExecutionPart } from "./answer_parts.ts";
export {
  type Client,
  type ClientOptions,
  createClient,
  type Topic,
} from "./client.ts";
export type { ConnectionState } from "./connection.ts";
export type { ConsumedMessage, ConsumeOptions, MessageHandler } from "./consumer.ts";
export type { Copies, CopyCallOptions, CopyResult } from "./copy.ts";
export type { Credentials, TokenFunction } from "./credentials.ts";
export type {
  BodyData,
  BodyStream,
  ClientEnvironment,
  HttpRequest,
  HttpResponse,
  Socket,
  SocketHandlers,
} from "./environment.ts";
export { ConnectionError, ServerError } from "./errors.ts";
export type { Files, FileUrlOptions } from "./files.ts";
export type { LiveQuery } from "./live.ts";
export type { LiveEvent, LiveOptions, LiveStatus } from "./live_options.ts";
export type { Parameter } from "./parameters.ts";
export type { PositionStorage } from "./positions.ts";
export type { Person, Presence, PresenceOptions } from "./presence.ts";
export type {
  BeginOptions,
  BegunProviderLogin,
  EndedLoginOptions,
  LinkOptions,
  ProviderCalls,
  ProviderChoice,
} from "./provider_logins.ts";
export type { Duration } from "./repeats.ts";
export { type CompareRows, columnOf, comparerOf, type OrderTerm, orderFrom } from "./row_order.ts";
export type { Identity, PostOptions, Session, SetupFields } from "./session.ts";
export type { ExecuteOptions, Execution, RowObject, Statements } from "./statements.ts";
export type { TransactionClient, TransactionSettings } from "./transaction.ts";
export type { Cell, CellObject, Change, Values } from "./values.ts";
