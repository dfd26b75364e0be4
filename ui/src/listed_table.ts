/**
 * A table or view as the page lists it; apart, since completion needs no server.
 */
export interface ListedTable {
  readonly namespace: string;
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}
