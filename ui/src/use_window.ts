/**
 * Determines which rows of a long table are visible, and where each of them is drawn.
 *
 * Browsers limit the height of an element to about ten million pixels, but a table may be taller
 * than that. The scroll range is then shorter than the table: a long scroll, for example with the
 * scroll bar, moves proportionally through the table, while a short scroll, for example with the
 * wheel, moves by its number of pixels. When scrolling stops, the bar is moved to its proper
 * position.
 */
import { type RefObject, useCallback, useLayoutEffect, useReducer, useRef } from "react";

const ROW_HEIGHT = 28;

/** The height of the header in pixels. The rows begin below it. */
const HEADER_HEIGHT = 42;
const BODY_HEIGHT_MAX = 8_000_000;
/** The number of rows drawn beyond the visible rows, both above and below. */
const OVERSCAN = 12;
const REST_MS = 150;

export interface RowWindow {
  /** The first drawn row. `end` is the exclusive end of the drawn rows. */
  readonly first: number;
  readonly end: number;
  readonly bodyHeight: number;
  /** Returns the distance from the top of the body to a row, in pixels. */
  readonly topOf: (index: number) => number;
  /** Returns the row at the upper edge of the visible part of the table. */
  readonly topRow: () => number;
  /** Scrolls a row into view. */
  readonly reveal: (index: number, rowCount?: number) => void;
  /** Moves the visible part of the table by a number of rows. */
  readonly moveBy: (rows: number) => void;
}

interface Position {
  /**
   * The distance from the top of the whole table to the upper edge of the visible part, in pixels
   * of the table.
   */
  tableTop: number;
  /** The position of the scroll bar when `tableTop` was determined. */
  scrollTop: number;
  isDragged: boolean;
}

/** The sizes of a scrolling element that determine its visible part. */
interface Sizes {
  readonly view: number;
  readonly tableTopMax: number;
  readonly scrollTopMax: number;
  readonly isScaled: boolean;
}

function sizesOf(element: HTMLElement, rowCount: number): Sizes {
  const height = rowCount * ROW_HEIGHT;
  const view = Math.max(0, element.clientHeight - HEADER_HEIGHT);
  const bodyHeight = Math.min(height, BODY_HEIGHT_MAX);
  return {
    view,
    tableTopMax: Math.max(0, height - view),
    scrollTopMax: Math.max(0, bodyHeight - view),
    isScaled: height > BODY_HEIGHT_MAX,
  };
}

/** Returns the position in the table after a scroll. */
function tableTopAfter(
  { isDragged, scrollTop: before, tableTop }: Position,
  scrollTop: number,
  { isScaled, scrollTopMax, tableTopMax, view }: Sizes,
): number {
  if (!isScaled) return scrollTop;
  const way = scrollTop - before;
  const isShort = !isDragged && Math.abs(way) < 2 * view;
  const wanted = isShort ? tableTop + way : (scrollTop / scrollTopMax) * tableTopMax;
  return Math.max(0, Math.min(wanted, tableTopMax));
}

export function useWindow(scroller: RefObject<HTMLElement | null>, rowCount: number): RowWindow {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const position = useRef<Position>({ tableTop: 0, scrollTop: 0, isDragged: false });
  const count = useRef(rowCount);

  /** Moves to a position in the table, and sets the scroll bar accordingly. */
  const place = useCallback(
    (tableTop: number): void => {
      const { current: element } = scroller;
      if (element === null) return;
      const { isScaled, scrollTopMax, tableTopMax } = sizesOf(element, count.current);
      const top = Math.max(0, Math.min(tableTop, tableTopMax));
      element.scrollTop = isScaled ? (top / tableTopMax) * scrollTopMax : top;
      position.current.tableTop = isScaled ? top : element.scrollTop;
      position.current.scrollTop = element.scrollTop;
      redraw();
    },
    [scroller],
  );

  useLayoutEffect(() => {
    if (count.current === rowCount) return;
    count.current = rowCount;
    place(position.current.tableTop);
  }, [place, rowCount]);

  useScrolls(scroller, { position, count, place, redraw });

  const { scrollTop, tableTop } = position.current;
  const view = scroller.current?.clientHeight ?? 0;
  const first = Math.max(0, Math.floor(tableTop / ROW_HEIGHT) - OVERSCAN);
  return {
    first,
    end: Math.min(rowCount, Math.ceil((tableTop + view) / ROW_HEIGHT) + OVERSCAN),
    bodyHeight: Math.min(rowCount * ROW_HEIGHT, BODY_HEIGHT_MAX),
    topOf: (index) => index * ROW_HEIGHT - tableTop + scrollTop,
    topRow: () => Math.floor(position.current.tableTop / ROW_HEIGHT),
    reveal(index) {
      const { current: element } = scroller;
      if (element === null) return;
      const inSight = sizesOf(element, count.current).view;
      const top = index * ROW_HEIGHT;
      const { tableTop: now } = position.current;
      if (top < now) place(top);
      else if (top + ROW_HEIGHT > now + inSight) place(top + ROW_HEIGHT - inSight);
    },
    moveBy: (rows) => place(position.current.tableTop + rows * ROW_HEIGHT),
  };
}

interface Scrolled {
  readonly position: RefObject<Position>;
  /** The number of rows in the table. */
  readonly count: RefObject<number>;
  readonly place: (tableTop: number) => void;
  readonly redraw: () => void;
}

/** Follows the scrolling of an element. */
function useScrolls(
  scroller: RefObject<HTMLElement | null>,
  { count, place, position, redraw }: Scrolled,
): void {
  useLayoutEffect(() => {
    const { current: element } = scroller;
    if (element === null) return undefined;
    const { current: now } = position;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const rest = (): void => {
      if (!now.isDragged) place(now.tableTop);
    };
    const onScroll = (): void => {
      const { scrollTop } = element;
      if (scrollTop === now.scrollTop) return;
      const sizes = sizesOf(element, count.current);
      now.tableTop = tableTopAfter(now, scrollTop, sizes);
      now.scrollTop = scrollTop;
      clearTimeout(timer);
      if (sizes.isScaled) timer = setTimeout(rest, REST_MS);
      redraw();
    };
    // A press on the scrolling element itself always hits one of its scroll bars.
    const onPress = ({ target }: Event): void => {
      now.isDragged = target === element;
    };
    const onRelease = (): void => {
      now.isDragged = false;
      if (sizesOf(element, count.current).isScaled) rest();
    };
    const observer = new ResizeObserver(redraw);
    observer.observe(element);
    element.addEventListener("scroll", onScroll, { passive: true });
    element.addEventListener("pointerdown", onPress);
    addEventListener("pointerup", onRelease);
    redraw();
    return () => {
      clearTimeout(timer);
      observer.disconnect();
      element.removeEventListener("scroll", onScroll);
      element.removeEventListener("pointerdown", onPress);
      removeEventListener("pointerup", onRelease);
    };
  }, [count, place, position, redraw, scroller]);
}
