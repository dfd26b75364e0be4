/**
 * Functions for elements without a framework: they create elements, keep a list of elements in sync
 * with rows, and animate elements to new positions.
 */

/**
 * Creates an element. Attributes that begin with "on" are event handlers, and absent children are
 * omitted.
 */
export function h(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== false));
  return element;
}

const keptByParent = new WeakMap();

/**
 * Keeps the children of an element in sync with rows. An element stays as long as its row does, so
 * that focus, selection and scroll positions survive the changes of others.
 *
 * @param update Called with the element, its row and the previous row, and also right after `make`.
 */
export function keepInStep(parent, rows, { key = (row) => String(row.id), make, update }) {
  const before = keptByParent.get(parent) ?? new Map();
  const now = new Map();
  let next = parent.firstElementChild;
  for (const [index, row] of rows.entries()) {
    const id = key(row);
    const element = before.get(id) ?? make(row);
    before.delete(id);
    now.set(id, element);
    update?.(element, row, rows[index - 1]);
    if (element === next) next = next.nextElementSibling;
    else move(parent, element, next);
  }
  // An element that has been moved to another list must not be removed from there.
  for (const element of before.values()) if (element.parentElement === parent) element.remove();
  keptByParent.set(parent, now);
}

/** Moves an element without losing the focus, if the browser supports this. */
function move(parent, element, next) {
  if (element.isConnected && parent.moveBefore !== undefined) {
    parent.moveBefore(element, next);
    return;
  }
  const hadFocus = element.contains(document.activeElement);
  parent.insertBefore(element, next);
  if (hadFocus) element.focus({ preventScroll: true });
}

const isStill = matchMedia("(prefers-reduced-motion: reduce)");

/** Applies a change, and animates the elements that it moved from their old positions. */
export function glide(elements, change) {
  if (isStill.matches) return change();
  const before = new Map([...elements()].map((each) => [each, each.getBoundingClientRect()]));
  change();
  for (const element of elements()) {
    const from = before.get(element);
    const to = element.getBoundingClientRect();
    if (from === undefined) {
      element.animate([{ opacity: 0, scale: 0.96 }, {}], { duration: 160, easing: "ease-out" });
    } else if (from.x !== to.x || from.y !== to.y) {
      const start = { translate: `${from.x - to.x}px ${from.y - to.y}px` };
      element.animate([start, { translate: "0 0" }], { duration: 220, easing: "ease-out" });
    }
  }
}

/** Sets a text only if it is different, so that a selection in the text remains. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The picture of a person: their initial on a colour that never changes. */
export function avatar({ name, user_id: id }) {
  const element = h("span", { class: "avatar", "aria-hidden": "true", title: name });
  paintAvatar(element, { name, user_id: id });
  return element;
}

export function paintAvatar(element, { name, user_id: id }) {
  const sum = [...String(id)].reduce((hash, letter) => hash * 31 + letter.codePointAt(0), 7);
  element.style.setProperty("--hue", String(Math.abs(sum) % 360));
  element.title = name;
  // The style sheet displays the letter, because screen readers should not read it out.
  element.dataset.letter = [...name][0]?.toUpperCase() ?? "?";
}

const note = h("p", { class: "note", role: "status" });
let noteTimer;

/** Shows a message at the edge of the page for a while. */
export function say(text) {
  if (!note.isConnected) document.body.append(note);
  note.textContent = text;
  note.classList.add("shown");
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => note.classList.remove("shown"), 6000);
}

/** Shows a failure of the server or the connection. Any other error is a bug in the page. */
export function sayFailure(error) {
  if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
  say(messageOf(error));
}

export function messageOf({ code, message, name }) {
  if (name === "ConnectionError") return "The server does not respond. Try again in a moment.";
  return code === "PERMISSION_DENIED" ? "You may not do that." : message;
}

/** Opens a dialog that is removed when it is closed. Clicks outside close it. */
export function openDialog(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.showModal();
  return dialog;
}
