/**
 * The board of a space: cards in three lists that all members can move. Cards glide to their new
 * positions, whoever moved them. On the keyboard, the arrow keys move between cards, and with Alt
 * they move a card.
 */
import { startApp } from "./app.js";
import {
  avatar,
  glide,
  h,
  keepInStep,
  openDialog,
  paintAvatar,
  sayFailure,
  setText,
} from "./elements.js";

const LISTS = [
  ["todo", "To do"],
  ["doing", "Doing"],
  ["done", "Done"],
];

function open({ db, members, space, view }) {
  let cards = [];
  let dragged;
  /**
   * The elements of the cards by id. A card keeps its element, and thus the focus, when it moves to
   * another list.
   */
  const elements = new Map();
  const columns = LISTS.map(([list, title]) => columnElement(list, title));
  const board = h(
    "div",
    { class: "board" },
    columns.map(({ element }) => element),
  );
  const help = h(
    "p",
    { class: "help" },
    "The arrow keys select a card, Alt with an arrow key moves it, and Enter opens it.",
  );
  view.append(board, help);
  board.addEventListener("keydown", onKey);

  const live = db.live(
    `SELECT c.id, c.list, c.place, c.title, c.note, c.assignee, p.name
       FROM club.cards c LEFT JOIN club.people p ON p.user_id = c.assignee
      WHERE c.space = $1`,
    { params: [space.id], orderBy: "place, id", onRows: take, onError: sayFailure },
  );

  function columnElement(list, title) {
    const items = h("ul", { class: "cards", "aria-label": title });
    const count = h("span", { class: "badge" });
    const name = h("input", {
      placeholder: "New card",
      "aria-label": `New card in ${title}`,
      maxlength: 200,
      autocomplete: "off",
    });
    const add = (event) => {
      event.preventDefault();
      const text = name.value.trim();
      if (text === "") return;
      name.value = "";
      change("INSERT INTO club.cards (space, list, place, title) VALUES ($1, $2, $3, $4)", [
        space.id,
        list,
        placeAt(list),
        text,
      ]);
    };
    const element = h(
      "section",
      {
        class: "column",
        "aria-label": title,
        ondragover: onDragOver,
        ondragleave: showNoTarget,
        ondrop: onDrop,
      },
      h("h3", {}, title, count),
      items,
      h("form", { onsubmit: add }, name),
    );
    element.dataset.list = list;
    return { list, element, items, count };
  }

  function take(rows) {
    cards = rows;
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of elements.keys()) if (!ids.has(id)) elements.delete(id);
    glide(
      () => board.querySelectorAll(".task"),
      () => columns.forEach(renderColumn),
    );
  }

  function renderColumn({ count, items, list }) {
    const rows = cards.filter((card) => card.list === list);
    setText(count, String(rows.length));
    const make = (card) => elements.get(card.id) ?? cardElement(card);
    keepInStep(items, rows, { make, update: updateCard });
  }

  function cardElement({ id }) {
    const button = h(
      "button",
      {
        type: "button",
        class: "task",
        draggable: "true",
        onclick: () => edit(id),
        ondragstart: onDragStart,
        ondragend: onDragEnd,
      },
      h("span", { class: "title", dir: "auto" }),
      h("span", { class: "about" }),
    );
    button.dataset.id = String(id);
    const item = h("li", {}, button);
    elements.set(id, item);
    return item;
  }

  function updateCard(item, card) {
    const [button] = item.children;
    const [title, about] = button.children;
    setText(title, card.title);
    const face = card.assignee === null ? [] : [{ user_id: card.assignee, name: card.name }];
    keepInStep(about, face, { key: (person) => person.user_id, make: avatar, update: paintAvatar });
    about.classList.toggle("noted", card.note !== "");
  }

  function change(sql, params) {
    return db.execute(sql, { params }).catch(sayFailure);
  }

  /** Returns the position before a card of a list, or at the end of the list. */
  function placeAt(list, before) {
    const rows = cards.filter((card) => card.list === list && String(card.id) !== dragged);
    const index =
      before === undefined ? rows.length : rows.findIndex(({ id }) => String(id) === before);
    const [left, right] = [rows[index - 1]?.place, rows[index]?.place];
    if (left === undefined) return right === undefined ? 0 : right - 1;
    return right === undefined ? left + 1 : (left + right) / 2;
  }

  /**
   * Moves a card. If two positions are too close for a number between them, the cards are
   * renumbered first.
   */
  async function moveTo(id, list, before) {
    dragged = id;
    let place = placeAt(list, before);
    if (
      cards.some((card) => card.list === list && String(card.id) !== id && card.place === place)
    ) {
      await spread(list);
      place = placeAt(list, before);
    }
    dragged = undefined;
    await change("UPDATE club.cards SET list = $2, place = $3 WHERE id = $1", [id, list, place]);
  }

  async function spread(list) {
    const sql = `UPDATE club.cards c SET place = n.place FROM (
        SELECT id, row_number() OVER (ORDER BY place, id) AS place
          FROM club.cards WHERE space = $1 AND list = $2) n
      WHERE n.id = c.id`;
    await change(sql, [space.id, list]);
    cards = await db.query(
      "SELECT id, list, place, title, note, assignee FROM club.cards WHERE space = $1 ORDER BY place, id",
      [space.id],
    );
  }

  function onDragStart(event) {
    dragged = event.currentTarget.dataset.id;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", event.currentTarget.textContent);
    event.currentTarget.classList.add("dragged");
  }

  function onDragEnd(event) {
    event.currentTarget.classList.remove("dragged");
    dragged = undefined;
    showNoTarget();
  }

  function onDragOver(event) {
    if (dragged === undefined) return;
    event.preventDefault();
    showNoTarget();
    const before = cardBelow(event);
    (before ?? event.currentTarget.querySelector(".cards")).classList.add("target");
  }

  function onDrop(event) {
    if (dragged === undefined) return;
    event.preventDefault();
    showNoTarget();
    void moveTo(dragged, event.currentTarget.dataset.list, cardBelow(event)?.dataset.id);
  }

  function cardBelow({ clientY, currentTarget: column }) {
    return [...column.querySelectorAll(".task")].find((card) => {
      const { bottom, height } = card.getBoundingClientRect();
      return card.dataset.id !== dragged && clientY < bottom - height / 2;
    });
  }

  function showNoTarget() {
    for (const element of board.querySelectorAll(".target")) element.classList.remove("target");
  }

  function onKey(event) {
    const id = event.target.dataset?.id;
    if (id === undefined || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.altKey) void moveByKey(id, event.key);
    else neighbour(id, event.key)?.focus();
  }

  function listsAround(id) {
    const card = cards.find((each) => String(each.id) === id);
    const index = LISTS.findIndex(([list]) => list === card?.list);
    const rows = cards.filter((each) => each.list === card?.list);
    return { index, rows, at: rows.findIndex((each) => String(each.id) === id) };
  }

  function neighbour(id, key) {
    const { at, index, rows } = listsAround(id);
    if (key === "ArrowUp" || key === "ArrowDown") {
      const next = rows[key === "ArrowUp" ? at - 1 : at + 1];
      return next && board.querySelector(`[data-id="${next.id}"]`);
    }
    const column = columns[key === "ArrowLeft" ? index - 1 : index + 1];
    const items = column?.items.querySelectorAll(".task") ?? [];
    return items[Math.min(at, items.length - 1)];
  }

  async function moveByKey(id, key) {
    const { at, index, rows } = listsAround(id);
    const step = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const list = LISTS[index + step]?.[0];
      if (list !== undefined) await moveTo(id, list);
    } else {
      if (rows[at + step] === undefined) return;
      const before = step === -1 ? rows[at - 1] : rows[at + 2];
      await moveTo(id, rows[at].list, before === undefined ? undefined : String(before.id));
    }
  }

  function edit(id) {
    const card = cards.find((each) => each.id === id);
    if (card === undefined) return;
    const title = h("input", { name: "title", required: true, maxlength: 200, value: card.title });
    const note = h("textarea", { name: "note", rows: 4 });
    note.value = card.note;
    const list = h(
      "select",
      { name: "list" },
      LISTS.map(([value, name]) => h("option", { value, selected: value === card.list }, name)),
    );
    const people = members.rows.map((row) =>
      h("option", { value: row.user_id, selected: row.user_id === card.assignee }, row.name),
    );
    const assignee = h(
      "select",
      { name: "assignee" },
      h("option", { value: "" }, "Nobody"),
      people,
    );
    const save = async (event) => {
      event.preventDefault();
      dialog.close();
      await change("UPDATE club.cards SET title = $2, note = $3, assignee = $4 WHERE id = $1", [
        id,
        title.value.trim(),
        note.value,
        assignee.value === "" ? null : assignee.value,
      ]);
      if (list.value !== card.list) await moveTo(String(id), list.value);
    };
    const remove = () => {
      dialog.close();
      void change("DELETE FROM club.cards WHERE id = $1", [id]);
    };
    const dialog = h(
      "dialog",
      { "aria-label": "Card" },
      h(
        "form",
        { class: "stack", onsubmit: (event) => void save(event) },
        h("label", {}, "Title", title),
        h("label", {}, "Note", note),
        h("div", { class: "row" }, h("label", {}, "List", list), h("label", {}, "Who", assignee)),
        h(
          "div",
          { class: "row" },
          h("button", { class: "primary" }, "Save"),
          h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
          h("span", { class: "gap" }),
          h("button", { type: "button", class: "danger", onclick: remove }, "Delete"),
        ),
      ),
    );
    openDialog(dialog);
  }

  return () => {
    live.close();
    document.querySelector("dialog[aria-label=Card]")?.close();
  };
}

/** Counts the cards that are not done, in each space. */
function badges({ db, tell }) {
  db.live(
    "SELECT space, count(*) AS left_over FROM club.cards WHERE list <> 'done' GROUP BY space",
    {
      onRows: (rows) => tell(new Map(rows.map((row) => [String(row.space), row.left_over]))),
      onError: sayFailure,
    },
  );
}

await startApp({ open, badges });
