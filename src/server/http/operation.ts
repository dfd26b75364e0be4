/**
 * What a route says about itself, for the description that `GET /v1/openapi.json` gives. Every
 * route has one, so that no endpoint is left out.
 */

type SchemaType = "array" | "boolean" | "integer" | "null" | "number" | "object" | "string";

/** JSON Schema (2020-12), as far as it is used here. */
export interface Schema {
  readonly $ref?: string;
  /** Present where no property may be there but the named ones. */
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

/** Who may call. */
export type Access =
  | "anyone"
  /** Callers on the machine of the server. */
  | "local"
  | "bearer"
  /** A bearer token, or the cookie of a browser. */
  | "bearer or cookie"
  /** A token in the header or in either cookie of a browser, or no token. */
  | "any token or none"
  /** The same with the refresh token, which may stand in the body, too. */
  | "refresh token"
  /** A bearer token, or an address of `security.metrics_allow`. */
  | "bearer or address";

/** A parameter of the path is always required, any other never. */
export interface OperationParameter {
  readonly name: string;
  readonly in: "header" | "path" | "query";
  readonly description: string;
  readonly schema: Schema;
  readonly required?: true;
}

export interface Answer {
  readonly description: string;
  readonly content?: Content;
  /** Headers beyond those of every answer, each with its meaning. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Operation {
  /** Unique among all operations; generators name functions after it. */
  readonly id: string;
  readonly tag: "auth" | "client" | "data" | "probes" | "ui";
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  readonly parameters?: readonly OperationParameter[];
  readonly body?: {
    readonly content: Content;
    readonly required: boolean;
    /** A JSON body that works, shown to callers that chose the wrong method. */
    readonly example?: object;
  };
  /** What is no error, by status. */
  readonly answers: Readonly<Record<number, Answer>>;
  /** Codes of errors by status, beyond those that every endpoint of its kind has. */
  readonly errors?: Readonly<Record<number, readonly string[]>>;
}
