/**
 * The shape of every request, response and frame, for server, client and admin page alike.
 */
export {
  type EndCode,
  endsSubscription,
  type SubscriptionCode,
  type WireCode,
  wireErrorOf,
} from "./error_codes.ts";
export type {
  AliveBody,
  AuthStatusBody,
  ClusterHealthBody,
  ClusterNodeBody,
  ErrorBody,
  HealthBody,
  LoginBody,
  LoginRequestBody,
  LogoutRequestBody,
  MeBody,
  MessageBody,
  PlainErrorBody,
  ReadinessBody,
  RefreshRequestBody,
  SetupBody,
  SetupRequestBody,
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
