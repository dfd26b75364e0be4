/**
 * A table or view in the page's list. This is a separate file because completion needs no server.
 */
export interface ListedTable {
  readonly namespace: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}
