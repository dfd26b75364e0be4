/**
 * The description of a route for `GET /v1/openapi.json`. Every route has one, so that no endpoint
 * is left out.
 */

type SchemaType = "array" | "boolean" | "integer" | "null" | "number" | "object" | "string";

/** The keywords of JSON Schema (2020-12) that the descriptions use. */
export interface Schema {
  readonly $ref?: string;
  /** This member is present if only the listed properties are allowed. */
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

/** Bodies by media type. */
export type Content = Readonly<Record<string, Schema>>;

/** The credentials that an endpoint requires. */
export type RequiredCredentials =
  | "anyone"
  /** Callers on the server's own machine. */
  | "local"
  | "bearer"
  /** A bearer token or a browser cookie. */
  | "bearer or cookie"
  /** A token in the header or in either browser cookie, or no token. */
  | "any token or none"
  /** The refresh token in the header, in a cookie or in the body. */
  | "refresh token"
  /** A bearer token, or an address of `security.metrics_allow`. */
  | "bearer or address";

/** A parameter of an operation. Path parameters are always required, all others never. */
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
  /** The headers that only this operation adds to its responses, each with its meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  /** An id that is unique among all operations. Generators name functions after it. */
  readonly id: string;
  readonly tag: "auth" | "client" | "data" | "probes" | "ui";
  readonly summary: string;
  readonly description?: string;
  readonly access: RequiredCredentials;
  readonly parameters?: readonly OperationParameter[];
  readonly body?: {
    readonly content: Content;
    readonly required: boolean;
    /** A working JSON body, shown to callers that use the wrong method. */
    readonly example?: object;
  };
  /** The messages on the connection that the request opens. */
  readonly messages?: { readonly client: Schema; readonly server: Schema };
  /** The successful responses, by status. */
  readonly answers: Readonly<Record<number, OperationAnswer>>;
  /** The error codes by status that not every endpoint of this kind has. */
  readonly errors?: Readonly<Record<number, readonly string[]>>;
}
