/**
 * The shape of every request, response and frame, for server, client, CLI and UI alike.
 */
export type {
  BatchControl,
  Cell,
  CellObject,
  Change,
  ClientMessage,
  ControlMessage,
  DataMessage,
  DataTypeWord,
  ErrorMessage,
  InitialDataBatch,
  SchemaField,
  ServerMessage,
  SubscribeOptions,
  SubscriptionAck,
  SubscriptionSpec,
} from "./messages.ts";
