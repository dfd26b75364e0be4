/**
 * What a statement answered, before it is written as a case.
 */

/** How values of a column are written: as text, as quoted text, or as numbers of 12 digits. */
export type Column = "T" | "U" | "N";

export type Answer =
  | {
      readonly kind: "rows";
      /** Empty for a statement that is no query. */
      readonly columns: readonly Column[];
      readonly rows: readonly (readonly (string | null)[])[];
    }
  | { readonly kind: "failure"; readonly state: string; readonly message: string };

/** Cases that run one after the other on one database. */
export interface CaseFile {
  /** Of the file that is written, without its ending. */
  readonly name: string;
  readonly about: string;
  readonly statements: readonly string[];
}
