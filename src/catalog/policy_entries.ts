/** Defines policies, which are part of the entries of their tables. */

/** The roles whose access to rows is controlled by policies. Higher roles can access all rows. */
export type PolicyRole = "user" | "service";

export type PolicyCommand = "all" | "select" | "insert" | "update" | "delete";

/**
 * A rule of a SHARED table with ACCESS_LEVEL 'RESTRICTED'. It determines which rows the roles to
 * which it applies may read or write. If several policies apply to a command, a row is permitted
 * if at least one of them permits it. The conditions contain the names that tables and columns had
 * when the policy was created.
 */
export interface PolicyEntry {
  /** The name of the policy, unique among the table's policies. */
  readonly name: string;
  readonly command: PolicyCommand;
  /** The roles to which the policy applies; absent if it applies to both `user` and `service`. */
  readonly roles?: readonly PolicyRole[];
  /**
   * The policy's condition on stored rows as SQL text; absent if the policy applies only to new
   * rows.
   */
  readonly using?: string;
  /** The policy's condition on new rows as SQL text; absent if `using` also applies to them. */
  readonly check?: string;
  /** The namespace in which the policy's conditions look up unqualified names. */
  readonly searchNamespace: string;
  /**
   * The table of the policy, followed by the tables that its conditions read, with the names that
   * they had when the policy was created.
   */
  readonly tables: readonly PolicyTable[];
  /** The user with whose rights the policy reads other tables. */
  readonly owner: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** A table to which a policy's conditions refer. */
export interface PolicyTable {
  readonly tableId: number;
  /** The names by which the policy's conditions refer to the table. */
  readonly namespace: string;
  readonly name: string;
  /** All columns that the table had when the policy was created, in column order. */
  readonly columns: readonly { readonly columnId: number; readonly name: string }[];
  /** The ids of this table's columns that the policy's conditions read. */
  readonly used: readonly number[];
}
