/**
 * Implements a client that uploads and deletes files. After a crash, it compares the files that
 * can be downloaded with the acknowledged uploads and deletions.
 */

import type { Chance } from "../../../scripts/support/chance.ts";
import type { ServerProcess } from "../../support/server_process.ts";
import type { Tally } from "./load.ts";

export const UPLOADS_TABLE = "torture.docs";

/** The number of files above which the client deletes more than it uploads. */
const FILES_MAX = 60;

export class Uploader {
  readonly #server: ServerProcess;
  readonly #chance: Chance;
  readonly #tally: Tally;
  /** The contents of the files that exist according to the acknowledgements. */
  readonly #contents = new Map<number, string>();
  /** The request that was sent but not answered. A request without content is a deletion. */
  #pending: { readonly id: number; readonly content: string | undefined } | undefined;
  #next = 0;

  constructor({ server, chance, tally }: { server: ServerProcess; chance: Chance; tally: Tally }) {
    this.#server = server;
    this.#chance = chance;
    this.#tally = tally;
  }

  /** Uploads and deletes files until the server has ended. */
  async run(): Promise<void> {
    for (;;) {
      const isThere = await this.#step();
      if (!isThere) return;
      await Bun.sleep(this.#chance.below(20));
    }
  }

  /**
   * Downloads every file.
   *
   * @returns Descriptions of the files that differ from the acknowledged uploads.
   *
   * @param isInjected Truncates one of the downloaded files first, to show that the difference
   *   would be found.
   */
  async faults(isInjected: boolean): Promise<string[]> {
    const rows = await this.#server.rows(`SELECT id, file FROM ${UPLOADS_TABLE}`);
    const found = new Map<number, string>();
    for (const [id, file] of rows) found.set(Number(id), await this.#download(String(file)));
    const [first] = found;
    if (isInjected && first !== undefined) found.set(first[0], first[1].slice(1));
    if (this.#pending !== undefined) {
      const { id, content } = this.#pending;
      this.#pending = undefined;
      if (found.get(id) === content) this.#adopt(id, content);
    }
    const ids = new Set([...this.#contents.keys(), ...found.keys()]);
    return [...ids].flatMap((id) => {
      const [wanted, got] = [this.#contents.get(id), found.get(id)];
      if (wanted === got) return [];
      return [`file ${id} is ${shown(got)}, but should be ${shown(wanted)}`];
    });
  }

  async #step(): Promise<boolean> {
    const ids = [...this.#contents.keys()];
    const deletes = ids.length > FILES_MAX || (ids.length > 5 && this.#chance.below(3) === 0);
    if (deletes) {
      const id = this.#chance.pick(ids);
      const sql = `DELETE FROM ${UPLOADS_TABLE} WHERE id = ${id}`;
      return this.#send({ id, content: undefined }, (form) => form.set("sql", sql));
    }
    this.#next += 1;
    const id = this.#next;
    const content = this.#chance.text(1 + this.#chance.below(5000));
    return this.#send({ id, content }, (form) => {
      form.set("sql", `INSERT INTO ${UPLOADS_TABLE} VALUES (${id}, FILE('doc'))`);
      form.set("file:doc", new File([content], "doc.txt", { type: "text/plain" }));
    });
  }

  async #send(
    change: { readonly id: number; readonly content: string | undefined },
    fill: (form: FormData) => void,
  ): Promise<boolean> {
    const form = new FormData();
    fill(form);
    this.#pending = change;
    const answer = await this.#post(form).catch(() => undefined);
    if (answer === undefined || answer.body.error?.code === "COMMIT_UNKNOWN") return false;
    this.#pending = undefined;
    if (answer.body.status === "success") {
      this.#adopt(change.id, change.content);
      this.#tally.acknowledged += 1;
      return true;
    }
    this.#tally.refused += 1;
    this.#tally.lastRefusal = `file ${change.id}: ${JSON.stringify(answer.body.error)}`;
    return true;
  }

  async #post(form: FormData): Promise<{ body: { status: string; error?: { code: string } } }> {
    const answer = await fetch(`${this.#server.url}/v1/api/sql`, {
      method: "POST",
      headers: { Authorization: `Bearer ${this.#server.token}` },
      body: form,
    });
    return { body: (await answer.json()) as { status: string; error?: { code: string } } };
  }

  async #download(reference: string): Promise<string> {
    const { id, sub } = JSON.parse(reference) as { id: string; sub: string };
    const path = `/v1/files/${UPLOADS_TABLE.replace(".", "/")}/${sub}/${id}`;
    const answer = await this.#server.get(path, { Authorization: `Bearer ${this.#server.token}` });
    return answer.ok ? await answer.text() : `answer ${answer.status}`;
  }

  #adopt(id: number, content: string | undefined): void {
    if (content === undefined) this.#contents.delete(id);
    else this.#contents.set(id, content);
  }
}

function shown(content: string | undefined): string {
  return content === undefined ? "not there" : `${content.length} bytes "${content.slice(0, 20)}"`;
}
