/**
 * Which rows a merge takes next: for each owner, ascending, the rows of each source, oldest first,
 * in pieces of one row group of one source, as many pieces at a time as fit a row group of the
 * output. What they hold is weighed before it is copied.
 */
import { assert, defined } from "../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../base/limits.ts";
import { constVector, physicalKind, type Vector } from "../types/mod.ts";
import { convertVector } from "./convert.ts";
import type { History } from "./history.ts";
import { bytesWithin, GROUP_BYTES_MAX } from "./segment/group_size.ts";
import type { SegmentReader } from "./segment/reader.ts";
import type { StoredColumn } from "./store.ts";

/** Rows of one owner in one row group of one source, and which of them are kept. */
export interface Span {
  readonly owner: number;
  readonly source: number;
  readonly group: number;
  /** Counted from the start of the group. */
  readonly start: number;
  readonly end: number;
  /** The rows that are kept, counted from the start of the group; undefined for all of them. */
  readonly kept: Uint32Array | undefined;
}

export interface SpanSource {
  /** Oldest first. */
  readonly readers: readonly SegmentReader[];
  readonly columns: readonly StoredColumn[];
  readonly history: History;
}

/** Rows, and what they hold beside numbers. */
interface Room {
  readonly rows: number;
  readonly bytes: number;
}

const WHOLE_GROUP: Room = { rows: ROW_GROUP_ROWS_MAX, bytes: GROUP_BYTES_MAX };

/** All spans in the order of the output, as many at a time as fit a row group. */
export function* spanGroups({ columns, history, readers }: SpanSource): Generator<readonly Span[]> {
  const wide = columns.filter(({ type }) => physicalKind(type) === "any");
  let spans: Span[] = [];
  let room = WHOLE_GROUP;
  for (const whole of allSpans(readers)) {
    let rest: Span | undefined = withoutDiscarded(whole, readers, history);
    if (rest === undefined) continue;
    const vectors = wide.map((column) => storedRows(readers, whole, column));
    while (rest !== undefined) {
      const fitting: Room = fittingPart(vectors, { rest, whole, room });
      const [head, tail]: [Span, Span | undefined] = cut(rest, fitting.rows);
      if (fitting.rows > 0) spans.push(head);
      rest = tail;
      room = { rows: room.rows - fitting.rows, bytes: room.bytes - fitting.bytes };
      if (rest === undefined && room.rows > 0) continue;
      yield spans;
      spans = [];
      room = WHOLE_GROUP;
    }
  }
  if (spans.length > 0) yield spans;
}

/** How many rows of a span are kept. */
export function countOf({ end, kept, start }: Span): number {
  return kept === undefined ? end - start : kept.length;
}

/** A column of all rows of a span, in the form that it has now. */
export function storedRows(
  readers: readonly SegmentReader[],
  { source, group, start, end }: Span,
  { columnId, type, missing }: StoredColumn,
): Vector {
  const reader = readers[source];
  const stored = reader?.columnRows(columnId, group, { start, end });
  const storedType = reader?.columnType(columnId);
  if (stored === undefined || storedType === undefined) return constVector(missing, end - start);
  return convertVector(stored, storedType, type);
}

/** The first `count` rows of a span, and the others if there are any. */
function cut(span: Span, count: number): [Span, Span | undefined] {
  if (countOf(span) <= count) return [span, undefined];
  const { kept, start } = span;
  if (kept === undefined) {
    const middle = start + count;
    return [
      { ...span, end: middle },
      { ...span, start: middle },
    ];
  }
  return [
    { ...span, kept: kept.subarray(0, count) },
    { ...span, kept: kept.subarray(count) },
  ];
}

/**
 * How many of the rows of `rest` fit; an empty group takes one row whatever it holds.
 *
 * @param vectors Of the whole span of which `rest` is left.
 */
function fittingPart(
  vectors: readonly Vector[],
  { rest, room, whole }: { rest: Span; room: Room; whole: Span },
): Room {
  const isEmpty = room.rows === WHOLE_GROUP.rows;
  const from = (rest.kept?.[0] ?? rest.start) - whole.start;
  let rows = Math.min(countOf(rest), room.rows);
  for (;;) {
    const last = rest.kept?.[rows - 1] ?? rest.start + rows - 1;
    const bytes = bytesWithin(vectors, from, last + 1 - whole.start);
    if (bytes <= room.bytes || (rows === 1 && isEmpty)) return { rows, bytes };
    if (rows === 1) return { rows: 0, bytes: 0 };
    rows = Math.ceil(rows / 2);
  }
}

/** What is kept of a span; undefined when that is nothing. */
function withoutDiscarded(
  span: Span,
  readers: readonly SegmentReader[],
  history: History,
): Span | undefined {
  const { end, group, owner, source, start } = span;
  const reader = readers[source];
  assert(reader !== undefined, "a span has its reader");
  const deleted = reader.deleted(group);
  if (history.keepsAll(source, deleted)) return span;
  const rows = new Uint32Array(end - start);
  const seqs = reader.seqs(group);
  const groupStart = reader.groupStart(group);
  let count = 0;
  for (let row = start; row < end; row += 1) {
    const version = {
      owner,
      source,
      row: groupStart + row,
      seq: seqs[row] ?? 0,
      isDeleted: deleted[row] === 1,
    };
    if (history.discards(version)) continue;
    rows[count] = row;
    count += 1;
  }
  if (count === 0) return undefined;
  return count === end - start ? span : { ...span, kept: rows.subarray(0, count) };
}

/** Each owner's rows, source by source, cut at the bounds of row groups. */
function* allSpans(readers: readonly SegmentReader[]): Generator<Span> {
  const next = readers.map(() => 0);
  const heads = readers.map((reader) => (reader.ownerCount > 0 ? reader.ownerAt(0) : undefined));
  for (;;) {
    let owner = Infinity;
    for (const head of heads) if (head !== undefined && head.owner < owner) owner = head.owner;
    if (owner === Infinity) return;
    for (const [source, head] of heads.entries()) {
      if (head?.owner !== owner) continue;
      const reader = defined(readers[source], "a head has its segment");
      const index = (next[source] ?? 0) + 1;
      next[source] = index;
      heads[source] = index < reader.ownerCount ? reader.ownerAt(index) : undefined;
      for (let row = head.start; row < head.end; ) {
        const group = reader.groupOf(row);
        const groupStart = reader.groupStart(group);
        const end = Math.min(head.end, groupStart + reader.groupRows(group));
        const start = row - groupStart;
        yield { owner, source, group, start, end: end - groupStart, kept: undefined };
        row = end;
      }
    }
  }
}
