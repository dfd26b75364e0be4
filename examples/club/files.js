/**
 * The files of a space: files that are dropped, pasted or chosen appear for all members. Pictures
 * and videos are loaded through signed URLs, because their elements cannot send a token. Each URL
 * works for one person, as long as that person may see the file.
 */
import { startApp } from "./app.js";
import { h, keepInStep, messageOf, openDialog, say, sayFailure, setText } from "./elements.js";

/** The lifetime of a signed URL. A URL is renewed five minutes before it expires. */
const URL_SECONDS = 3600;
const URL_MS = (URL_SECONDS - 300) * 1000;

const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function open({ db, me, space, view }) {
  let rows = [];
  let sending = [];
  const urls = new Map();
  const input = h("input", {
    type: "file",
    multiple: true,
    id: "choose",
    class: "unseen",
    onchange: onChoose,
  });
  const zone = h(
    "label",
    { class: "zone", for: "choose" },
    h("strong", {}, "Drop files here"),
    " or choose them. Pasting works, too.",
  );
  const list = h("ul", { class: "files", "aria-label": "Files" });
  view.append(h("div", { class: "picker" }, input, zone), list);
  view.addEventListener("dragover", onDragOver);
  view.addEventListener("dragleave", () => zone.classList.remove("target"));
  view.addEventListener("drop", onDrop);
  document.addEventListener("paste", onPaste);

  const live = db.live(
    `SELECT f.id, f.file, f.added, f.added_by, p.name
       FROM club.files f JOIN club.people p ON p.user_id = f.added_by
      WHERE f.space = $1`,
    { params: [space.id], orderBy: "id DESC", onRows: take, onError: sayFailure },
  );

  function take(next) {
    rows = next.map((row) => ({
      ...row,
      file: typeof row.file === "string" ? JSON.parse(row.file) : row.file,
    }));
    render();
  }

  function render() {
    keepInStep(list, [...sending, ...rows], {
      key: (row) => row.key ?? `row ${row.id}`,
      make: fileElement,
      update: (item, row) => setText(item.querySelector(".about"), aboutOf(row)),
    });
  }

  function aboutOf({ added, file, key, name }) {
    if (key !== undefined) return "Sending …";
    return `${sizeOf(file.size)} · ${name} · ${date.format(added)}`;
  }

  function fileElement(row) {
    const { file, key } = row;
    const picture = h("div", { class: "picture" });
    const actions = h("div", { class: "row" });
    const item = h(
      "li",
      { class: "file" },
      picture,
      h("p", { class: "name", dir: "auto", title: file.name }, file.name),
      h("p", { class: "about" }),
      actions,
    );
    if (key !== undefined) return item;
    actions.append(
      h(
        "button",
        {
          type: "button",
          class: "link",
          "aria-label": `Save ${file.name}`,
          onclick: () => void save(row).catch(sayFailure),
        },
        "Save",
      ),
    );
    if (row.added_by === me.id || space.owner === me.id) {
      actions.append(
        h(
          "button",
          {
            type: "button",
            class: "link",
            "aria-label": `Remove ${file.name}`,
            onclick: () => void remove(row),
          },
          "Remove",
        ),
      );
    }
    void showPicture(picture, row).catch(sayFailure);
    return item;
  }

  async function urlOf({ file, id }) {
    const key = String(id);
    const known = urls.get(key);
    if (known !== undefined && Date.now() < known.untilMs) return known.url;
    const url = await db.files.url(file, { seconds: URL_SECONDS });
    urls.set(key, { url, untilMs: Date.now() + URL_MS });
    return url;
  }

  async function showPicture(picture, row) {
    const [kind] = row.file.mime.split("/");
    if (kind === "image") {
      const image = h("img", { alt: row.file.name, loading: "lazy", src: await urlOf(row) });
      // A picture that is scrolled into view after an hour needs a new URL.
      const retry = async () => {
        urls.delete(String(row.id));
        image.src = await urlOf(row);
      };
      image.addEventListener("error", () => void retry().catch(sayFailure), { once: true });
      picture.append(
        h(
          "button",
          {
            type: "button",
            class: "bare",
            "aria-label": `Show ${row.file.name}`,
            onclick: () => void enlarge(row).catch(sayFailure),
          },
          image,
        ),
      );
    } else if (kind === "video" || kind === "audio") {
      picture.append(h(kind, { controls: true, preload: "metadata", src: await urlOf(row) }));
    } else {
      picture.append(
        h(
          "span",
          { class: "kind", "aria-hidden": "true" },
          row.file.name.split(".").at(-1).slice(0, 5),
        ),
      );
    }
  }

  async function enlarge(row) {
    const image = h("img", { alt: row.file.name, src: await urlOf(row) });
    const dialog = h(
      "dialog",
      { class: "large", "aria-label": row.file.name },
      image,
      h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    );
    openDialog(dialog);
  }

  async function save(row) {
    h("a", { href: `${await urlOf(row)}&download=1`, download: row.file.name }).click();
  }

  async function remove({ id }) {
    await db.execute("DELETE FROM club.files WHERE id = $1", { params: [id] }).catch(sayFailure);
  }

  function onChoose() {
    void send([...input.files]);
    input.value = "";
  }

  function onDragOver(event) {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    zone.classList.add("target");
  }

  function onDrop(event) {
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    zone.classList.remove("target");
    void send([...event.dataTransfer.files]);
  }

  function onPaste(event) {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    void send(files);
  }

  /** Sends files one after the other, so that a slow connection completes the first files first. */
  async function send(files) {
    const waiting = files.map((file) => ({ key: crypto.randomUUID(), file }));
    sending.push(...waiting);
    render();
    for (const each of waiting) {
      try {
        await db.execute("INSERT INTO club.files (space, file) VALUES ($1, FILE('file'))", {
          params: [space.id],
          files: { file: each.file },
          idempotencyKey: each.key,
        });
      } catch (error) {
        if (error?.name !== "ServerError" && error?.name !== "ConnectionError") throw error;
        say(`“${each.file.name}” was not sent: ${messageOf(error)}`);
      } finally {
        sending = sending.filter((other) => other !== each);
        render();
      }
    }
  }

  return () => {
    live.close();
    document.removeEventListener("paste", onPaste);
    document.querySelector("dialog.large")?.close();
  };
}

function sizeOf(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  const step = bytes === 0 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), 3);
  return `${(bytes / 1000 ** step).toFixed(step === 0 ? 0 : 1)} ${units[step]}`;
}

await startApp({ open });
