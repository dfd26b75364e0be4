/**
 * Elements without a framework: make them, keep a list of them in step with rows, and glide them to
 * their new places.
 */

/** Makes an element. Names that begin with "on" are events; children that are absent are left out. */
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
 * Keeps the children of an element in step with rows. Elements stay as long as their row does, so
 * that focus, selection and scroll positions survive changes by others.
 *
 * @param update Called with the element, its row and the row before, also right after `make`.
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
  // An element that another list has taken over stays there.
  for (const element of before.values()) if (element.parentElement === parent) element.remove();
  keptByParent.set(parent, now);
}

/** Moves an element without a loss of focus, where the browser can. */
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

/** Runs a change, and lets the elements that it moved glide from their old places. */
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

/** Sets a text only if it differs, so that a selection in it stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The picture of a person: their initial on a colour that is always theirs. */
export function avatar({ name, user_id: id }) {
  const element = h("span", { class: "avatar", "aria-hidden": "true", title: name });
  paintAvatar(element, { name, user_id: id });
  return element;
}

export function paintAvatar(element, { name, user_id: id }) {
  const sum = [...String(id)].reduce((hash, letter) => hash * 31 + letter.codePointAt(0), 7);
  element.style.setProperty("--hue", String(Math.abs(sum) % 360));
  element.title = name;
  // The style sheet shows the letter, because it is no text to read out.
  element.dataset.letter = [...name][0]?.toUpperCase() ?? "?";
}

const note = h("p", { class: "note", role: "status" });
let noteTimer;

/** Says something at the edge of the page for a while. */
export function say(text) {
  if (!note.isConnected) document.body.append(note);
  note.textContent = text;
  note.classList.add("shown");
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => note.classList.remove("shown"), 6000);
}

/** Tells a failure. What is not a failure of the server or the connection is a bug of the page. */
export function sayFailure(error) {
  if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
  say(messageOf(error));
}

export function messageOf({ code, message, name }) {
  if (name === "ConnectionError") return "The server does not answer. Try again in a moment.";
  return code === "PERMISSION_DENIED" ? "You may not do that." : message;
}

/** Opens a dialog that is removed when it closes. Clicks beside it close it. */
export function openDialog(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
  dialog.showModal();
  return dialog;
}
