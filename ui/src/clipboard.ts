/**
 * Copying, also where the page came over plain HTTP from another machine: there browsers offer only
 * the old way, a selected text field.
 */

/** @returns Whether the browser did it. */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused, for instance because the page is not in front: the old way asks nobody.
    }
  }
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isDone;
}
