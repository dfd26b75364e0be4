/**
 * Renders a button that may be temporarily inactive. Unlike a `disabled` button, it keeps the
 * focus in the meantime, so keyboard users do not lose their place.
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
