/**
 * Reads one owner's rows that secondary indexes select and that are current at a seq, each row
 * once. The rows in a segment or memtable are selected when the scan reaches it.
 *
 *     choice ──► rows in this segment, ascending ──► current rows among them ──► batch
 *                  keys:   the rows between two positions of a sorted index
 *                  terms:  the rows in the lists of an inverted index
 *                  primary: the rows with some primary keys, found when the scan is opened
 *                  any:    the rows of several choices together
 *
 * Segments stay pinned until the scan is closed.
 */
import { SEQ_ZERO } from "../../base/seq.ts";
import { type Row, vectorFromValues } from "../../types/mod.ts";
import type { ChosenScanOptions, RowChoice } from "../contract/index_reads.ts";
import type { CountedScan, ScanBatch } from "../contract/scans.ts";
import type { TermQuery } from "../contract/terms.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { RowSpan } from "../segment/reader.ts";
import { countByTerms, type RowList, rowsByTerms, unionOf } from "../segment/term_lists.ts";
import type { TermPart } from "../segment/term_part.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { columnsReadBy, isLiveAt, type TableIndex } from "../table/table_index.ts";
import { VersionCursor } from "../table/version_cursor.ts";
import { DefinitionWatch } from "./definition_watch.ts";
import {
  type IndexPiece,
  isCurrentIn,
  type OwnerRead,
  piecesInMemtable,
  piecesInSegment,
  placesIn,
  rowsWithin,
} from "./index_pieces.ts";
import { requireIndex } from "./index_scan.ts";
import { columnTypeOf } from "./segment_scan.ts";

/** The maximum number of rows visited in one step. */
const LOOKS_MAX = 16_384;

/**
 * Opens a scan of the rows that indexes select. Returns undefined if an index is not ready, or if
 * some of the rows are in history.
 */
export function openChosenScan(
  table: StoredTable,
  options: ChosenScanOptions,
): CountedScan | undefined {
  const { choice, upTo } = options;
  const indexes = new Map<number, TableIndex>();
  for (const indexId of indexIdsOf(choice)) {
    const index = table.readyIndex(indexId);
    if (index === undefined) return undefined;
    indexes.set(indexId, index);
  }
  if (table.historyAt(upTo).length > 0) return undefined;
  return new ChosenScan(table, indexes, options);
}

function indexIdsOf(choice: RowChoice): number[] {
  switch (choice.kind) {
    case "any":
      return choice.choices.flatMap(indexIdsOf);
    case "primary":
      return [];
    default:
      return [choice.indexId];
  }
}

/** For each memtable and segment, the rows selected by primary key. */
type RowsOfKeys = ReadonlyMap<Memtable | OpenSegment, RowList>;

/** Finds the rows that are selected by primary key. */
function keyedRows(
  table: StoredTable,
  choice: RowChoice,
  { bounds, owner }: OwnerRead,
): RowsOfKeys {
  const rows = new Map<Memtable | OpenSegment, number[]>();
  for (const key of primaryKeysIn(choice)) {
    const cursor = table.findCurrent(owner, key, bounds.upTo);
    if (cursor === undefined) continue;
    const { place, row } = cursor;
    const known = rows.get(place);
    if (known === undefined) rows.set(place, [row]);
    else known.push(row);
  }
  return new Map([...rows].map(([place, found]) => [place, Uint32Array.from(found).toSorted()]));
}

function primaryKeysIn(choice: RowChoice): readonly Row[] {
  if (choice.kind === "any") return choice.choices.flatMap(primaryKeysIn);
  return choice.kind === "primary" ? choice.keys : [];
}

/** A segment or a memtable, as read by a scan for one owner. */
interface ChosenPlace {
  /** Returns an upper bound on the number of rows that `choice` selects. */
  countOf(choice: RowChoice): number;
  /** Returns the rows that `choice` selects, in ascending order. */
  rowsOf(choice: RowChoice): RowList;
  isCurrent(row: number): boolean;
  /** Moves a cursor to a row of the memtable or segment. */
  stand(cursor: VersionCursor, row: number): void;
}

type Indexes = ReadonlyMap<number, TableIndex>;

class ChosenScan implements CountedScan {
  readonly rowCount: number;
  readonly #table: StoredTable;
  readonly #indexes: Indexes;
  readonly #options: ChosenScanOptions;
  readonly #watch: DefinitionWatch;
  readonly #pinned: readonly OpenSegment[];
  readonly #places: readonly ChosenPlace[];
  readonly #cursor = new VersionCursor();
  /**
   * The index of the current memtable or segment. `#rows` has its selected rows, and the number
   * below counts the selected rows already visited.
   */
  #placeIndex = -1;
  #rows: RowList = new Uint32Array(0);
  #visited = 0;
  #isOpen = true;

  constructor(table: StoredTable, indexes: Indexes, options: ChosenScanOptions) {
    const { after = SEQ_ZERO, choice, columnIds, owner, upTo } = options;
    this.#table = table;
    this.#indexes = indexes;
    this.#options = options;
    const indexed = [...indexes.values()].flatMap(columnsReadBy);
    this.#watch = new DefinitionWatch(table, [...columnIds, ...indexed]);
    this.#pinned = [...table.segments];
    for (const segment of this.#pinned) segment.pin();
    try {
      const read = { owner, bounds: { expiredSeq: after, upTo } };
      const found = { indexes, read, keyed: keyedRows(table, choice, read) };
      this.#places = placesOf(table, found);
      this.rowCount = this.#places.reduce((sum, place) => sum + place.countOf(choice), 0);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  next(rowsMax: number): ScanBatch | undefined {
    this.#watch.check();
    for (const indexId of this.#indexes.keys()) requireIndex(this.#table, indexId);
    const values = this.#options.columnIds.map((): Row[number][] => []);
    let rowCount = 0;
    for (let looks = 0; looks < LOOKS_MAX && rowCount < rowsMax; looks += 1) {
      if (this.#visited === this.#rows.length) {
        if (this.#openPlace()) continue;
        if (rowCount === 0) return undefined;
        break;
      }
      if (this.#readRow(this.#rows[this.#visited] as number, values)) rowCount += 1;
      this.#visited += 1;
    }
    const columns = this.#options.columnIds.map((columnId, at) =>
      vectorFromValues(columnTypeOf(this.#table, columnId), values[at] ?? []),
    );
    return { rowCount, columns };
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const segment of this.#pinned) segment.unpin();
  }

  /**
   * Selects the rows in the next memtable or segment. Returns false if there is no further one to
   * read.
   */
  #openPlace(): boolean {
    if (this.#placeIndex + 1 >= this.#places.length) return false;
    this.#placeIndex += 1;
    this.#rows = this.#places[this.#placeIndex]?.rowsOf(this.#options.choice) ?? this.#rows;
    this.#visited = 0;
    return true;
  }

  /** Adds the values of a row to `values`. Returns false if the row is not current. */
  #readRow(row: number, values: readonly Row[number][][]): boolean {
    const place = this.#places[this.#placeIndex];
    if (place?.isCurrent(row) !== true) return false;
    place.stand(this.#cursor, row);
    for (const [at, columnId] of this.#options.columnIds.entries()) {
      values[at]?.push(this.#table.valueAt(this.#cursor, columnId));
    }
    return true;
  }
}

/** The state that all memtables and segments of a scan share. */
interface ScanParts {
  readonly indexes: Indexes;
  readonly read: OwnerRead;
  readonly keyed: RowsOfKeys;
}

function placesOf(table: StoredTable, parts: ScanParts): ChosenPlace[] {
  const { read } = parts;
  const places: ChosenPlace[] = [];
  for (const segment of table.segments) {
    const span = rowsWithin(segment, read);
    if (span !== undefined) places.push(new SegmentChoice(segment, span, parts));
  }
  for (const memtable of table.memtables()) {
    if (memtable.partitions.has(read.owner)) places.push(new MemtableChoice(memtable, parts));
  }
  return places;
}

/**
 * Returns the index through which a choice selects rows. The index was opened together with the
 * scan.
 */
function indexIn(indexes: Indexes, { indexId }: { readonly indexId: number }): TableIndex {
  const index = indexes.get(indexId);
  if (index !== undefined) return index;
  throw new Error(`index ${indexId} was not opened`);
}

/** Returns an upper bound on the number of rows with keys in the given ranges. */
function countInPieces(
  pieces: readonly IndexPiece[],
  { spans }: Extract<RowChoice, { kind: "keys" }>,
): number {
  let count = 0;
  for (const piece of pieces) {
    for (const span of spans) {
      const { end, start } = placesIn(piece, span);
      count += Math.max(0, end - start);
    }
  }
  return count;
}

/** Returns the rows with keys in the given ranges, in ascending order. */
function rowsInPieces(
  pieces: readonly IndexPiece[],
  choice: Extract<RowChoice, { kind: "keys" }>,
): RowList {
  const rows = new Uint32Array(countInPieces(pieces, choice));
  let count = 0;
  for (const piece of pieces) {
    for (const span of choice.spans) {
      const { end, start } = placesIn(piece, span);
      for (let place = start; place < end; place += 1) {
        rows[count] = piece.rowAt(place);
        count += 1;
      }
    }
  }
  rows.sort();
  return rows;
}

const NO_ROWS: RowList = new Uint32Array(0);

class SegmentChoice implements ChosenPlace {
  readonly #segment: OpenSegment;
  readonly #span: RowSpan;
  readonly #indexes: Indexes;
  readonly #read: OwnerRead;
  readonly #keyed: RowList;

  constructor(segment: OpenSegment, span: RowSpan, { indexes, keyed, read }: ScanParts) {
    this.#segment = segment;
    this.#span = span;
    this.#indexes = indexes;
    this.#read = read;
    this.#keyed = keyed.get(segment) ?? NO_ROWS;
  }

  countOf(choice: RowChoice): number {
    switch (choice.kind) {
      case "primary":
        return this.#keyed.length;
      case "any":
        return choice.choices.reduce((sum, each) => sum + this.countOf(each), 0);
      case "keys":
        return countInPieces(this.#piecesOf(choice), choice);
      case "terms":
        return this.#partsOf(choice).reduce(
          (sum, part) => sum + countByTerms(part, choice.query, this.#rangeIn(part)),
          0,
        );
    }
  }

  rowsOf(choice: RowChoice): RowList {
    switch (choice.kind) {
      case "primary":
        return this.#keyed;
      case "any":
        return unionOf(choice.choices.map((each) => this.rowsOf(each)));
      case "keys":
        return rowsInPieces(this.#piecesOf(choice), choice);
      case "terms":
        return joined(this.#partsOf(choice).map((part) => this.#rowsIn(part, choice.query)));
    }
  }

  isCurrent(row: number): boolean {
    return isLiveAt(this.#segment, row, this.#read.bounds);
  }

  stand(cursor: VersionCursor, row: number): void {
    cursor.standInSegment(this.#segment, row);
  }

  #piecesOf(choice: { readonly indexId: number }): IndexPiece[] {
    return piecesInSegment(this.#segment, indexIn(this.#indexes, choice), this.#read);
  }

  /** Returns the parts of an inverted index that may have rows of this owner. */
  #partsOf(choice: { readonly indexId: number }): readonly TermPart[] {
    const parts = this.#segment.terms(indexIn(this.#indexes, choice));
    const { end, start } = this.#span;
    return parts.filter(({ firstRow }, at) => {
      return firstRow < end && (parts[at + 1]?.firstRow ?? Infinity) > start;
    });
  }

  #rangeIn({ firstRow }: TermPart): RowSpan {
    const { end, start } = this.#span;
    return { start: Math.max(0, start - firstRow), end: end - firstRow };
  }

  #rowsIn(part: TermPart, query: TermQuery): Uint32Array {
    const rows = Uint32Array.from(rowsByTerms(part, query, this.#rangeIn(part)));
    for (let at = 0; at < rows.length; at += 1) rows[at] = (rows[at] as number) + part.firstRow;
    return rows;
  }
}

function joined(lists: readonly Uint32Array[]): RowList {
  const [first = new Uint32Array(0)] = lists;
  if (lists.length === 1) return first;
  const rows = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0));
  let count = 0;
  for (const list of lists) {
    rows.set(list, count);
    count += list.length;
  }
  return rows;
}

class MemtableChoice implements ChosenPlace {
  readonly #memtable: Memtable;
  readonly #indexes: Indexes;
  readonly #read: OwnerRead;
  readonly #keyed: RowList;

  constructor(memtable: Memtable, { indexes, keyed, read }: ScanParts) {
    this.#memtable = memtable;
    this.#indexes = indexes;
    this.#read = read;
    this.#keyed = keyed.get(memtable) ?? NO_ROWS;
  }

  countOf(choice: RowChoice): number {
    if (choice.kind === "primary") return this.#keyed.length;
    if (choice.kind === "any") {
      return choice.choices.reduce((sum, each) => sum + this.countOf(each), 0);
    }
    const index = indexIn(this.#indexes, choice);
    if (choice.kind === "keys") {
      return countInPieces(piecesInMemtable(this.#memtable, index, this.#read), choice);
    }
    const { order, stored } = index;
    return this.#memtable.terms(stored.indexId, order.columns).countOf(choice.query);
  }

  rowsOf(choice: RowChoice): RowList {
    if (choice.kind === "primary") return this.#keyed;
    if (choice.kind === "any") return unionOf(choice.choices.map((each) => this.rowsOf(each)));
    const index = indexIn(this.#indexes, choice);
    if (choice.kind === "keys") {
      return rowsInPieces(piecesInMemtable(this.#memtable, index, this.#read), choice);
    }
    const { order, stored } = index;
    return this.#memtable.terms(stored.indexId, order.columns).rowsOf(choice.query);
  }

  /** A memtable's inverted index covers all owners, so the row's owner is checked here. */
  isCurrent(row: number): boolean {
    const { bounds, owner } = this.#read;
    return this.#memtable.owners[row] === owner && isCurrentIn(this.#memtable, row, bounds);
  }

  stand(cursor: VersionCursor, row: number): void {
    cursor.standInMemtable(this.#memtable, row);
  }
}
