/** Shows the entire text of a cell in a dialog, because a column shows only the beginning. */
import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { strings } from "./strings.ts";

export interface CellDialogProps {
  readonly title: string;
  readonly text: string;
  /** Called once the dialog has closed. The focus has then returned to its previous element. */
  readonly onClose: () => void;
}

export function CellDialog({ onClose, text, title }: CellDialogProps): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="cell-dialog" aria-labelledby={id} onClose={onClose}>
      <h2 id={id} dir="auto">
        {title}
      </h2>
      {/* This element can receive the focus, so that arrow keys scroll the text. */}
      <pre tabIndex={0} dir="auto" role="document" aria-labelledby={id}>
        {text}
      </pre>
      <button type="button" onClick={() => dialog.current?.close()}>
        {strings.results.closeCell}
      </button>
    </dialog>
  );
}
