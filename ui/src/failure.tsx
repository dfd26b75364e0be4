/**
 * Shows an error with its code, message, hint and position in the editor's text, and a copy
 * button.
 */
import { type ReactNode, useState } from "react";
import { ConnectionError, ServerError } from "../../src/client/mod.ts";
import { copyText } from "./clipboard.ts";
import { Icon } from "./icon.tsx";
import { strings } from "./strings.ts";

/**
 * The parts of an error that are shown. The position refers to the text in the editor rather than
 * to the text that was sent.
 */
export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
  readonly reason: string | undefined;
  readonly place:
    | { readonly offset: number; readonly line: number; readonly column: number }
    | undefined;
}

/**
 * Converts an error to the failure that the page shows.
 * @throws An error that comes from neither the server nor the connection, because such an error is
 *   a bug in the page.
 */
export function failureFrom(
  error: unknown,
  {
    isSingle,
    placeOf,
  }: {
    /**
     * Whether the text is a single statement, in which case the error needs no statement number.
     */
    isSingle: boolean;
    placeOf: (position: number) => NonNullable<Failure["place"]>;
  },
): Failure {
  if (error instanceof ServerError) {
    const { code, hint, position, reason } = error;
    const message = isSingle ? error.message.replace(/^Statement 1: /, "") : error.message;
    const place = position === undefined ? undefined : placeOf(position);
    return { code, message, hint, reason, place };
  }
  if (error instanceof ConnectionError) {
    const code = strings.error.connection;
    return { code, message: error.message, hint: undefined, reason: undefined, place: undefined };
  }
  throw error;
}

export function isAbort(error: unknown): error is DOMException {
  return error instanceof DOMException && error.name === "AbortError";
}

export interface FailureBoxProps {
  readonly failure: Failure;
  /** The SQL that failed, for the copy button. */
  readonly sql: string;
  readonly onGoTo: (offset: number) => void;
}

export function FailureBox({ failure, onGoTo, sql }: FailureBoxProps): ReactNode {
  const { code, hint, message, place, reason } = failure;
  const [note, setNote] = useState("");
  const copy = (): void => {
    const lines = [
      `${code}${reason === undefined ? "" : ` (${reason})`}: ${message}`,
      ...(place === undefined ? [] : [strings.error.at(place.line, place.column)]),
      ...(hint === undefined ? [] : [strings.error.hint(hint)]),
      "",
      sql,
    ];
    void copyText(lines.join("\n")).then((isDone) =>
      setNote(isDone ? strings.results.copied : strings.results.notCopied),
    );
  };
  return (
    <div className="failure" role="alert">
      <p className="failure-head">
        <Icon name="error" />
        <strong>{code}</strong>
        {reason !== undefined && <span className="reason">{reason}</span>}
        {place !== undefined && (
          <span className="place">{strings.error.at(place.line, place.column)}</span>
        )}
      </p>
      <p dir="auto">{message}</p>
      {hint !== undefined && <p className="hint">{strings.error.hint(hint)}</p>}
      <p className="failure-actions">
        {place !== undefined && (
          <button type="button" onClick={() => onGoTo(place.offset)}>
            {strings.error.goTo}
          </button>
        )}
        <button type="button" onClick={copy}>
          <Icon name="copy" />
          {strings.error.copy}
        </button>
        <span role="status">{note}</span>
      </p>
    </div>
  );
}
