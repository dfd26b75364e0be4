/**
 * The shape of every request, response and frame, for server, client and admin page alike.
 */
export {
  type EndCode,
  endsSubscription,
  type SubscriptionCode,
  type WireCode,
  type WireError,
  wireErrorOf,
} from "./error_codes.ts";
export type {
  AuthStatusBody,
  ErrorBody,
  HealthBody,
  LoginBody,
  MeBody,
  PlainErrorBody,
  SqlRequestBody,
  SqlResponseBody,
  StatementEntry,
  UserBody,
} from "./http.ts";
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
