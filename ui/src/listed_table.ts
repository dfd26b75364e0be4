/**
 * A table or view in the page's list. The type has a file of its own because completion needs no
 * server.
 */
export interface ListedTable {
  readonly namespace: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}
