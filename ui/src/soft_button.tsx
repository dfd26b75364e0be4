/**
 * A button that may do nothing for now. It keeps the focus meanwhile, which the browser takes from
 * one that is `disabled`: whoever works by keyboard stays where they are.
 */
import type { ComponentProps, ReactNode } from "react";

export interface SoftButtonProps extends Omit<ComponentProps<"button">, "disabled"> {
  readonly isOff: boolean;
}

export function SoftButton({ isOff, onClick, type, ...rest }: SoftButtonProps): ReactNode {
  return (
    <button
      {...rest}
      type={type ?? "button"}
      aria-disabled={isOff}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
      }}
    />
  );
}
