/**
 * The chat of a space: messages with the current names of their authors, as one live join. A
 * message appears at once when it is sent, in a paler colour until the server has it. Escape and
 * the arrow keys work as people expect.
 */
import { startApp } from "./app.js";
import { avatar, h, keepInStep, paintAvatar, sayFailure, setText } from "./elements.js";

/** Within this time, consecutive messages of one author show the name only once. */
const TOGETHER_MS = 5 * 60_000;

const PAGE_ROWS = 100;

/** How long after the last keystroke a person counts as typing. */
const TYPING_MS = 3000;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", month: "long", day: "numeric" });

function open({ db, me, members, space, view }) {
  let live;
  let rows = [];
  let waiting = [];
  let limit = PAGE_ROWS;
  let editing;
  let lastSeen = 0;
  /** Messages are sent one after the other, so that they keep their order. */
  let sent = Promise.resolve();

  const list = h("ol", { class: "messages", "aria-label": "Messages" });
  const earlier = h(
    "button",
    { type: "button", class: "link", hidden: true, onclick: showEarlier },
    "Earlier messages",
  );
  const newer = h(
    "button",
    { type: "button", class: "newer primary", hidden: true, onclick: toEnd },
    "New messages ↓",
  );
  const scroller = h(
    "div",
    {
      class: "scroller",
      tabindex: 0,
      role: "log",
      "aria-label": "Chat",
      onscroll: () => void look(),
    },
    earlier,
    list,
  );
  const text = h("textarea", {
    name: "text",
    rows: 1,
    placeholder: `Message to ${space.name}`,
    "aria-label": "Message",
    maxlength: 4000,
    onkeydown: onKey,
    oninput: onInput,
  });
  const typing = h("p", { class: "typing", role: "status" });
  let stopTyping;
  const form = h(
    "form",
    { class: "composer", onsubmit: submit },
    text,
    h("button", { class: "primary" }, "Send"),
  );
  view.append(scroller, newer, typing, form);
  members.onPresence = showTyping;
  follow();
  text.focus();

  function follow() {
    live?.close();
    live = db.live(
      `SELECT m.id, m.author, m.text, m.sent, m.is_edited, p.name
         FROM club.messages m JOIN club.people p ON p.user_id = m.author
        WHERE m.space = $1 ORDER BY m.id DESC LIMIT ${limit}`,
      { params: [space.id], orderBy: "id", onRows: take, onError: sayFailure },
    );
  }

  function take(next) {
    rows = next;
    render();
    void look();
  }

  /** A waiting message is hidden as soon as its row has arrived. */
  function render() {
    const isAtEnd = isNearEnd();
    const mine = rows.filter((row) => row.author === me.id);
    waiting = waiting.filter(
      (each) =>
        each.fault !== undefined ||
        !mine.some((row) => row.id > each.after && row.text === each.text),
    );
    keepInStep(list, [...rows, ...waiting], {
      key: (row) => (row.key === undefined ? `row ${row.id}` : row.key),
      make: messageElement,
      update: updateMessage,
    });
    earlier.hidden = rows.length < limit;
    if (isAtEnd) toEnd();
    else newer.hidden = rows.at(-1) === undefined || rows.at(-1).id <= lastSeen;
  }

  function messageElement(row) {
    const tools = h("span", { class: "tools" });
    if (row.author === me.id && row.key === undefined) {
      tools.append(
        h("button", { type: "button", class: "link", onclick: () => edit(row.id) }, "Edit"),
        h(
          "button",
          { type: "button", class: "link", onclick: () => void remove(row.id) },
          "Delete",
        ),
      );
    }
    return h(
      "li",
      { class: "message" },
      h("p", { class: "day" }),
      avatar(row),
      h("p", { class: "by" }, h("strong", {}), h("time", {})),
      h("p", { class: "text", dir: "auto" }),
      tools,
    );
  }

  function updateMessage(item, row, before) {
    const [dayLine, face, by, body, tools] = item.children;
    const date = day.format(row.sent);
    const isNewDay = before === undefined || day.format(before.sent) !== date;
    const isTogether =
      !isNewDay && before.author === row.author && row.sent - before.sent < TOGETHER_MS;
    item.classList.toggle("together", isTogether);
    item.classList.toggle("waiting", row.key !== undefined);
    setText(dayLine, isNewDay ? date : "");
    paintAvatar(face, { user_id: row.author, name: row.name });
    setText(by.children[0], row.name);
    setText(by.children[1], clock.format(row.sent));
    const shown = row.is_edited ? `${row.text} (edited)` : row.text;
    if (body.dataset.shown !== shown) {
      body.dataset.shown = shown;
      body.replaceChildren(
        ...linked(row.text),
        ...(row.is_edited ? [h("small", {}, " (edited)")] : []),
      );
    }
    if (row.fault !== undefined && tools.childElementCount === 0) {
      tools.append(
        h("span", { class: "fault" }, row.fault),
        h("button", { type: "button", class: "link", onclick: () => void post(row) }, "Send again"),
      );
    }
  }

  function onInput() {
    grow();
    if (stopTyping === undefined) members.tell({ typing: true });
    clearTimeout(stopTyping);
    stopTyping = setTimeout(hasStopped, TYPING_MS);
  }

  function hasStopped() {
    clearTimeout(stopTyping);
    stopTyping = undefined;
    members.tell({});
  }

  function showTyping() {
    const names = members.rows
      .filter(({ user_id: id }) => id !== me.id)
      .filter(({ user_id: id }) => members.here.get(id)?.some((tab) => tab?.typing === true))
      .map(({ name }) => name);
    const verb = names.length === 1 ? "is" : "are";
    setText(typing, names.length === 0 ? "" : `${names.join(", ")} ${verb} typing …`);
  }

  function submit(event) {
    event.preventDefault();
    if (stopTyping !== undefined) hasStopped();
    const words = text.value.trim();
    if (words === "") return;
    text.value = "";
    grow();
    if (editing === undefined) {
      const key = crypto.randomUUID();
      const after = rows.at(-1)?.id ?? 0;
      const message = { key, after, text: words, author: me.id, name: myName(), sent: new Date() };
      waiting.push(message);
      render();
      toEnd();
      sent = sent.then(() => post(message));
    } else {
      const params = [editing, words];
      stopEditing();
      db.execute("UPDATE club.messages SET text = $2, is_edited = TRUE WHERE id = $1", {
        params,
      }).catch(sayFailure);
    }
  }

  /**
   * With the key, the server accepts a message only once, even if its response was lost and the
   * message is sent again.
   */
  async function post(message) {
    delete message.fault;
    try {
      await db.execute("INSERT INTO club.messages (space, text) VALUES ($1, $2)", {
        params: [space.id, message.text],
        idempotencyKey: message.key,
      });
    } catch (error) {
      if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
      message.fault = "Not sent.";
    }
    render();
  }

  function edit(id) {
    editing = id;
    text.value = rows.find((row) => row.id === id)?.text ?? "";
    form.classList.add("editing");
    grow();
    text.focus();
  }

  function stopEditing() {
    editing = undefined;
    text.value = "";
    form.classList.remove("editing");
    grow();
  }

  async function remove(id) {
    text.focus();
    await db.execute("DELETE FROM club.messages WHERE id = $1", { params: [id] }).catch(sayFailure);
  }

  function onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === "Escape" && editing !== undefined) {
      stopEditing();
    } else if (event.key === "ArrowUp" && text.value === "" && !event.altKey) {
      const last = rows.findLast((row) => row.author === me.id);
      if (last === undefined) return;
      event.preventDefault();
      edit(last.id);
    }
  }

  function grow() {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, 200)}px`;
  }

  function myName() {
    return rows.find((row) => row.author === me.id)?.name ?? me.id;
  }

  function isNearEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
  }

  function toEnd() {
    scroller.scrollTop = scroller.scrollHeight;
    newer.hidden = true;
  }

  function showEarlier() {
    limit += PAGE_ROWS;
    follow();
  }

  /** Messages in view count as read on all devices of this person. */
  async function look() {
    const last = rows.at(-1)?.id;
    if (last === undefined || last <= lastSeen || document.hidden || !isNearEnd()) return;
    lastSeen = last;
    newer.hidden = true;
    await db
      .execute(
        "INSERT INTO club.seen (space, message) VALUES ($1, $2) ON CONFLICT (space) DO UPDATE SET message = excluded.message",
        {
          params: [space.id, last],
        },
      )
      .catch(sayFailure);
  }

  const onVisible = () => void look();
  document.addEventListener("visibilitychange", onVisible);
  return () => {
    live.close();
    clearTimeout(stopTyping);
    document.removeEventListener("visibilitychange", onVisible);
  };
}

const LINK = /https?:\/\/[^\s<>"]+[^\s<>".,;:!?)]/g;

/** Returns a text as nodes, with its addresses as links. */
function linked(text) {
  const nodes = [];
  let end = 0;
  for (const { 0: address, index } of text.matchAll(LINK)) {
    nodes.push(
      text.slice(end, index),
      h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address),
    );
    end = index + address.length;
  }
  return [...nodes, text.slice(end)];
}

/**
 * Counts the unread messages in each space, with the help of the rows that store how far this
 * person has read.
 */
function badges({ db, tell }) {
  db.live(
    `SELECT m.space, count(*) AS unread
       FROM club.messages m LEFT JOIN club.seen s ON s.space = m.space
      WHERE m.id > coalesce(s.message, 0) AND m.author <> CURRENT_USER()
      GROUP BY m.space`,
    {
      onRows: (rows) => tell(new Map(rows.map((row) => [String(row.space), row.unread]))),
      onError: sayFailure,
    },
  );
}

await startApp({ open, badges });
