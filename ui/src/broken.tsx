/**
 * Shown in place of a screen that failed because of a bug, or whose scripts could not be loaded.
 * Shows the reason and a button to reload.
 */
import { Component, type ReactNode } from "react";
import { strings } from "./strings.ts";

interface BrokenState {
  readonly reason: string | undefined;
}

export class Broken extends Component<{ readonly children: ReactNode }, BrokenState> {
  override state: BrokenState = { reason: undefined };

  static getDerivedStateFromError(error: unknown): BrokenState {
    return { reason: String(error) };
  }

  override render(): ReactNode {
    const { reason } = this.state;
    if (reason === undefined) return this.props.children;
    return (
      <section className="card" role="alert">
        <h2>{strings.broken.title}</h2>
        <p>{reason}</p>
        <button type="button" className="primary" onClick={() => location.reload()}>
          {strings.broken.reload}
        </button>
      </section>
    );
  }
}
