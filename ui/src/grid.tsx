/**
 * Shows a table of any length: only the visible rows are in the document. The arrow keys move the
 * current cell, Ctrl+C copies it, and Enter shows its entire text. Changed rows may be marked, and
 * highlighted briefly.
 */
import {
  type CSSProperties,
  type KeyboardEvent,
  memo,
  type ReactNode,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import type { SchemaField } from "../../src/protocol/mod.ts";
import { CellDialog } from "./cell_dialog.tsx";
import { cellText, isNumeric, lineText, typeText } from "./cells.ts";
import { copyText } from "./clipboard.ts";
import { Icon } from "./icon.tsx";
import { strings } from "./strings.ts";
import type { Reading } from "./use_runs.ts";
import { type RowWindow, useWindow } from "./use_window.ts";

export interface Mark {
  readonly kind: "insert" | "update" | "delete";
  /** When the change happened, according to `performance.now()`. */
  readonly atMs: number;
}

export interface GridRow {
  readonly key: string | number;
  readonly cells: readonly unknown[];
  readonly mark?: Mark | undefined;
}

export interface GridProps {
  readonly label: string;
  readonly schema: readonly SchemaField[];
  readonly rowCount: number;
  readonly row: (index: number) => GridRow;
  /** Content shown to the left of the copy button. */
  readonly footer: ReactNode;
  /** Reads more rows; undefined if there are no more rows. */
  readonly more?: Pick<Reading, "all" | "isBusy" | "more"> | undefined;
  /**
   * Whether rows may appear and disappear above the visible rows. If so, the visible rows and the
   * current row stay where they are.
   */
  readonly isMoving?: boolean;
}

const PAGE_ROWS = 20;
const CHARACTERS_MIN = 6;
const CHARACTERS_MAX = 48;
/** The horizontal padding of a cell in pixels, left and right combined. */
const PADDING = 24;
/** The number of rows considered for the width of a column. */
const SAMPLE_ROWS = 60;
/**
 * The maximum time since a change at which its row is still highlighted when it becomes visible,
 * in milliseconds.
 */
const LIGHT_MS_MAX = 400;

interface Position {
  readonly row: number;
  readonly column: number;
}

/** The style variables shared by the header and the rows. */
interface ColumnWidths {
  readonly "--columns": string;
  /** The total width of all columns. */
  readonly "--width": string;
}

export function Grid(props: GridProps): ReactNode {
  const { footer, label, row, rowCount, schema } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const [note, setNote] = useState("");
  const widths = useWidths(schema, rowCount, row);
  const sight = useWindow(scroller, rowCount);
  const { choose, current } = useChosen(props, sight);
  const { dialog, showCell } = useShownCell(props, current);
  const copy = (): unknown => copyCell(props, current).then(setNote);
  const goToEnd = useMore(props, sight, choose);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (isCopy(event)) void copy();
    else if (props.more !== undefined && event.ctrlKey && event.key === "End") goToEnd();
    else if (event.key === "Enter") showCell();
    else {
      const next = moved(current, event, { rows: rowCount, columns: schema.length });
      if (next === undefined) return;
      choose(next);
      setNote("");
      sight.reveal(next.row);
      scrollToColumn(scroller.current, next.column);
    }
    event.preventDefault();
  };
  const { bodyHeight, end, first, topOf } = sight;
  const indexes = Array.from({ length: Math.max(0, end - first) }, (_, at) => first + at);
  const isShown = first <= current.row && current.row < end;
  return (
    <div className="grid" style={widths as CSSProperties}>
      <div
        ref={scroller}
        className="grid-scroll"
        role="grid"
        aria-label={label}
        // -1 means that the number of rows is unknown.
        aria-rowcount={props.more === undefined ? rowCount + 1 : -1}
        aria-colcount={schema.length}
        tabIndex={0}
        onKeyDown={onKeyDown}
        {...(isShown ? { "aria-activedescendant": `${id}-${current.row}-${current.column}` } : {})}
      >
        <div role="presentation" className="grid-inner">
          <HeaderRow schema={schema} />
          <div role="rowgroup" className="grid-body" style={{ height: bodyHeight }}>
            {indexes.map((index) => (
              <BodyRow
                key={row(index).key}
                id={id}
                index={index}
                top={topOf(index)}
                row={row(index)}
                schema={schema}
                column={index === current.row ? current.column : undefined}
                onChoose={choose}
                onShow={showCell}
              />
            ))}
          </div>
        </div>
      </div>
      <Foot note={note} onCopy={copy} onShow={showCell} hasCells={rowCount > 0}>
        {footer}
      </Foot>
      {dialog}
    </div>
  );
}

interface FootProps {
  readonly children: ReactNode;
  readonly note: string;
  readonly hasCells: boolean;
  readonly onCopy: () => unknown;
  readonly onShow: () => void;
}

function Foot({ children, hasCells, note, onCopy, onShow }: FootProps): ReactNode {
  return (
    <div className="grid-foot">
      {children}
      <span className="spacer" />
      <span role="status">{note}</span>
      {hasCells && (
        <>
          <button type="button" className="quiet" onClick={onShow}>
            <Icon name="show" />
            {strings.results.showCell}
          </button>
          <button type="button" className="quiet" onClick={onCopy}>
            <Icon name="copy" />
            {strings.results.copyCell}
          </button>
        </>
      )}
    </div>
  );
}

/**
 * Returns the dialog for the current cell. The dialog keeps its text while the user is reading it.
 */
function useShownCell(
  { row, rowCount, schema }: GridProps,
  at: Position,
): { dialog: ReactNode; showCell: () => void } {
  const [shown, show] = useState<{ readonly title: string; readonly text: string }>();
  const showCell = (): void => {
    const field = schema[at.column];
    if (field === undefined || rowCount === 0) return;
    const text = cellText(row(at.row).cells[at.column], field.data_type) ?? strings.results.null;
    show({ title: strings.results.cellTitle(field.name, at.row + 1), text });
  };
  const isOpen = shown !== undefined;
  const dialog = isOpen && <CellDialog {...shown} onClose={() => show(undefined)} />;
  return { dialog, showCell };
}

/** Scrolls a column into view, or as much of it as fits. */
function scrollToColumn(scroller: HTMLElement | null, column: number): void {
  const header = scroller?.querySelectorAll<HTMLElement>("[role=columnheader]").item(column);
  if (scroller === null || !header) return;
  const { offsetLeft: left, offsetWidth: width } = header;
  const leftMin = left + width - scroller.clientWidth;
  scroller.scrollLeft = Math.min(left, Math.max(leftMin, scroller.scrollLeft));
}

/** Copies a cell to the clipboard. @returns The message for the user. */
async function copyCell({ row, rowCount, schema }: GridProps, at: Position): Promise<string> {
  const field = schema[at.column];
  if (field === undefined || rowCount === 0) return "";
  const text = cellText(row(at.row).cells[at.column], field.data_type) ?? "";
  return (await copyText(text)) ? strings.results.copied : strings.results.notCopied;
}

function HeaderRow({ schema }: { readonly schema: readonly SchemaField[] }): ReactNode {
  return (
    <div role="rowgroup" className="grid-head">
      <div role="row" className="grid-row" aria-rowindex={1}>
        {schema.map(({ data_type: type, flags, index, name }) => (
          <div
            key={index}
            role="columnheader"
            aria-colindex={index + 1}
            className={isNumeric(type) ? "cell numeric" : "cell"}
          >
            <span className="name" dir="auto">
              {name}
            </span>
            <span className="type">
              {flags?.includes("pk") === true && <b title="PRIMARY KEY">PK </b>}
              {typeText(type)}
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}

interface BodyRowProps {
  readonly id: string;
  readonly index: number;
  readonly top: number;
  readonly row: GridRow;
  readonly schema: readonly SchemaField[];
  /** The current column; undefined if this is not the current row. */
  readonly column: number | undefined;
  readonly onChoose: (position: Position) => void;
  /** Opens the dialog for the current cell. */
  readonly onShow: () => void;
}

const BodyRow = memo(ShownRow, (before, now) => {
  const { cells, mark } = before.row;
  return (
    cells === now.row.cells &&
    mark === now.row.mark &&
    before.index === now.index &&
    before.top === now.top &&
    before.column === now.column &&
    before.schema === now.schema
  );
});

function ShownRow({
  id,
  index,
  top,
  row,
  schema,
  column,
  onChoose,
  onShow,
}: BodyRowProps): ReactNode {
  const element = useRef<HTMLDivElement>(null);
  const { mark } = row;
  useLayoutEffect(() => {
    if (element.current !== null && mark !== undefined) lightUp(element.current, mark);
  }, [mark]);
  return (
    <div
      ref={element}
      role="row"
      className={mark?.kind === "delete" ? "grid-row gone" : "grid-row"}
      aria-rowindex={index + 2}
      style={{ transform: `translateY(${top}px)` }}
    >
      {schema.map(({ data_type: type, index: at }) => {
        const text = cellText(row.cells[at], type);
        const kinds = [
          "cell",
          isNumeric(type) ? "numeric" : "",
          text === undefined ? "null" : "",
          at === column ? "current" : "",
        ];
        return (
          <div
            key={at}
            id={`${id}-${index}-${at}`}
            role="gridcell"
            aria-colindex={at + 1}
            aria-selected={at === column}
            className={kinds.filter((kind) => kind !== "").join(" ")}
            dir="auto"
            onMouseDown={() => onChoose({ row: index, column: at })}
            onDoubleClick={onShow}
          >
            {text === undefined ? strings.results.null : lineText(text)}
          </div>
        );
      })}
    </div>
  );
}

/** Animates only the visible rows. Thousands of changes thus cost no more than one screenful. */
function lightUp(element: HTMLElement, { atMs, kind }: Mark): void {
  if (performance.now() - atMs > LIGHT_MS_MAX) return;
  const colour = getComputedStyle(element).getPropertyValue(`--flash-${kind}`);
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (isCalm) {
    const bar = { boxShadow: `inset 4px 0 ${colour}` };
    element.animate([bar, bar], { duration: 1200 });
  } else {
    element.animate([{ backgroundColor: colour }, { backgroundColor: "transparent" }], {
      duration: 1200,
      easing: "ease-out",
    });
  }
}

/**
 * Whether a key press asks to copy the current cell. A selection made with the mouse is copied by
 * the browser itself.
 */
function isCopy({ ctrlKey, key, metaKey }: KeyboardEvent): boolean {
  return (ctrlKey || metaKey) && key === "c" && getSelection()?.isCollapsed !== false;
}

function within(index: number, count: number): number {
  return Math.max(0, Math.min(index, count - 1));
}

/** Returns the position after a key press; undefined for a key that the grid does not handle. */
function moved(
  { column, row }: Position,
  { ctrlKey, key }: KeyboardEvent,
  { columns, rows }: { rows: number; columns: number },
): Position | undefined {
  switch (key) {
    case "ArrowDown":
      return { row: within(row + 1, rows), column };
    case "ArrowUp":
      return { row: within(row - 1, rows), column };
    case "ArrowRight":
      return { row, column: within(column + 1, columns) };
    case "ArrowLeft":
      return { row, column: within(column - 1, columns) };
    case "PageDown":
      return { row: within(row + PAGE_ROWS, rows), column };
    case "PageUp":
      return { row: within(row - PAGE_ROWS, rows), column };
    case "Home":
      return { row: ctrlKey ? 0 : row, column: 0 };
    case "End":
      return { row: ctrlKey ? within(rows - 1, rows) : row, column: columns - 1 };
    default:
      return undefined;
  }
}

/**
 * Returns the current cell. If rows appear or disappear, the scroll position and the current cell
 * stay with their rows.
 */
function useChosen(
  { isMoving = false, row, rowCount, schema }: GridProps,
  sight: RowWindow,
): { current: Position; choose: (position: Position) => void } {
  const [chosen, choose] = useState<Position>({ row: 0, column: 0 });
  const before = useRef({ row, rowCount });
  useLayoutEffect(() => {
    const { row: rowBefore, rowCount: countBefore } = before.current;
    before.current = { row, rowCount };
    if (!isMoving || row === rowBefore) return;
    const placeNow = (index: number): number => {
      if (index >= countBefore) return index;
      const { key } = rowBefore(index);
      for (let at = 0; at < rowCount; at += 1) if (row(at).key === key) return at;
      return index;
    };
    const chosenRow = placeNow(chosen.row);
    if (chosenRow !== chosen.row) choose({ ...chosen, row: chosenRow });
    // A view at the very top stays there, because its user wants to see new rows.
    const top = sight.topRow();
    if (top > 0) sight.moveBy(placeNow(top) - top);
  });
  // The table may have fewer rows and columns than when this cell became current.
  const current = {
    row: within(chosen.row, rowCount),
    column: within(chosen.column, schema.length),
  };
  return { current, choose };
}

/**
 * Reads more rows when the end of the table is reached.
 *
 * @returns A function that reads all remaining rows.
 */
function useMore(
  { more, rowCount, schema }: GridProps,
  sight: RowWindow,
  choose: (position: Position) => void,
): () => void {
  const [isEndWanted, wantEnd] = useState(false);
  const isAtEnd = more?.isBusy === false && sight.end >= rowCount;
  useEffect(() => {
    if (isAtEnd) more?.more();
  }, [isAtEnd, more]);
  useLayoutEffect(() => {
    if (!isEndWanted || more !== undefined) return;
    wantEnd(false);
    choose({ row: within(rowCount - 1, rowCount), column: schema.length - 1 });
    sight.reveal(rowCount - 1);
  });
  return () => {
    wantEnd(true);
    void more?.all();
  };
}

/**
 * Determines the width of each column from its header and the first rows. This happens only once,
 * so that nothing jumps.
 */
function useWidths(
  schema: readonly SchemaField[],
  rowCount: number,
  row: (index: number) => GridRow,
): ColumnWidths {
  const [kept, setKept] = useState<{ schema: readonly SchemaField[]; widths: ColumnWidths }>();
  if (kept?.schema === schema) return kept.widths;
  const sample = Array.from({ length: Math.min(rowCount, SAMPLE_ROWS) }, (_, index) => row(index));
  const characters = schema.map(({ data_type: type, index, name }) => {
    const lengths = sample.map(({ cells }) => cellText(cells[index], type)?.length ?? 4);
    const longest = Math.max(name.length + 2, typeText(type).length + 3, ...lengths);
    return Math.max(CHARACTERS_MIN, Math.min(longest, CHARACTERS_MAX)) + 1;
  });
  const widths: ColumnWidths = {
    "--columns": characters
      .map((width) => `minmax(calc(${width}ch + ${PADDING}px), ${width}fr)`)
      .join(" "),
    "--width": `calc(${characters.reduce((sum, width) => sum + width, 0)}ch + ${PADDING * characters.length}px)`,
  };
  if (rowCount > 0) setKept({ schema, widths });
  return widths;
}
