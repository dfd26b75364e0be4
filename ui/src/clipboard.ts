/**
 * Copies text to the clipboard, even on plain HTTP pages from another machine. On such pages,
 * browsers support only the old method of copying from a selected text field.
 */

/** Copies text to the clipboard. @returns Whether the browser copied it. */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // The browser may refuse, for example because the page is in the background. The old method
      // needs no permission.
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
