/** Defines the result of a statement in PostgreSQL, before it is written as a test case. */

/**
 * The format of a column's values: "T" for strings, "U" for quoted strings, and "N" for numbers
 * with 12 digits.
 */
export type Column = "T" | "U" | "N";

export type Answer =
  | {
      readonly kind: "rows";
      /** The formats of the result's columns; empty for a statement that is not a query. */
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly (string | null)[])[];
    }
  | { readonly kind: "failure"; readonly state: string; readonly message: string };

/** The test cases of one file. They run one after another on the same database. */
export interface CaseFile {
  /** The name of the file to write, without its extension. */
  readonly name: string;
  readonly about: string;
  /** The PostgreSQL extension that the statements need. Tidemark has its functions built in. */
  readonly extension?: string;
  readonly statements: readonly string[];
}
