/** Merges the changes to a topic's source tables in seq order, one batch at a time. */
import type { Seq } from "../base/seq.ts";
import type { HistoryStore, OwnedChangeBatch, OwnedChangeScan } from "../storage/mod.ts";
import type { OnMessage, TableSources } from "./table_sources.ts";

/** A range of changes by seq: above `after`, and at or below `upTo`. */
export interface CountedRange {
  readonly after: number;
  readonly upTo: number;
}

interface Head {
  readonly sources: TableSources;
  readonly scan: OwnedChangeScan;
  batch: OwnedChangeBatch | undefined;
  next: number;
  isAtEnd: boolean;
}

export class ChangeMerge {
  readonly #heads: readonly Head[];

  constructor(
    store: Pick<HistoryStore, "changesOfAll">,
    tables: readonly TableSources[],
    { after, upTo }: CountedRange,
  ) {
    this.#heads = tables.map((sources) => ({
      sources,
      scan: store.changesOfAll(sources.table.tableId, {
        after: after as Seq,
        upTo: upTo as Seq,
        columnIds: sources.columnIds,
      }),
      batch: undefined,
      next: 0,
      isAtEnd: false,
    }));
  }

  /**
   * Visits the messages among the next changes, at most one batch of changes.
   *
   * @returns The seq up to which all changes have been visited; undefined if there are no more
   *   changes, and 0 if a scan needs further calls.
   */
  step(onMessage: OnMessage): number | undefined {
    for (const head of this.#heads) {
      if (head.isAtEnd || (head.batch !== undefined && head.next < head.batch.rowCount)) continue;
      head.batch = head.scan.next();
      head.next = 0;
      head.isAtEnd = head.batch === undefined;
      if (head.batch?.rowCount === 0) return 0;
    }
    // The source with the lowest next seq delivers its changes until it reaches the lowest next
    // seq of the other sources.
    let first: Head | undefined;
    let lowest = Infinity;
    let bound = Infinity;
    for (const head of this.#heads) {
      const seq = head.batch?.seqs[head.next] ?? Infinity;
      if (seq < lowest) {
        bound = lowest;
        lowest = seq;
        first = head;
      } else if (seq < bound) bound = seq;
    }
    if (first?.batch === undefined) return undefined;
    const { batch, next: start, sources } = first;
    let end = start;
    while (end < batch.rowCount && (batch.seqs[end] ?? 0) < bound) end += 1;
    sources.visit(batch, { start, end }, onMessage);
    first.next = end;
    return batch.seqs[end - 1] ?? 0;
  }

  close(): void {
    for (const { scan } of this.#heads) scan.close();
  }
}
