/** Shows the entire text of a cell. Its column shows only the beginning. */
import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { strings } from "./strings.ts";

export interface CellDialogProps {
  readonly title: string;
  readonly text: string;
  /** Called once the dialog has closed. The focus is then back where it was before. */
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
      {/* The element has the focus, so that arrow keys scroll it. */}
      <pre tabIndex={0} dir="auto" role="document" aria-labelledby={id}>
        {text}
      </pre>
      <button type="button" onClick={() => dialog.current?.close()}>
        {strings.results.closeCell}
      </button>
    </dialog>
  );
}
