/**
 * Defines how a route is described in `GET /v1/openapi.json`. Every route must have a description,
 * so no endpoint can be missing from the document.
 */

type SchemaType = "array" | "boolean" | "integer" | "null" | "number" | "object" | "string";

/** The keywords of JSON Schema (2020-12) that the descriptions use. */
export interface Schema {
  readonly $ref?: string;
  /**
   * False if an object may have only the listed properties; absent if further properties are
   * allowed.
   */
  readonly additionalProperties?: false;
  readonly anyOf?: readonly Schema[];
  readonly const?: string;
  readonly default?: boolean | number | string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly items?: Schema;
  readonly maxLength?: number;
  readonly minLength?: number;
  readonly minimum?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly type?: SchemaType | readonly SchemaType[];
}

/** The schema of a body for each media type. */
export type Content = Readonly<Record<string, Schema>>;

/** The credentials that an endpoint requires. */
export type RequiredCredentials =
  | "anyone"
  /** The endpoint requires no credentials, but serves only callers on the server's own machine. */
  | "local"
  | "bearer"
  /** The endpoint requires a bearer token or a browser cookie. */
  | "bearer or cookie"
  /**
   * The endpoint accepts a token in the header or in either browser cookie, and also callers
   * without a token.
   */
  | "any token or none"
  /** The endpoint requires the refresh token, in the header, in a cookie or in the body. */
  | "refresh token"
  /**
   * The endpoint requires either a bearer token or a client address listed in
   * `security.metrics_allow`.
   */
  | "bearer or address";

/** A parameter of an operation. Path parameters are always required; all others are optional. */
export interface OperationParameter {
  readonly name: string;
  readonly in: "header" | "path" | "query";
  readonly description: string;
  readonly schema: Schema;
  readonly required?: true;
}

export interface OperationAnswer {
  readonly description: string;
  readonly content?: Content;
  /** Headers that only this operation's responses have, each with its meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  /** An id that is unique among all operations. Code generators derive function names from it. */
  readonly id: string;
  readonly tag: "auth" | "client" | "data" | "probes" | "ui";
  readonly summary: string;
  readonly description?: string;
  readonly access: RequiredCredentials;
  readonly parameters?: readonly OperationParameter[];
  readonly body?: {
    readonly content: Content;
    readonly required: boolean;
    /** An example of a valid JSON body. It is shown to callers that use the wrong method. */
    readonly example?: object;
  };
  /** The messages on the connection that the endpoint opens. */
  readonly messages?: { readonly client: Schema; readonly server: Schema };
  /** The successful responses of an endpoint, keyed by HTTP status. */
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /** The error codes that are not common to all endpoints of this kind, keyed by HTTP status. */
  readonly errors?: Readonly<Record<number, readonly string[]>>;
}
