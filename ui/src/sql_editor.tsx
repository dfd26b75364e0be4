/**
 * Renders the SQL editor, which is assembled from parts of CodeMirror. The editor owns its text,
 * and other components access the text through a handle.
 */
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
} from "@codemirror/autocomplete";
import {
  defaultKeymap,
  history,
  historyKeymap,
  indentWithTab,
  isolateHistory,
} from "@codemirror/commands";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension, type Transaction } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { type ReactNode, type Ref, useEffect, useImperativeHandle, useRef } from "react";
import { completionOf } from "./completion.ts";
import type { ListedTable } from "./listed_table.ts";
import { TIDEMARK_SQL } from "./sql_dialect.ts";
import { queryToFollow, type Submitted } from "./statements.ts";
import { strings } from "./strings.ts";

export interface EditorHandle {
  /** Returns the selection, or the whole text if nothing is selected. */
  submitted(): Submitted;
  /**
   * Returns the selection or, if nothing is selected, the query nearest to the cursor; undefined
   * if there is no query.
   */
  query(): Submitted | undefined;
  text(): string;
  replace(text: string): void;
  /** Underlines the word at an offset within the whole text. */
  mark(offset: number, message: string): void;
  clearMark(): void;
  goTo(offset: number): void;
  lineOf(offset: number): { readonly line: number; readonly column: number };
}

export interface SqlEditorProps {
  readonly ref: Ref<EditorHandle>;
  /** The text with which the editor opens. */
  readonly text: string;
  /** The tables that completion offers. */
  readonly tables: readonly ListedTable[];
  readonly onRun: () => void;
  /** Receives the whole text after each change. */
  readonly onChange: (text: string) => void;
}

const highlighting = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--code-type)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.operator, tags.punctuation], color: "var(--code-operator)" },
]);

const theme = EditorView.theme({
  "&": {
    flex: "1 1 auto",
    minHeight: "0",
    backgroundColor: "var(--surface)",
    color: "var(--text)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "13px", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--accent)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--line-tint)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { backgroundColor: "var(--selection)" },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--border)",
    borderRadius: "6px",
    overflow: "hidden",
    boxShadow: "var(--shadow)",
  },
  ".cm-tooltip-autocomplete ul li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-completionDetail": { opacity: "0.75", fontStyle: "normal", marginLeft: "1.5em" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)", padding: "6px 10px" },
});

/** Returns the nonce that the server has assigned to the page for styles created by scripts. */
function styleNonce(): string {
  return document.querySelector<HTMLLinkElement>("link[rel=stylesheet][nonce]")?.nonce ?? "";
}

function language(tables: readonly ListedTable[]): Extension {
  const { language: sql } = TIDEMARK_SQL;
  return [sql, sql.data.of({ autocomplete: completionOf(tables) })];
}

/**
 * Handles typing over a selection. By default, Chromium keeps the appearance of the replaced text
 * in a style attribute, which the page's policy refuses with an error on the console.
 */
const typeOverSelection: Extension = EditorView.domEventHandlers({
  beforeinput({ data, inputType }, view) {
    const { empty, from, to } = view.state.selection.main;
    if (inputType !== "insertText" || data === null || empty || view.composing) return false;
    const insert = (): Transaction =>
      view.state.update(view.state.replaceSelection(data), {
        userEvent: "input.type",
        scrollIntoView: true,
      });
    const handlers = view.state.facet(EditorView.inputHandler);
    const isTaken = handlers.some((handler) => handler(view, from, to, data, insert));
    if (!isTaken) view.dispatch(insert());
    return true;
  },
});

interface Editor {
  readonly view: EditorView;
  readonly language: Compartment;
}

function openEditor(
  parent: HTMLElement,
  { onChange, onRun, tables, text }: Omit<SqlEditorProps, "ref">,
): Editor {
  const compartment = new Compartment();
  const run = (): boolean => {
    onRun();
    return true;
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.cspNonce.of(styleNonce()),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange(state.doc.toString());
        }),
        compartment.of(language(tables)),
        lineNumbers(),
        lintGutter(),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        typeOverSelection,
        syntaxHighlighting(highlighting),
        theme,
        EditorView.contentAttributes.of({
          // Editable text is always focusable, and this attribute tells tools so.
          tabindex: "0",
          "aria-label": strings.editor.label,
          "aria-description": strings.editor.leaveHelp,
        }),
        keymap.of([
          { key: "Mod-Enter", run },
          { key: "Tab", run: acceptCompletion },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
      ],
    }),
  });
  return { view, language: compartment };
}

/**
 * Returns the range of the word or symbol at an offset. The range has at least one character,
 * unless the text is empty.
 */
function rangeAt(text: string, offset: number): { from: number; to: number } {
  const from = Math.max(0, Math.min(offset, text.length - 1));
  const word = /^(?:"[^"]*"|'[^']*'|[\p{L}\p{N}_$.]+)/u.exec(text.slice(from, from + 256))?.[0];
  return { from, to: Math.min(text.length, from + Math.max(1, word?.length ?? 1)) };
}

function handleOf({ view }: Editor): EditorHandle {
  const all = (): string => view.state.doc.toString();
  const inside = (offset: number): number => Math.max(0, Math.min(offset, view.state.doc.length));
  const selected = (): Submitted | undefined => {
    const { from, to } = view.state.selection.main;
    return from === to ? undefined : { text: view.state.sliceDoc(from, to), offset: from };
  };
  return {
    submitted() {
      closeCompletion(view);
      return selected() ?? { text: all(), offset: 0 };
    },
    query() {
      closeCompletion(view);
      return selected() ?? queryToFollow(all(), view.state.selection.main.head);
    },
    text: all,
    replace(text) {
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        // A single undo restores the replaced text, no matter how recently it was typed.
        annotations: isolateHistory.of("full"),
      });
      view.focus();
    },
    mark(offset, message) {
      const range = rangeAt(all(), offset);
      view.dispatch(setDiagnostics(view.state, [{ ...range, severity: "error", message }]));
    },
    clearMark() {
      view.dispatch(setDiagnostics(view.state, []));
    },
    goTo(offset) {
      view.dispatch({ selection: { anchor: inside(offset) }, scrollIntoView: true });
      view.focus();
    },
    lineOf(offset) {
      const line = view.state.doc.lineAt(inside(offset));
      return { line: line.number, column: inside(offset) - line.from + 1 };
    },
  };
}

export function SqlEditor({ ref, ...props }: SqlEditorProps): ReactNode {
  const { tables } = props;
  const parent = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(undefined);
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    if (parent.current === null) return undefined;
    const opened = openEditor(parent.current, {
      ...latest.current,
      onRun: () => latest.current.onRun(),
      onChange: (changed) => latest.current.onChange(changed),
    });
    editor.current = opened;
    opened.view.focus();
    return () => opened.view.destroy();
  }, []);

  useEffect(() => {
    const { current } = editor;
    current?.view.dispatch({ effects: current.language.reconfigure(language(tables)) });
  }, [tables]);

  useImperativeHandle(ref, () => {
    const opened = (): EditorHandle => {
      if (editor.current === undefined)
        throw new Error("Cannot use the editor before it has been displayed");
      return handleOf(editor.current);
    };
    return {
      submitted: () => opened().submitted(),
      query: () => opened().query(),
      text: () => opened().text(),
      replace: (text) => opened().replace(text),
      mark: (offset, message) => opened().mark(offset, message),
      clearMark: () => opened().clearMark(),
      goTo: (offset) => opened().goTo(offset),
      lineOf: (offset) => opened().lineOf(offset),
    };
  }, []);

  return <div className="editor" ref={parent} />;
}
